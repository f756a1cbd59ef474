//! A request: a name and its arguments, all of them byte strings.

use std::{fmt, ops::Index};

/// Where an argument is. Half the size of a `Range<usize>`, which counts when a request has a
/// million arguments of a few bytes each; so requests are limited to what 32 bits can address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Both ends must be at most `u32::MAX`: the decoder's limits and `RequestBuf` see to it.
    #[inline]
    pub(super) fn new(start: usize, end: usize) -> Self {
        debug_assert!(start <= end && u32::try_from(end).is_ok());
        Self { start: start as u32, end: end as u32 }
    }

    #[inline]
    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// A request, borrowed from the bytes it came in.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Request<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Self { bytes, spans }
    }

    /// The number of arguments, the name included.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.spans.len()
    }

    /// Whether there is nothing, not even a name: an empty line, or an array of none. Redis
    /// ignores such a request without a reply.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `index`; the name is at 0.
    #[inline]
    #[must_use]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| span.of(self.bytes))
    }

    /// The name of the command as it was sent, in any case; empty if the request is.
    #[inline]
    #[must_use]
    pub fn name(self) -> &'a [u8] {
        self.get(0).unwrap_or_default()
    }

    /// All arguments, beginning with the name.
    #[inline]
    #[must_use]
    pub fn iter(self) -> Arguments<'a> {
        Arguments { bytes: self.bytes, spans: self.spans.iter() }
    }

    /// The arguments after the name.
    #[inline]
    #[must_use]
    pub fn arguments(self) -> Arguments<'a> {
        self.arguments_from(1)
    }

    /// The arguments from `index` on; none if there are not so many.
    #[inline]
    #[must_use]
    pub fn arguments_from(self, index: usize) -> Arguments<'a> {
        Arguments { bytes: self.bytes, spans: self.spans.get(index..).unwrap_or_default().iter() }
    }
}

impl Index<usize> for Request<'_> {
    type Output = [u8];

    /// # Panics
    ///
    /// If there is no such argument, as a slice does.
    #[inline]
    fn index(&self, index: usize) -> &[u8] {
        self.spans[index].of(self.bytes)
    }
}

impl<'a> IntoIterator for Request<'a> {
    type Item = &'a [u8];
    type IntoIter = Arguments<'a>;

    fn into_iter(self) -> Arguments<'a> {
        self.iter()
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.iter().map(<[u8]>::escape_ascii);
        f.debug_list().entries(texts.map(|text| text.to_string())).finish()
    }
}

/// Some of the arguments of a request, in order.
#[derive(Clone, Debug)]
pub struct Arguments<'a> {
    bytes: &'a [u8],
    spans: std::slice::Iter<'a, Span>,
}

impl<'a> Iterator for Arguments<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.spans.next().map(|span| span.of(self.bytes))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl DoubleEndedIterator for Arguments<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.spans.next_back().map(|span| span.of(self.bytes))
    }
}

impl ExactSizeIterator for Arguments<'_> {}

/// A request that owns its bytes: for callers that have arguments and no connection, and for
/// requests that have to outlive the buffer they came in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestBuf {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl RequestBuf {
    /// Copies the arguments, the name first.
    ///
    /// # Panics
    ///
    /// If they are 4 GiB or more together, which no protocol lets through.
    #[must_use]
    pub fn from_arguments(arguments: &[&[u8]]) -> Self {
        let len = arguments.iter().map(|argument| argument.len()).sum();
        assert!(u32::try_from(len).is_ok(), "the arguments of a request are {len} bytes long");
        let mut request =
            Self { bytes: Vec::with_capacity(len), spans: Vec::with_capacity(arguments.len()) };
        for argument in arguments {
            let start = request.bytes.len();
            request.bytes.extend_from_slice(argument);
            request.spans.push(Span::new(start, request.bytes.len()));
        }
        request
    }

    /// The request as a decoder would give it.
    #[must_use]
    pub fn as_request(&self) -> Request<'_> {
        Request::new(&self.bytes, &self.spans)
    }
}

impl From<Request<'_>> for RequestBuf {
    fn from(request: Request<'_>) -> Self {
        Self::from_arguments(&request.iter().collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_gives_its_arguments() {
        let owned = RequestBuf::from_arguments(&[b"SET", b"key", b"", b"\x00v"]);
        let request = owned.as_request();
        assert_eq!(request.len(), 4);
        assert_eq!(request.name(), b"SET");
        assert_eq!(&request[1], b"key");
        assert_eq!(request.get(2), Some(&b""[..]));
        assert_eq!(request.get(4), None);
        assert_eq!(request.iter().len(), 4);
        let rest: Vec<_> = request.arguments().collect();
        assert_eq!(rest, [&b"key"[..], b"", b"\x00v"]);
        assert_eq!(request.arguments_from(3).next_back(), Some(&b"\x00v"[..]));
        assert_eq!(request.arguments_from(5).len(), 0);
        assert_eq!(format!("{request:?}"), r#"["SET", "key", "", "\\x00v"]"#);
        assert_eq!(RequestBuf::from(request), owned);
    }

    #[test]
    fn an_empty_request_has_an_empty_name() {
        let owned = RequestBuf::default();
        assert!(owned.as_request().is_empty());
        assert_eq!(owned.as_request().name(), b"");
        assert_eq!(owned.as_request().arguments().count(), 0);
    }
}
