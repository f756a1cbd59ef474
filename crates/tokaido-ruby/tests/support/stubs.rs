//! The names in an RBS file.

use std::collections::BTreeSet;

/// The methods and constants of the classes that a file declares: `Class#method`, `Class.method`,
/// `Class::CONSTANT`. The file must have one declaration per line.
pub(crate) fn names_in(text: &str) -> BTreeSet<String> {
    let (mut names, mut owners, mut blocks) = (BTreeSet::new(), Vec::<&str>::new(), 0);
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["module" | "class", name, ..] => {
                owners.push(name.split('[').next().unwrap());
                blocks += 1;
            }
            ["end"] => {
                owners.pop();
                blocks -= 1;
            }
            ["def", name, ..] => {
                let owner = owners.join("::");
                let name = name.strip_suffix(':').unwrap();
                names.insert(match name.strip_prefix("self.") {
                    Some(name) => format!("{owner}.{name}"),
                    None => format!("{owner}#{name}"),
                });
            }
            ["attr_reader", name, ..] => {
                names.insert(format!("{}#{}", owners.join("::"), name.strip_suffix(':').unwrap()));
            }
            [name, _]
                if name.starts_with(|c: char| c.is_ascii_uppercase()) && name.ends_with(':') =>
            {
                names.insert(format!("{}::{}", owners.join("::"), name.strip_suffix(':').unwrap()));
            }
            _ => {}
        }
    }
    assert_eq!(blocks, 0, "a class or module without an end");
    names
}
