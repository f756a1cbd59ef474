//! What is asked of a server, whatever its protocol: the kinds of operations, and their mix.

use std::{fmt, str::FromStr};

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads a value.
    Get,
    /// Writes a value.
    Set,
    /// Removes a record.
    Delete,
    /// Adds 1 to a number.
    Increment,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Get, Self::Set, Self::Delete, Self::Increment];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
            Self::Delete => "delete",
            Self::Increment => "increment",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation<'a> {
    pub(super) kind: Kind,
    pub(super) key: &'a [u8],
    /// The value, if it sets one.
    pub(super) value: &'a [u8],
}

/// A server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It succeeded, or there is a value.
    Done,
    /// There is no such record.
    Miss,
    /// It was refused, for this reason.
    Refused(String),
}

/// The proportions in which the kinds are mixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    parts: Vec<(Kind, u32)>,
    total: u32,
}

/// The text is not a mix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a mix is made of get, set, delete and increment with their parts, as in get=9,set=1")]
pub struct MixError;

/// Maximum proportion of a kind.
const PART_MAX: u32 = 1_000_000;

impl Mix {
    /// A mix of one kind only.
    #[must_use]
    pub fn only(kind: Kind) -> Self {
        Self { parts: vec![(kind, 1)], total: 1 }
    }

    /// The kinds, with their proportions.
    #[must_use]
    pub fn parts(&self) -> &[(Kind, u32)] {
        &self.parts
    }

    /// Picks a kind in proportion to its part: `draw` is any random number.
    pub(super) fn at(&self, draw: u64) -> Kind {
        let mut place = (draw % u64::from(self.total)) as u32;
        for &(kind, part) in &self.parts {
            if place < part {
                return kind;
            }
            place -= part;
        }
        unreachable!("the parts add up to the total")
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (kind, part)) in self.parts.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{kind}={part}")?;
        }
        Ok(())
    }
}

impl FromStr for Mix {
    type Err = MixError;

    fn from_str(text: &str) -> Result<Self, MixError> {
        let mut parts = Vec::new();
        for item in text.split(',') {
            let (name, part) = item.split_once('=').unwrap_or((item, "1"));
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or(MixError)?;
            let part: u32 = part.parse().map_err(|_| MixError)?;
            if !(1..=PART_MAX).contains(&part) {
                return Err(MixError);
            }
            parts.push((kind, part));
        }
        let total = parts.iter().map(|(_, part)| part).sum();
        Ok(Self { parts, total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_has_its_parts() {
        let mix: Mix = "get=9,set=1".parse().unwrap();
        let gets = (0..1000).filter(|draw| mix.at(*draw) == Kind::Get).count();
        assert_eq!(gets, 900);
        assert_eq!(mix.to_string(), "get=9,set=1");
        assert_eq!("set".parse::<Mix>(), Ok(Mix::only(Kind::Set)));
        for text in ["", "get=0", "get=-1", "put=1", "get=1,", "get=1;set=1", "get=1000001"] {
            assert_eq!(text.parse::<Mix>(), Err(MixError), "{text}");
        }
    }
}
