//! Percent-encoding, as far as queries need it.

/// The pairs of a query, decoded. `+` is a space; a pair without `=` has an empty value.
pub(crate) fn query_pairs(query: &str) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

/// A `%` that no two hexadecimal digits follow stays as it is.
fn decode(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        let byte = match (first, tail) {
            (b'+', _) => b' ',
            (b'%', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    rest = after;
                    high << 4 | low
                }
                _ => b'%',
            },
            _ => first,
        };
        decoded.push(byte);
    }
    decoded
}

fn digit(b: u8) -> Option<u8> {
    char::from(b).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_taken_apart_and_decoded() {
        let pairs: Vec<_> = query_pairs("a=1&b=x+y%20z&c&&d=%e6%97%a5&e=%zz%2").collect();
        let expected: [(&str, &str); 5] =
            [("a", "1"), ("b", "x y z"), ("c", ""), ("d", "日"), ("e", "%zz%2")];
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
            .collect();
        assert_eq!(pairs, expected);
    }
}
