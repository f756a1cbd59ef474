//! What conditions and indexes see in a text: its tokens, and for full-text search its folded form,
//! which ignores case, accents, width and the kind of white space.

/// Number of characters in a gram.
pub(crate) const GRAM_CHARS: usize = 3;

/// Small letters with marks, and the letter that they are treated as.
const ACCENTED: [(&str, char); 21] = [
    ("àáâãäåāăą", 'a'),
    ("çćĉċč", 'c'),
    ("ðďđ", 'd'),
    ("èéêëēĕėęě", 'e'),
    ("ĝğġģ", 'g'),
    ("ĥħ", 'h'),
    ("ìíîïĩīĭįı", 'i'),
    ("ĵ", 'j'),
    ("ķĸ", 'k'),
    ("ĺļľŀł", 'l'),
    ("ñńņňŉŋ", 'n'),
    ("òóôõöøōŏő", 'o'),
    ("ŕŗř", 'r'),
    ("ßśŝşšſ", 's'),
    ("ţťŧ", 't'),
    ("ùúûüũūŭůűų", 'u'),
    ("ŵ", 'w'),
    ("ýþÿŷ", 'y'),
    ("źżž", 'z'),
    ("\u{2010}\u{2015}\u{2212}", '-'),
    ("\u{2019}", '\''),
];

/// The full-width characters for the half-width forms from U+FF61 on, in order.
const HALFWIDTH: &str = "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノ\
                         ハヒフヘホマミムメモヤユヨラリルレロワン";

/// The half-width marks that voice the kana before them.
const VOICED_MARK: char = '\u{ff9e}';
const HALF_VOICED_MARK: char = '\u{ff9f}';

/// The text up to its first NUL, at which it ends for all comparisons except equality. Only a key
/// can contain one, since NULs separate columns.
pub(crate) fn until_nul(text: &[u8]) -> &[u8] {
    memchr::memchr(0, text).map_or(text, |end| &text[..end])
}

/// The tokens of a text, separated by white space, control characters and commas.
pub(crate) fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = until_nul(text).split(|byte| *byte <= b' ' || *byte == b',');
    parts.filter(|token| !token.is_empty())
}

/// The form in which full-text search compares texts. White space becomes one blank between words,
/// and none at either end.
pub(crate) fn folded(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(until_nul(text));
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let c = match c {
            '\0'..=' '
            | '\u{7f}'
            | '\u{a0}'
            | '\u{2002}'
            | '\u{2003}'
            | '\u{2009}'
            | '\u{3000}' => {
                if !out.is_empty() && !out.ends_with(' ') {
                    out.push(' ');
                }
                continue;
            }
            'a'..='z' | '0'..='9' => c,
            '\u{ff61}'..='\u{ff9d}' => {
                let kana = HALFWIDTH.chars().nth(c as usize - 0xff61).unwrap_or(c);
                let voiced = chars.peek().and_then(|mark| voiced(kana, *mark));
                if voiced.is_some() {
                    chars.next();
                }
                voiced.unwrap_or(kana)
            }
            '\u{ff01}'..='\u{ff5e}' => char::from((c as u32 - 0xff00) as u8 + b' '),
            '\u{2033}' => '"',
            c => c,
        };
        for c in c.to_lowercase().filter(|c| !('\u{300}'..='\u{36f}').contains(c)) {
            out.push(if c.is_ascii() { c } else { without_accent(c) });
        }
    }
    out.truncate(out.trim_end_matches(' ').len());
    out
}

/// A kana combined with the voiced mark after it.
fn voiced(kana: char, mark: char) -> Option<char> {
    let steps = match (mark, kana) {
        (VOICED_MARK, 'ウ') => return Some('ヴ'),
        (VOICED_MARK, 'カ'..='ト' | 'ハ'..='ホ') => 1,
        (HALF_VOICED_MARK, 'ハ'..='ホ') => 2,
        _ => return None,
    };
    char::from_u32(kana as u32 + steps)
}

fn without_accent(c: char) -> char {
    // All accented characters are in these two blocks.
    if !matches!(c, '\u{80}'..='\u{17f}' | '\u{2000}'..='\u{22ff}') {
        return c;
    }
    let found = ACCENTED.iter().find(|(accented, _)| accented.contains(c));
    found.map_or(c, |(_, plain)| *plain)
}

/// The grams of a folded text: three characters from each position on, and fewer at its end.
pub(crate) fn grams(folded: &str) -> impl Iterator<Item = &str> {
    folded.char_indices().map(|(start, _)| first_gram(&folded[start..]))
}

/// The first gram of a folded text.
pub(crate) fn first_gram(folded: &str) -> &str {
    folded.char_indices().nth(GRAM_CHARS).map_or(folded, |(end, _)| &folded[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stand_between_white_space_and_commas() {
        let found: Vec<_> = tokens(b" a,b\t\ncd ,\0e").collect();
        assert_eq!(found, [&b"a"[..], b"b", b"cd"]);
    }

    #[test]
    fn folding_leaves_no_difference_of_case_accent_width_and_space() {
        for (text, form) in [
            ("  Tokyo \u{3000}\n KYOTO\t", "tokyo kyoto"),
            ("Ｔｏｋｙｏ１２３！", "tokyo123!"),
            ("ÀÉÎÕÜ ñ Ç ÿ Š İ", "aeiou n c y s i"),
            ("ΑΒΓ АБВ Ж", "αβγ абв ж"),
            ("ﾄｳｶｲﾄﾞｳ ﾊﾟﾝ ｳﾞ ｱﾞ", "トウカイドウ パン ヴ ア\u{ff9e}"),
            ("東海道", "東海道"),
            ("a\u{2212}b", "a-b"),
        ] {
            assert_eq!(folded(text.as_bytes()), form);
        }
        assert_eq!(folded(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(HALFWIDTH.chars().count(), 0xff9d - 0xff61 + 1);
    }

    #[test]
    fn grams_have_three_characters_and_fewer_at_the_end() {
        assert_eq!(grams("東海道五").collect::<Vec<_>>(), ["東海道", "海道五", "道五", "五"]);
        assert_eq!(grams("").count(), 0);
    }
}
