//! `if-match` and `if-none-match` (RFC 9110, 13.1), and the entity tags that they compare.

use hyper::{
    HeaderMap,
    header::{self, HeaderName, HeaderValue},
};
use tokaido_store::CommitNumber;

use super::error::HttpError;

/// The version of a record as an entity tag. It is a strong tag: it changes with every write.
pub(super) fn etag(version: CommitNumber) -> HeaderValue {
    let mut digits = itoa::Buffer::new();
    let text = ["\"", digits.format(version), "\""].concat();
    // Digits and quotes are a valid header value.
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// What must be true of the record for the request to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Preconditions {
    if_match: Option<Tags>,
    if_none_match: Option<Tags>,
}

/// What one of the two headers names.
#[derive(Debug, PartialEq, Eq)]
enum Tags {
    /// `*`: any record.
    Any,
    /// The tags of the list that a record could have. Others are valid tags, too, but never
    /// match.
    Of(Vec<Tag>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag {
    version: CommitNumber,
    is_weak: bool,
}

impl Preconditions {
    /// # Errors
    /// 400 for what is neither `*` nor a list of tags.
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, HttpError> {
        let if_match = Tags::read(headers, &header::IF_MATCH)?;
        let if_none_match = Tags::read(headers, &header::IF_NONE_MATCH)?;
        Ok(Self { if_match, if_none_match })
    }

    /// Whether there are any, so that a record has to be read for them.
    pub(super) fn are_given(&self) -> bool {
        self.if_match.is_some() || self.if_none_match.is_some()
    }

    /// Whether `if-match` holds for the current version. A weak tag says that content is
    /// equivalent, and so never that a record is the same.
    pub(super) fn matches(&self, found: Option<CommitNumber>) -> bool {
        let is_met = |tags: &Tags| match tags {
            Tags::Any => found.is_some(),
            Tags::Of(tags) => tags.iter().any(|tag| !tag.is_weak && found == Some(tag.version)),
        };
        self.if_match.as_ref().is_none_or(is_met)
    }

    /// Whether `if-none-match` holds for the current version.
    pub(super) fn differs(&self, found: Option<CommitNumber>) -> bool {
        let is_met = |tags: &Tags| match tags {
            Tags::Any => found.is_some(),
            Tags::Of(tags) => tags.iter().any(|tag| found == Some(tag.version)),
        };
        !self.if_none_match.as_ref().is_some_and(is_met)
    }
}

impl Tags {
    /// Reads the header, all its lines together.
    fn read(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Self>, HttpError> {
        let mut lines = headers.get_all(name).iter().peekable();
        if lines.peek().is_none() {
            return Ok(None);
        }
        let list = lines.map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b',');
        Self::parse(&list).map(Some).ok_or_else(|| {
            HttpError::bad_request(format!("{name} takes \"*\", or etags in double quotes"))
        })
    }

    fn parse(list: &[u8]) -> Option<Self> {
        let mut rest = list.trim_ascii();
        if rest == b"*" {
            return Some(Self::Any);
        }
        let (mut tags, mut count) = (Vec::new(), 0);
        while !rest.is_empty() {
            if let Some(behind) = rest.strip_prefix(b",") {
                rest = behind.trim_ascii_start();
                continue;
            }
            let (tag, behind) = take_tag(rest)?;
            tags.extend(tag);
            count += 1;
            rest = behind.trim_ascii_start();
            if !rest.is_empty() && !rest.starts_with(b",") {
                return None;
            }
        }
        (count > 0).then_some(Self::Of(tags))
    }
}

/// The first tag of a list, if this server could have issued it, and what follows it.
fn take_tag(list: &[u8]) -> Option<(Option<Tag>, &[u8])> {
    let opaque = list.strip_prefix(b"W/");
    let is_weak = opaque.is_some();
    let inner = opaque.unwrap_or(list).strip_prefix(b"\"")?;
    let (inner, behind) = inner.split_at(memchr::memchr(b'"', inner)?);
    if inner.iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
        return None;
    }
    let version = std::str::from_utf8(inner).ok().and_then(|digits| digits.parse().ok());
    // A number with a sign or with leading zeros is another tag.
    let tag = version
        .filter(|&version: &CommitNumber| version.to_string().as_bytes() == inner)
        .map(|version| Tag { version, is_weak });
    Some((tag, &behind[1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(list: &str) -> Option<Tags> {
        Tags::parse(list.as_bytes())
    }

    fn of(versions: &[CommitNumber]) -> Option<Tags> {
        let tags = versions.iter().map(|&version| Tag { version, is_weak: false });
        Some(Tags::Of(tags.collect()))
    }

    #[test]
    fn a_list_has_the_tags_that_a_record_could_have() {
        assert_eq!(Tags::parse(etag(42).as_bytes()), of(&[42]));
        assert_eq!(tags("*"), Some(Tags::Any));
        assert_eq!(tags("W/\"42\""), Some(Tags::Of(vec![Tag { version: 42, is_weak: true }])));
        assert_eq!(tags("\"1\",, \"2\"\t,"), of(&[1, 2]));
        assert_eq!(tags("\"a,b\" , \"3\", \"\", \"+4\", \"05\", \"-1\""), of(&[3]));
        for broken in [
            "",
            " ",
            ",",
            "42",
            "\"",
            "\"1\" \"2\"",
            "*, \"1\"",
            "\"1\", *",
            "w/\"1\"",
            "\"a b\"",
            "W/",
            "W/1",
        ] {
            assert_eq!(tags(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn weak_tags_tell_what_differs_and_never_what_matches() {
        let both = |list: &str| Preconditions { if_match: tags(list), if_none_match: tags(list) };
        let strong = both("\"1\", \"2\"");
        assert!(strong.matches(Some(2)) && !strong.differs(Some(2)));
        assert!(!strong.matches(Some(3)) && strong.differs(Some(3)));
        assert!(!strong.matches(None) && strong.differs(None));
        let weak = both("W/\"2\"");
        assert!(!weak.matches(Some(2)) && !weak.differs(Some(2)));
        let any = both("*");
        assert!(any.matches(Some(2)) && !any.differs(Some(2)));
        assert!(!any.matches(None) && any.differs(None));
    }
}
