//! The parts of Markdown that the checks of the documents need: fences and table rows.

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
