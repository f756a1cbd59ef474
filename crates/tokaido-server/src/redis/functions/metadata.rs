//! The first line of a library, which gives its language and name.

use crate::redis::failure::Failure;

/// The only supported language.
const ENGINE: &str = "LUA";

const NAME_RULE: &str = "Library names can only contain letters, numbers, or underscores(_) and must be at least one \
                         character long";

/// The name in a library's code.
pub(super) fn library_name(code: &[u8]) -> Result<String, Failure> {
    let Some(rest) = code.strip_prefix(b"#!") else {
        return Err(Failure::other("Missing library metadata"));
    };
    let end = rest.iter().position(|&byte| byte == b'\n');
    let line = end.and_then(|end| str::from_utf8(&rest[..end]).ok());
    let line = line.ok_or_else(|| Failure::other("Invalid library metadata"))?;
    let (engine, words) = line.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((line, ""));
    let mut name = None;
    for word in words.split_ascii_whitespace() {
        let Some(given) = strip_name(word) else {
            return Err(Failure::other(format!("Invalid metadata value given: {word}")));
        };
        if name.replace(given).is_some() {
            let message = "Invalid metadata value, name argument was given multiple times";
            return Err(Failure::other(message));
        }
    }
    let name = name.ok_or_else(|| Failure::other("Library name was not given"))?;
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_of_name) {
        return Err(Failure::other(NAME_RULE));
    }
    if !engine.eq_ignore_ascii_case(ENGINE) {
        return Err(Failure::other(format!("Engine '{engine}' not found")));
    }
    Ok(name.to_owned())
}

/// The text after `name=`, which may be in any case.
fn strip_name(word: &str) -> Option<&str> {
    const NAME: &str = "name=";
    let (head, name) = word.split_at_checked(NAME.len())?;
    head.eq_ignore_ascii_case(NAME).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found() {
        for line in ["lua name=a_1", "LUA  NAME=a_1 ", "lua\tname=a_1"] {
            assert_eq!(library_name(format!("#!{line}\n").as_bytes()).unwrap(), "a_1");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = [
            ("lua name=a\n", "Missing library metadata"),
            ("#!lua name=a", "Invalid library metadata"),
            ("#!lua\n", "Library name was not given"),
            (
                "#!lua name=a name=b\n",
                "Invalid metadata value, name argument was given multiple times",
            ),
            ("#!lua name=a x\n", "Invalid metadata value given: x"),
            ("#!lua name=a-b\n", NAME_RULE),
            ("#!perl name=a\n", "Engine 'perl' not found"),
        ];
        for (code, message) in wrong {
            let failure = library_name(code.as_bytes()).unwrap_err();
            assert_eq!(failure.to_string(), format!("ERR {message}"), "{code}");
        }
    }
}
