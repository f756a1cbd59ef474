//! Translates Ruby's regular expressions to the syntax of PCRE2.

/// Why an expression cannot be translated.
type Wrong = String;

/// Character classes by their names in Ruby, and PCRE2's properties.
const CLASSES: [(&[u8], &str); 8] = [
    (b"alpha", "L"),
    (b"digit", "Nd"),
    (b"upper", "Lu"),
    (b"lower", "Ll"),
    (b"space", "Xps"),
    (b"alnum", "Xan"),
    (b"word", "Xwd"),
    (b"punct", "P"),
];

/// The expression for PCRE2.
pub(crate) fn translate(source: &[u8]) -> Result<Vec<u8>, Wrong> {
    let mut translation = Translation { rest: source, ..Translation::default() };
    while let Some(byte) = translation.take() {
        match byte {
            b'\\' => translation.escape()?,
            b'[' => translation.open_bracket()?,
            b']' => {
                translation.is_in_class = false;
                translation.out.push(b']');
            }
            b'&' if translation.is_in_class && translation.rest.starts_with(b"&") => {
                return Err("an intersection of classes, by &&, is not supported".to_owned());
            }
            b'(' if !translation.is_in_class => translation.open_group()?,
            other => translation.out.push(other),
        }
    }
    let mut out = translation.out;
    if translation.has_names {
        // If there are named groups, unnamed ones do not capture.
        out.splice(0..0, *b"(?n)");
    }
    Ok(out)
}

#[derive(Default)]
struct Translation<'s> {
    rest: &'s [u8],
    out: Vec<u8>,
    is_in_class: bool,
    has_names: bool,
}

impl<'s> Translation<'s> {
    fn take(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Returns the text before `end`, and moves past `end`.
    fn take_to(&mut self, end: &[u8]) -> Option<&'s [u8]> {
        let len = self.rest.windows(end.len()).position(|found| found == end)?;
        let taken = &self.rest[..len];
        self.rest = &self.rest[len + end.len()..];
        Some(taken)
    }

    fn open_bracket(&mut self) -> Result<(), Wrong> {
        if !self.is_in_class {
            self.is_in_class = true;
            self.put("[");
            if self.rest.starts_with(b"^") {
                self.take();
                self.put("^");
            }
            if self.rest.starts_with(b"]") {
                self.take();
                self.put("]");
            }
            return Ok(());
        }
        if !self.rest.starts_with(b":") {
            return Err("a class within a class is not supported; escape the bracket".to_owned());
        }
        self.take();
        let Some(name) = self.take_to(b":]") else {
            return Err("[: within a class begins a name, which ends with :]".to_owned());
        };
        let (name, negated) = match name.strip_prefix(b"^") {
            Some(name) => (name, "P"),
            None => (name, "p"),
        };
        match property(name) {
            Some(property) => self.put(&format!("\\{negated}{{{property}}}")),
            None => {
                self.put(if negated == "P" { "[:^" } else { "[:" });
                self.out.extend_from_slice(name);
                self.put(":]");
            }
        }
        Ok(())
    }

    fn open_group(&mut self) -> Result<(), Wrong> {
        self.put("(");
        if self.rest.starts_with(b"*") {
            return Err("there is nothing that * could repeat".to_owned());
        }
        if !self.rest.starts_with(b"?") {
            return Ok(());
        }
        self.take();
        self.put("?");
        if self.rest.starts_with(b"<") && !matches!(self.rest.get(1), Some(b'=' | b'!')) {
            self.has_names = true;
        }
        let is_option = |byte: &&u8| matches!(byte, b'i' | b'm' | b'x' | b'-');
        let len = self.rest.iter().take_while(is_option).count();
        if matches!(self.rest.get(len), Some(b':' | b')')) {
            // The option that a dot matches line feeds is m in Ruby and s in PCRE2.
            let options = &self.rest[..len];
            self.out.extend(options.iter().map(|&byte| if byte == b'm' { b's' } else { byte }));
            self.rest = &self.rest[len..];
        } else if self.rest.starts_with(b"#") {
            let comment = self.take_to(b")").ok_or("a comment ends with )")?;
            self.out.extend_from_slice(comment);
            self.put(")");
        }
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Wrong> {
        let Some(byte) = self.take() else {
            return Err("a backslash at the end escapes nothing".to_owned());
        };
        match byte {
            b'h' => self.put(if self.is_in_class { "0-9a-fA-F" } else { "[0-9a-fA-F]" }),
            b'H' if self.is_in_class => {
                return Err("\\H within a class is not supported".to_owned());
            }
            b'H' => self.put("[^0-9a-fA-F]"),
            b'v' => self.put("\\x0b"),
            b'u' => self.code_point()?,
            b'p' | b'P' if self.rest.starts_with(b"{") => {
                self.take();
                let name = self.take_to(b"}").ok_or("a property ends with }")?;
                let (name, not) = name.strip_prefix(b"^").map_or((name, ""), |name| (name, "^"));
                self.put(&format!("\\{}{{{not}", char::from(byte)));
                match property(&name.to_ascii_lowercase()) {
                    Some(property) => self.put(property),
                    None => self.out.extend_from_slice(name),
                }
                self.put("}");
            }
            b'C' | b'M' => return Err("control and meta characters are not supported".to_owned()),
            // In PCRE2 alone these mean something other than the letter.
            b'E' | b'F' | b'I' | b'J' | b'L' | b'N' | b'O' | b'Q' | b'T' | b'U' | b'V' | b'Y'
            | b'i' | b'j' | b'l' | b'm' | b'o' | b'q' | b'y' => self.out.push(byte),
            other => self.out.extend([b'\\', other]),
        }
        Ok(())
    }

    /// `\u3042` and `\u{3042}`.
    fn code_point(&mut self) -> Result<(), Wrong> {
        let wrong = || "a code point is written as \\u3042 or \\u{3042}".to_owned();
        let digits = if self.rest.starts_with(b"{") {
            self.take();
            self.take_to(b"}").ok_or_else(wrong)?
        } else {
            let (digits, rest) = self.rest.split_at_checked(4).ok_or_else(wrong)?;
            self.rest = rest;
            digits
        };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(wrong());
        }
        self.put("\\x{");
        self.out.extend_from_slice(digits);
        self.put("}");
        Ok(())
    }
}

fn property(name: &[u8]) -> Option<&'static str> {
    CLASSES.iter().find(|(known, _)| *known == name).map(|(_, property)| *property)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_another_meaning_is_said_otherwise() {
        for (ruby, expected) in [
            (r"a.b\d+", r"a.b\d+"),
            (r"\h\H[\hx]", r"[0-9a-fA-F][^0-9a-fA-F][0-9a-fA-Fx]"),
            (r"(?m:a)(?i-m)(?mix-x:b)", r"(?s:a)(?i-s)(?six-x:b)"),
            (r"(?<y>a)(b)", r"(?n)(?<y>a)(b)"),
            (r"(?<=a)(?<!b)(?:c)(?=d)(?>e)", r"(?<=a)(?<!b)(?:c)(?=d)(?>e)"),
            (r"\u3042\u{1F600}", r"\x{3042}\x{1F600}"),
            (r"[[:alpha:]_][^[:^digit:]][[:xdigit:]]", r"[\p{L}_][^\P{Nd}][[:xdigit:]]"),
            (r"\p{Alpha}\p{^Space}\P{Han}", r"\p{L}\p{^Xps}\P{Han}"),
            (r"\Q\E\v\/\[\(", r"QE\x0b\/\[\("),
            (r"[]a][(?<x>]", r"[]a][(?<x>]"),
            (r"(?#(?<x>)a", r"(?#(?<x>)a"),
        ] {
            let translated = translate(ruby.as_bytes()).unwrap();
            assert_eq!(String::from_utf8_lossy(&translated), expected, "{ruby}");
        }
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        for ruby in [
            r"[a&&b]",
            r"[a[b]]",
            r"(*NO_JIT)",
            r"\u12",
            r"\u{xy}",
            r"[\H]",
            "a\\",
            r"\M-a",
            r"(?#",
        ] {
            assert!(translate(ruby.as_bytes()).is_err(), "{ruby}");
        }
    }
}
