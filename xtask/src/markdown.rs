//! The parts of Markdown that the checks of the documents need.

use std::{collections::HashSet, iter};

/// A fenced block of code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fence<'t> {
    /// The first word after the opening backticks.
    pub(crate) language: &'t str,
    /// The rest of that line: a file name.
    pub(crate) name: &'t str,
    /// The line of the opening backticks, from 1.
    pub(crate) line: usize,
    /// What is between the fences.
    pub(crate) text: Vec<&'t str>,
}

/// The fenced blocks that begin in the first column.
pub(crate) fn fences(page: &str) -> Vec<Fence<'_>> {
    let mut fences = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let (language, name) = info.trim().split_once(' ').unwrap_or((info.trim(), ""));
        let text = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
        fences.push(Fence { language, name, line: index + 1, text: text.collect() });
    }
    fences
}

/// The lines outside of [`fences`].
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut lines: Vec<_> = page.lines().map(Some).collect();
    for fence in fences(page) {
        let end = lines.len().min(fence.line + fence.text.len() + 1);
        lines[fence.line - 1..end].fill(None);
    }
    lines.into_iter().flatten()
}

/// The targets of all links.
pub(crate) fn links(page: &str) -> impl Iterator<Item = &str> {
    let ends = prose(page).flat_map(|line| line.split("](").skip(1));
    ends.filter_map(|end| end.split(')').next())
}

/// The anchors of the headings, as on GitHub: lower case, no punctuation, numbered if repeated.
pub(crate) fn anchors(page: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    for heading in prose(page).filter_map(|line| line.strip_prefix('#')) {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let numbered = (1..).map(|n| format!("{anchor}-{n}"));
        let mut names = iter::once(anchor.clone()).chain(numbered);
        names.find(|name| anchors.insert(name.clone()));
    }
    anchors
}

/// The cells of each row of each table, without heads and rules.
pub(crate) fn table_rows(page: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows: Vec<&str> = page.lines().map(str::trim).collect();
    let is_rule = |row: &str| row.starts_with('|') && row.chars().all(|c| "|-: ".contains(c));
    (0..rows.len())
        .filter(|&i| rows[i].starts_with('|') && !is_rule(rows[i]))
        .filter(|&i| !rows.get(i + 1).is_some_and(|next| is_rule(next)))
        .map(|i| rows[i].trim_matches('|').split('|').map(str::trim).collect())
        .collect::<Vec<_>>()
        .into_iter()
}

/// A new table: `head` and `rows` of cells.
pub(crate) fn table<C: AsRef<str>>(head: &[&str], rows: &[Vec<C>]) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let mut table = line(head.to_vec());
    table.push_str(&format!("|{}\n", "---|".repeat(head.len())));
    for row in rows {
        table.push_str(&line(row.iter().map(AsRef::as_ref).collect()));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_has_a_language_a_name_and_its_lines() {
        let page = "text\n```lua hits.lua\nreturn {}\n\n```\n```console\n$ true\n```\n";
        let fences = fences(page);
        assert_eq!(fences.len(), 2);
        assert_eq!((fences[0].language, fences[0].name), ("lua", "hits.lua"));
        assert_eq!((fences[0].line, &fences[0].text[..]), (2, &["return {}", ""][..]));
        assert_eq!((fences[1].language, fences[1].name), ("console", ""));
    }

    #[test]
    fn links_and_headings_are_outside_of_fences() {
        let page = "# One `two`, three\n[a](b.md#c), [d](https://e)\n## Again\n\
                    ```sh\n# no heading\n[f](g)\n```\n## Again\n";
        assert_eq!(links(page).collect::<Vec<_>>(), ["b.md#c", "https://e"]);
        let expected = ["one-two-three", "again", "again-1"].map(str::to_owned);
        assert_eq!(anchors(page), HashSet::from(expected));
        assert_eq!(prose("a\n```\nwithout an end").collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn rows_come_without_heads_and_rules() {
        let page = "| a | b |\n|---|---|\n| 1 | 2 |\n\ntext | no table\n";
        assert_eq!(table_rows(page).collect::<Vec<_>>(), [["1", "2"]]);
    }

    #[test]
    fn a_table_reads_back() {
        let table = table(&["a", "b"], &[vec!["1", "2"], vec!["3", "4"]]);
        assert_eq!(table, "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n");
        assert_eq!(table_rows(&table).count(), 2);
    }
}
