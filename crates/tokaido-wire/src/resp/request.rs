//! A request: a name and its arguments, all of them byte strings.

use std::{
    fmt,
    ops::{Index, Range},
};

/// The position of an argument. It is half the size of a `Range<usize>`, which matters for
/// requests with a million short arguments; so requests are limited to 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Both ends must be at most `u32::MAX`: the decoder's limits and `RequestBuf` ensure it.
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

/// A request, borrowed from the bytes it arrived in or from the owner of its arguments.
#[derive(Clone, Copy)]
pub struct Request<'a>(Form<'a>);

/// As large as its first variant: a null pointer in it marks the second one.
#[derive(Clone, Copy)]
enum Form<'a> {
    /// Parts of one buffer, as a decoder finds them.
    Spans { bytes: &'a [u8], spans: &'a [Span] },
    /// Separate slices.
    Slices(&'a [&'a [u8]]),
}

impl<'a> Request<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Self(Form::Spans { bytes, spans })
    }

    /// Creates a request from arguments, the name first. It serves callers without a
    /// connection, such as scripts.
    #[inline]
    #[must_use]
    pub fn from_arguments(arguments: &'a [&'a [u8]]) -> Self {
        Self(Form::Slices(arguments))
    }

    /// The number of arguments, the name included.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        match self.0 {
            Form::Spans { spans, .. } => spans.len(),
            Form::Slices(slices) => slices.len(),
        }
    }

    /// Whether there is nothing, not even a name: an empty line or an empty array. Redis
    /// ignores such a request without a reply.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The argument at `index`; the name is at 0.
    #[inline]
    #[must_use]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        match self.0 {
            Form::Spans { bytes, spans } => spans.get(index).map(|span| span.of(bytes)),
            Form::Slices(slices) => slices.get(index).copied(),
        }
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
        self.arguments_from(0)
    }

    /// The arguments after the name.
    #[inline]
    #[must_use]
    pub fn arguments(self) -> Arguments<'a> {
        self.arguments_from(1)
    }

    /// The arguments from `index` on; none if there are fewer.
    #[inline]
    #[must_use]
    pub fn arguments_from(self, index: usize) -> Arguments<'a> {
        Arguments { request: self, places: index.min(self.len())..self.len() }
    }
}

impl Index<usize> for Request<'_> {
    type Output = [u8];

    /// # Panics
    ///
    /// If there is no such argument, as a slice does.
    #[inline]
    fn index(&self, index: usize) -> &[u8] {
        match self.0 {
            Form::Spans { bytes, spans } => spans[index].of(bytes),
            Form::Slices(slices) => slices[index],
        }
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
    request: Request<'a>,
    places: Range<usize>,
}

impl<'a> Iterator for Arguments<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.places.next().and_then(|place| self.request.get(place))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }
}

impl DoubleEndedIterator for Arguments<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.places.next_back().and_then(|place| self.request.get(place))
    }
}

impl ExactSizeIterator for Arguments<'_> {}

/// A request that owns its bytes, to outlive the buffer it arrived in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestBuf {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl RequestBuf {
    /// The request in the form that a decoder returns.
    #[must_use]
    pub fn as_request(&self) -> Request<'_> {
        Request::new(&self.bytes, &self.spans)
    }
}

impl From<Request<'_>> for RequestBuf {
    /// # Panics
    ///
    /// If the arguments total 4 GiB or more, which no protocol allows.
    fn from(request: Request<'_>) -> Self {
        let len = request.iter().map(<[u8]>::len).sum();
        assert!(u32::try_from(len).is_ok(), "the arguments of a request are {len} bytes long");
        let mut owned =
            Self { bytes: Vec::with_capacity(len), spans: Vec::with_capacity(request.len()) };
        for argument in request {
            let start = owned.bytes.len();
            owned.bytes.extend_from_slice(argument);
            owned.spans.push(Span::new(start, owned.bytes.len()));
        }
        owned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_gives_its_arguments_wherever_they_are() {
        let arguments: [&[u8]; 4] = [b"SET", b"key", b"", b"\x00v"];
        let borrowed = Request::from_arguments(&arguments);
        let owned = RequestBuf::from(borrowed);
        for request in [borrowed, owned.as_request()] {
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
    }

    #[test]
    fn an_empty_request_has_an_empty_name() {
        let owned = RequestBuf::default();
        for request in [Request::from_arguments(&[]), owned.as_request()] {
            assert!(request.is_empty());
            assert_eq!(request.name(), b"");
            assert_eq!(request.arguments().count(), 0);
        }
    }

    #[test]
    fn a_request_is_two_slices_long() {
        assert_eq!(size_of::<Request<'_>>(), 2 * size_of::<&[u8]>());
    }
}
