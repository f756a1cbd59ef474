//! Which events are wanted, given by the letters of `notify-keyspace-events`.

use std::fmt;

/// Classes of events, and the two forms in which they are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes(u16);

/// The valid letters of the setting, as in Redis's error message.
pub(crate) const LETTERS: &str = "Ag$lshzxeKEtmdn";

/// The letters of single classes, in the order in which Redis shows them. `A` is all but the last four.
const SINGLE: [(char, Classes); 14] = [
    ('g', Classes::GENERIC),
    ('$', Classes::STRING),
    ('l', Classes::LIST),
    ('s', Classes::SET),
    ('h', Classes::HASH),
    ('z', Classes::SORTED_SET),
    ('x', Classes::EXPIRED),
    ('e', Classes(1 << 7)),
    ('t', Classes::STREAM),
    ('d', Classes(1 << 9)),
    ('n', Classes(1 << 10)),
    ('K', Classes::KEYSPACE),
    ('E', Classes::KEYEVENT),
    ('m', Classes(1 << 13)),
];

impl Classes {
    pub(super) const GENERIC: Self = Self(1 << 0);
    pub(super) const STRING: Self = Self(1 << 1);
    pub(super) const LIST: Self = Self(1 << 2);
    pub(super) const SET: Self = Self(1 << 3);
    pub(super) const HASH: Self = Self(1 << 4);
    pub(super) const SORTED_SET: Self = Self(1 << 5);
    pub(super) const EXPIRED: Self = Self(1 << 6);
    pub(super) const STREAM: Self = Self(1 << 8);
    /// Messages in the channel of the key.
    pub(super) const KEYSPACE: Self = Self(1 << 11);
    /// Messages in the channel of the event.
    pub(super) const KEYEVENT: Self = Self(1 << 12);

    const ALL: Self = Self((1 << 10) - 1);
    const NONE: Self = Self(0);

    /// The classes of these letters, or `None` if one of them is invalid.
    pub(crate) fn parse(letters: &str) -> Option<Self> {
        letters.chars().try_fold(Self::NONE, |classes, letter| {
            let found = SINGLE.iter().find(|(known, _)| *known == letter);
            let all = (letter == 'A').then_some(Self::ALL);
            found.map(|(_, class)| *class).or(all).map(|class| Self(classes.0 | class.0))
        })
    }

    pub(super) fn has(self, class: Self) -> bool {
        self.0 & class.0 == class.0
    }

    pub(super) fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    pub(super) fn bits(self) -> u16 {
        self.0
    }

    /// Whether anything is published at all.
    pub(super) fn wants_any(self) -> bool {
        self.has(Self::KEYSPACE) || self.has(Self::KEYEVENT)
    }
}

impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_all = self.has(Self::ALL);
        if has_all {
            f.write_str("A")?;
        }
        for (letter, class) in SINGLE {
            if self.has(class) && !(has_all && Self::ALL.has(class)) {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_shown_as_redis_shows_them() {
        for (given, shown) in [
            ("", ""),
            ("KEA", "AKE"),
            ("AK", "AK"),
            ("EKx", "xKE"),
            ("g$lshzxetd", "A"),
            ("EKnm", "nKEm"),
            ("zhsl$g", "g$lshz"),
        ] {
            assert_eq!(Classes::parse(given).map(|c| c.to_string()), Some(shown.to_owned()));
        }
        assert_eq!(Classes::parse("Kq"), None);
    }
}
