//! The ACL file, in Redis' format: one line for each user, which begins with `user` and the name.

use std::{collections::BTreeMap, fs, path::Path};

use super::{error::AclFileError, user::Rules};
use crate::file_replacement;

/// The users of a file, by name.
pub(super) type Read = BTreeMap<String, Rules>;

/// Reads an ACL file.
pub(super) fn read(path: &Path) -> Result<Read, AclFileError> {
    let text =
        fs::read(path).map_err(|source| AclFileError::Read { path: path.to_owned(), source })?;
    parse(&text, &path.display().to_string())
}

fn parse(text: &[u8], path: &str) -> Result<Read, AclFileError> {
    let (mut users, mut wrong) = (Read::new(), Vec::new());
    for (line, number) in text.split(|&byte| byte == b'\n').zip(1..) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        match parse_line(line) {
            Ok((name, _)) if users.contains_key(&name) => {
                wrong.push(format!("WARNING: Duplicate user '{name}' found on line {number}."));
            }
            Ok((name, rules)) => {
                users.insert(name, rules);
            }
            Err(message) => wrong.push(format!("{path}:{number}: {message}.")),
        }
    }
    if wrong.is_empty() {
        return Ok(users);
    }
    wrong.push(
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
            .to_owned(),
    );
    Err(AclFileError::Lines { lines: wrong })
}

fn parse_line(line: &[u8]) -> Result<(String, Rules), String> {
    let mut words = line.split(|&byte| byte == b' ' || byte == b'\t').filter(|w| !w.is_empty());
    let head = "line should start with user keyword followed by the username";
    let (Some(b"user"), Some(name)) = (words.next(), words.next()) else {
        return Err(head.to_owned());
    };
    let name = std::str::from_utf8(name).map_err(|_| "the username is not UTF-8".to_owned())?;
    let words: Vec<&[u8]> = words.collect();
    let merged = merge(&words).map_err(|open| {
        let open = String::from_utf8_lossy(open);
        format!("Unmatched parenthesis in acl selector starting at '{open}'")
    })?;
    let mut rules = Rules::default();
    for rule in &merged {
        rules.apply(rule).map_err(|error| {
            format!("Error in applying operation '{}': {error}", String::from_utf8_lossy(rule))
        })?;
    }
    Ok((name.to_owned(), rules))
}

/// Joins the words of each selector, which is written between parentheses.
///
/// # Errors
/// The word that opens a selector which is never closed.
pub(crate) fn merge<'w>(words: &[&'w [u8]]) -> Result<Vec<Vec<u8>>, &'w [u8]> {
    let (mut merged, mut open): (Vec<Vec<u8>>, Option<&'w [u8]>) = (Vec::new(), None);
    for &word in words {
        match (open, merged.last_mut()) {
            (Some(_), Some(selector)) => {
                selector.push(b' ');
                selector.extend_from_slice(word);
            }
            _ => merged.push(word.to_vec()),
        }
        if open.is_none() && word.starts_with(b"(") {
            open = Some(word);
        }
        if word.ends_with(b")") {
            open = None;
        }
    }
    open.map_or(Ok(merged), Err)
}

/// Writes an ACL file. It replaces the old one atomically, and is on disk on return.
pub(super) fn write(path: &Path, lines: &[Vec<u8>]) -> Result<(), AclFileError> {
    let mut contents = lines.join(&b'\n');
    contents.push(b'\n');
    // It holds password hashes, so nobody else may read it unless somebody has allowed that.
    file_replacement::replace(path, &contents)
        .map_err(|source| AclFileError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_the_users_that_it_was_written_of() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("users.acl");
        let text =
            "# comment\n\nuser alice on >one ~a* %R~b* &c +@read -get (~x +set)\r\nuser bob off\n";
        fs::write(&path, text).expect("a file");
        let users = read(&path).expect("users");
        let lines: Vec<_> = users.iter().map(|(name, rules)| rules.describe(name)).collect();
        write(&path, &lines).expect("room");
        let again = read(&path).expect("users");
        assert!(users == again);
        assert_eq!(users.keys().collect::<Vec<_>>(), ["alice", "bob"]);
        let bob = again.get("bob").map(|rules| rules.describe("bob"));
        assert_eq!(bob.as_deref(), Some(&b"user bob off resetchannels -@all"[..]));
    }

    #[test]
    fn each_wrong_line_is_told() {
        let text = b"user a on\nuser a off\nname b\nuser c +nothing\nuser d (+get\n";
        let Err(AclFileError::Lines { lines }) = parse(text, "f") else { panic!("it was taken") };
        assert_eq!(
            lines,
            [
                "WARNING: Duplicate user 'a' found on line 2.",
                "f:3: line should start with user keyword followed by the username.",
                "f:4: Error in applying operation '+nothing': Unknown command or category name in ACL.",
                "f:5: Unmatched parenthesis in acl selector starting at '(+get'.",
                "WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
            ]
        );
    }
}
