//! Reads the table.

/// One case.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// Whether the client closes its side after the bytes.
    pub(crate) ends: bool,
    /// For example `200 404, kept`.
    pub(crate) expected: String,
}

impl Case {
    /// The number of expected responses.
    pub(crate) fn expected_count(&self) -> usize {
        self.expected.split(", ").next().map_or(0, |statuses| statuses.split(' ').count())
    }
}

/// The cases of a table, whose first lines explain the format.
pub(crate) fn read(text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut lines = text.lines();
    while let Some(name) = lines.next() {
        if name.is_empty() || name.starts_with('#') {
            continue;
        }
        assert!(!name.starts_with(' '), "no name above {name:?}");
        let mut case =
            Case { name: name.to_owned(), bytes: Vec::new(), ends: false, expected: String::new() };
        for line in lines.by_ref() {
            if let Some(expected) = line.strip_prefix("=> ") {
                case.expected = expected.to_owned();
                break;
            }
            add_line(&mut case, line.strip_prefix("    ").unwrap_or(line));
        }
        assert!(!case.expected.is_empty(), "nothing is expected of {name:?}");
        cases.push(case);
    }
    cases
}

fn add_line(case: &mut Case, line: &str) {
    let (line, ends) = line.strip_suffix("<end>").map_or((line, false), |line| (line, true));
    let (line, is_whole) = line.strip_suffix('\\').map_or((line, !ends), |line| (line, false));
    let repeated = line.split_once('{').and_then(|(before, rest)| {
        let (text, rest) = rest.split_once("} x ")?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        Some([before, &text.repeat(rest[..digits].parse().ok()?), &rest[digits..]].concat())
    });
    case.bytes.extend(unescaped(repeated.as_deref().unwrap_or(line)));
    if is_whole {
        case.bytes.extend_from_slice(b"\r\n");
    }
    case.ends |= ends;
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, escaped)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let (byte, len) = match escaped.as_bytes().first() {
            Some(b'r') => (b'\r', 1),
            Some(b'n') => (b'\n', 1),
            Some(b't') => (b'\t', 1),
            Some(b's') => (b' ', 1),
            Some(b'0') => (0, 1),
            Some(b'x') => (u8::from_str_radix(&escaped[1..3], 16).expect("two digits"), 3),
            _ => panic!("what is escaped in {text:?}?"),
        };
        bytes.push(byte);
        rest = &escaped[len..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}
