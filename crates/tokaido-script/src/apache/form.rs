//! Pairs of names and values: of a query, and of both kinds of form.

use crate::percent;

/// A name and its value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The pairs of a query, split as Apache does: a `+` is not a space, and a name alone has the value 1.
pub(crate) fn pairs_of_arguments(text: &[u8]) -> impl Iterator<Item = Pair> {
    text.split(|&byte| byte == b'&').filter(|piece| !piece.is_empty()).map(|piece| {
        match split_at_equals(piece) {
            Some((name, value)) => (unescaped(name, false), unescaped(value, false)),
            None => (unescaped(piece, false), b"1".to_vec()),
        }
    })
}

/// The pairs of a URL-encoded form. Pieces without `=` are left out.
pub(crate) fn pairs_of_form(text: &[u8]) -> impl Iterator<Item = Pair> {
    text.split(|&byte| byte == b'&').filter_map(|piece| {
        let (name, value) = split_at_equals(piece)?;
        Some((unescaped(name, true), unescaped(value, true)))
    })
}

fn split_at_equals(piece: &[u8]) -> Option<(&[u8], &[u8])> {
    let place = piece.iter().position(|&byte| byte == b'=')?;
    Some((&piece[..place], &piece[place + 1..]))
}

/// Invalid escapes stay as they are.
fn unescaped(text: &[u8], has_plus: bool) -> Vec<u8> {
    percent::unescape(text, has_plus).0.into_owned()
}

/// The fields of a multipart form, each between two boundary lines.
pub(crate) fn pairs_of_multipart<'t>(
    text: &'t [u8],
    boundary: &[u8],
) -> impl Iterator<Item = Pair> + 't {
    let line = [b"--", boundary].concat();
    let mut rest = after(text, &line);
    std::iter::from_fn(move || {
        loop {
            let part = rest.filter(|part| !part.starts_with(b"--"))?;
            let (part, behind) = match find(part, &line) {
                Some(end) => (&part[..end], Some(&part[end + line.len()..])),
                None => return None,
            };
            rest = behind;
            if let Some(pair) = field(part) {
                return Some(pair);
            }
        }
    })
}

/// The name and the value of a part: headers, an empty line, and the value, up to the line end that belongs
/// to the boundary.
fn field(part: &[u8]) -> Option<Pair> {
    let head_len = find(part, b"\r\n\r\n")?;
    let value = &part[head_len + 4..];
    let value = value.strip_suffix(b"\r\n").unwrap_or(value);
    let head = &part[..head_len];
    let disposition = head.split(|&byte| byte == b'\n').find(|line| {
        line.get(..20).is_some_and(|name| name.eq_ignore_ascii_case(b"content-disposition:"))
    })?;
    let name = after(disposition, b" name=\"")?;
    let end = name.iter().position(|&byte| byte == b'"')?;
    (end > 0).then(|| (name[..end].to_vec(), value.to_vec()))
}

fn after<'t>(text: &'t [u8], wanted: &[u8]) -> Option<&'t [u8]> {
    find(text, wanted).map(|place| &text[place + wanted.len()..])
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pairs: impl Iterator<Item = Pair>) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let pairs: Vec<_> = pairs.map(|(name, value)| text(&name) + "=" + &text(&value)).collect();
        pairs.join("; ")
    }

    #[test]
    fn a_query_and_a_form_are_taken_apart() {
        let text = b"a=1&b&c=&&=5&d=x+y%20z&e=%zz&f=%4&g==h&i=1;j=2";
        let expected = "a=1; b=1; c=; =5; d=x+y z; e=%zz; f=%4; g==h; i=1;j=2";
        assert_eq!(shown(pairs_of_arguments(text)), expected);
        let expected = "a=1; c=; =5; d=x y z; e=%zz; f=%4; g==h; i=1;j=2";
        assert_eq!(shown(pairs_of_form(text)), expected);
        assert_eq!(shown(pairs_of_form(b"")), "");
    }

    #[test]
    fn a_form_in_parts_is_taken_apart() {
        let text = b"junk\r\n--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n\
            --X\r\ncontent-disposition: form-data; name=\"f\"; filename=\"name.txt\"\r\n\
            Content-Type: text/plain\r\n\r\nline\r\n--\r\nend\r\n--X\r\nNo: name\r\n\r\nx\r\n--X--\r\n";
        assert_eq!(shown(pairs_of_multipart(text, b"X")), "a=1; f=line\r\n--\r\nend");
        for broken in ["", "--X", "--X\r\n", "--X--", "--X\r\nContent-Disposition: name=\"\r\n--X"]
        {
            assert_eq!(shown(pairs_of_multipart(broken.as_bytes(), b"X")), "", "{broken}");
        }
    }
}
