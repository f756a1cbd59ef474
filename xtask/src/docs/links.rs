//! Checks the links between the documents: each must lead to an existing file and heading.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use crate::{
    failure::{Failure, Outcome},
    files,
    markdown::{anchors, links},
};

/// The anchors of each page, by the page's canonical path.
type Anchors = HashMap<PathBuf, HashSet<String>>;

/// Fails if a link on any page leads nowhere.
pub(super) fn check() -> Outcome {
    let (mut pages, mut known) = (Vec::new(), Anchors::new());
    for name in files::tracked(&[".md"])? {
        let text = files::read(&name)?;
        let path = files::root().join(&name);
        known.extend(path.canonicalize().ok().map(|path| (path, anchors(&text))));
        pages.push((name, path, text));
    }
    let mut broken = Vec::new();
    for (name, path, text) in &pages {
        let dead = links(text).filter(|link| !leads_somewhere(&known, path, link));
        broken.extend(dead.map(|link| format!("{}: {link}", name.display())));
    }
    match broken.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!("links lead nowhere:\n{}", broken.join("\n")))),
    }
}

/// Whether a link on the page `from` leads to an existing file and heading, or to another site.
fn leads_somewhere(known: &Anchors, from: &Path, link: &str) -> bool {
    if link.contains("://") {
        return true;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(f, a)| (f, Some(a)));
    let target = if file.is_empty() { from.to_owned() } else { from.with_file_name(file) };
    let Ok(target) = target.canonicalize() else { return false };
    anchor.is_none_or(|anchor| known.get(&target).is_some_and(|page| page.contains(anchor)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_needs_its_file_and_its_heading() {
        let readme = files::root().join("README.md");
        let page = files::root().join("docs/redis.md");
        let headings = HashSet::from(["streams".to_owned()]);
        let known = Anchors::from([(page.canonicalize().unwrap(), headings)]);
        for (from, link) in [
            (&readme, "docs/redis.md#streams"),
            (&page, "#streams"),
            (&page, "../README.md"),
            (&page, "https://redis.io"),
        ] {
            assert!(leads_somewhere(&known, from, link), "{link}");
        }
        for (from, link) in [
            (&page, "#no-heading"),
            (&page, "README.md"),
            (&readme, "docs/no-page.md"),
            (&readme, "#streams"),
        ] {
            assert!(!leads_somewhere(&known, from, link), "{link}");
        }
    }
}
