//! Formats Redis replies like redis-cli.

use tokaido_wire::resp::Reply;

use crate::value::quote;

/// The text of a reply, without a newline at its end. Text strings are shown as text in every
/// script, where redis-cli shows bytes.
pub(crate) fn format(reply: &Reply) -> String {
    let mut text = String::new();
    write(reply, 0, &mut text);
    text
}

/// The reply for a program to read: strings unchanged, and one element per line.
pub(crate) fn raw(reply: &Reply, bytes: &mut Vec<u8>) {
    match reply {
        Reply::Null => {}
        Reply::Simple(text)
        | Reply::Error(text)
        | Reply::BigNumber(text)
        | Reply::Verbatim { text, .. } => bytes.extend_from_slice(text.as_bytes()),
        Reply::Bulk(string) => bytes.extend_from_slice(string),
        Reply::Integer(integer) => bytes.extend_from_slice(integer.to_string().as_bytes()),
        Reply::Double(number) => bytes.extend_from_slice(number.to_string().as_bytes()),
        Reply::Boolean(boolean) => bytes.extend_from_slice(boolean.to_string().as_bytes()),
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => {
            raw_lines(items.iter(), bytes);
        }
        Reply::Map(pairs) => raw_lines(pairs.iter().flat_map(|(k, v)| [k, v]), bytes),
    }
}

fn raw_lines<'r>(items: impl Iterator<Item = &'r Reply>, bytes: &mut Vec<u8>) {
    for (index, item) in items.enumerate() {
        if index > 0 {
            bytes.push(b'\n');
        }
        raw(item, bytes);
    }
}

fn write(reply: &Reply, indent: usize, text: &mut String) {
    match reply {
        Reply::Simple(status) => text.push_str(status),
        Reply::Error(message) => text.push_str(&format!("(error) {message}")),
        Reply::Integer(integer) => text.push_str(&format!("(integer) {integer}")),
        Reply::Double(number) => text.push_str(&format!("(double) {number}")),
        Reply::Boolean(true) => text.push_str("(true)"),
        Reply::Boolean(false) => text.push_str("(false)"),
        Reply::Null => text.push_str("(nil)"),
        Reply::Bulk(bytes) => text.push_str(&quote(bytes)),
        Reply::BigNumber(digits) => text.push_str(digits),
        Reply::Verbatim { text: verbatim, .. } => text.push_str(verbatim),
        Reply::Array(items) => write_items(items, "array", ')', indent, text),
        Reply::Set(items) => write_items(items, "set", '~', indent, text),
        Reply::Push(items) => write_items(items, "push", '>', indent, text),
        Reply::Map(pairs) => write_map(pairs, indent, text),
    }
}

/// One element per line, with aligned numbers; nested ones begin on their parent's line.
fn write_items(items: &[Reply], kind: &str, mark: char, indent: usize, text: &mut String) {
    if items.is_empty() {
        text.push_str(&format!("(empty {kind})"));
        return;
    }
    let width = items.len().to_string().len();
    for (index, item) in items.iter().enumerate() {
        start_line(index, indent, text);
        text.push_str(&format!("{:>width$}{mark} ", index + 1));
        write(item, indent + width + 2, text);
    }
}

fn write_map(pairs: &[(Reply, Reply)], indent: usize, text: &mut String) {
    if pairs.is_empty() {
        text.push_str("(empty hash)");
        return;
    }
    let width = pairs.len().to_string().len();
    for (index, (key, value)) in pairs.iter().enumerate() {
        start_line(index, indent, text);
        text.push_str(&format!("{:>width$}# ", index + 1));
        write(key, indent + width + 2, text);
        text.push_str(" => ");
        write(value, indent + width + 2, text);
    }
}

fn start_line(index: usize, indent: usize, text: &mut String) {
    if index > 0 {
        text.push('\n');
        text.push_str(&" ".repeat(indent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.into())
    }

    fn nested() -> Reply {
        let mut items = vec![bulk("x"); 8];
        items.push(Reply::Array(vec![
            Reply::Integer(1),
            Reply::Array(vec![Reply::Null, bulk("品川")]),
        ]));
        items.push(Reply::Map(vec![
            (bulk("a"), Reply::Double(1.5)),
            (bulk("b"), Reply::Array(vec![])),
        ]));
        Reply::Array(items)
    }

    #[test]
    fn nested_replies_are_numbered_and_indented() {
        insta::assert_snapshot!(format(&nested()), @r#"
         1) "x"
         2) "x"
         3) "x"
         4) "x"
         5) "x"
         6) "x"
         7) "x"
         8) "x"
         9) 1) (integer) 1
            2) 1) (nil)
               2) "品川"
        10) 1# "a" => (double) 1.5
            2# "b" => (empty array)
        "#);
        assert_eq!(format(&Reply::Simple("OK".into())), "OK");
        assert_eq!(format(&Reply::Error("ERR no".into())), "(error) ERR no");
        assert_eq!(format(&bulk("a\"\n")), r#""a\"\n""#);
    }

    #[test]
    fn raw_replies_are_one_element_a_line() {
        let mut bytes = Vec::new();
        raw(&Reply::Array(vec![bulk("a\"b"), Reply::Null, Reply::Integer(2)]), &mut bytes);
        assert_eq!(bytes, b"a\"b\n\n2");
    }
}
