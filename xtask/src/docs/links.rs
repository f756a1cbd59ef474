//! Checks the links between the documents: each must lead to an existing file, and heading in it.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use crate::{
    failure::{Failure, Outcome},
    files,
};

/// Fails if a link on any page leads nowhere.
pub(super) fn check() -> Outcome {
    let mut pages = HashMap::new();
    for path in files::tracked(&[".md"])? {
        let text = files::read(&path)?;
        pages.insert(path, text);
    }
    let mut broken = Vec::new();
    for (path, text) in &pages {
        for link in links(text) {
            if !leads_somewhere(&pages, path, link) {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    broken.sort();
    match broken.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!("links lead nowhere:\n{}", broken.join("\n")))),
    }
}

fn leads_somewhere(pages: &HashMap<PathBuf, String>, from: &Path, link: &str) -> bool {
    let (file, anchor) = link.split_once('#').map_or((link, None), |(f, a)| (f, Some(a)));
    let target = match file {
        "" => from.to_owned(),
        file => resolve(from.parent().unwrap_or(Path::new("")), file),
    };
    match (pages.get(&target), anchor) {
        (Some(page), Some(anchor)) => anchors(page).contains(anchor),
        (Some(_), None) => true,
        (None, _) => anchor.is_none() && files::root().join(target).exists(),
    }
}

/// A path relative to a folder, without `..` in it.
fn resolve(folder: &Path, path: &str) -> PathBuf {
    let mut resolved = folder.to_owned();
    for part in path.split('/') {
        match part {
            ".." => drop(resolved.pop()),
            "." | "" => {}
            part => resolved.push(part),
        }
    }
    resolved
}

/// The targets of links within the repository.
fn links(page: &str) -> Vec<&str> {
    let is_local = |link: &&str| !link.contains("://") && !link.starts_with("mailto:");
    prose(page)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split(')').next())
        .filter(is_local)
        .collect()
}

/// The anchors of the headings, as on GitHub: lower case, no punctuation, numbered if repeated.
fn anchors(page: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    for heading in prose(page).filter_map(|line| line.strip_prefix('#')) {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let numbered = (1..).map(|n| format!("{anchor}-{n}"));
        let mut names = std::iter::once(anchor.clone()).chain(numbered);
        names.find(|name| anchors.insert(name.clone()));
    }
    anchors
}

/// The lines outside fenced blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_needs_its_file_and_its_heading() {
        let page = "# One `two`, three\n## Again\n## Again\n```sh\n# no heading\n```\n";
        let pages = HashMap::from([
            (PathBuf::from("docs/a.md"), page.to_owned()),
            (PathBuf::from("README.md"), String::new()),
        ]);
        let leads = |from, link| leads_somewhere(&pages, Path::new(from), link);
        assert!(leads("README.md", "docs/a.md#one-two-three"));
        assert!(leads("docs/a.md", "#again-1") && leads("docs/a.md", "../README.md"));
        assert!(!leads("docs/a.md", "#no-heading") && !leads("docs/a.md", "#again-2"));
        assert!(!leads("docs/a.md", "README.md") && !leads("README.md", "docs/b.md"));
        assert_eq!(links("[a](b.md#c) and [d](https://e)\n```\n[f](g)\n```\n"), ["b.md#c"]);
    }
}
