//! What must hold for the Redis codec on any bytes. Each check panics if it does not.
//!
//! Two programs share this file: `tests/properties.rs`, which needs only the stable toolchain, and
//! the fuzz targets in `fuzz/`, which include it by its path.

use tokaido_wire::resp::{
    Decoded, Limits, ProtocolError, Reply, ReplyDecoder, ReplyWriter, Request, RequestBuf,
    RequestDecoder, Version, encode_command,
};

/// Limits that short inputs can reach.
const SMALL: Limits =
    Limits { arguments_max: 3, argument_len_max: 6, inline_len_max: 12, request_len_max: 40 };

/// Sizes of the pieces in which a stream may arrive; each list is repeated.
const ARRIVALS: [&[usize]; 4] = [&[1], &[2, 3], &[7, 1, 1, 13], &[64, 5]];

/// The contents of a stream: its items, and then the number of bytes left or the error.
#[derive(Debug, PartialEq)]
struct Stream<T> {
    items: Vec<T>,
    end: Result<usize, ProtocolError>,
}

/// Feeds `data` in pieces to `decode`, which returns an item and its length if one is complete.
fn read_stream<T>(
    data: &[u8],
    pieces: &[usize],
    mut decode: impl FnMut(&[u8]) -> Result<Option<(T, usize)>, ProtocolError>,
) -> Stream<T> {
    let mut items = Vec::new();
    let mut start = 0;
    let mut arrived = 0;
    for piece in pieces.iter().cycle() {
        arrived = data.len().min(arrived + piece);
        loop {
            match decode(&data[start..arrived]) {
                Ok(Some((item, len))) => {
                    assert!(0 < len && len <= arrived - start, "an item of {len} bytes");
                    items.push(item);
                    start += len;
                }
                Ok(None) => break,
                Err(error) => return Stream { items, end: Err(error) },
            }
        }
        if arrived == data.len() {
            break;
        }
    }
    Stream { items, end: Ok(data.len() - start) }
}

fn read_requests(data: &[u8], limits: Limits, pieces: &[usize]) -> Stream<RequestBuf> {
    let mut decoder = RequestDecoder::new(limits);
    read_stream(data, pieces, |input| {
        Ok(match decoder.decode(input)? {
            Decoded::Complete { consumed } => Some((decoder.request(input).into(), consumed)),
            Decoded::Incomplete => None,
        })
    })
}

fn read_replies(data: &[u8], pieces: &[usize]) -> Stream<Reply> {
    let mut decoder = ReplyDecoder::new();
    read_stream(data, pieces, |input| decoder.decode(input))
}

/// However a stream of requests is split, it gives the same requests and the same error, and all
/// are within the limits. Each is the same again when it is built from its arguments, and when it
/// is encoded and decoded.
pub(crate) fn check_requests(data: &[u8]) {
    for limits in [Limits::default(), SMALL] {
        let whole = read_requests(data, limits, &[data.len().max(1)]);
        for pieces in ARRIVALS {
            assert_eq!(read_requests(data, limits, pieces), whole, "in pieces of {pieces:?}");
        }
        let mut encoded = Vec::new();
        for request in &whole.items {
            let arguments: Vec<&[u8]> = request.as_request().iter().collect();
            assert!(arguments.len() <= limits.arguments_max);
            assert!(arguments.iter().all(|argument| argument.len() <= limits.argument_len_max));
            assert_eq!(RequestBuf::from(Request::from_arguments(&arguments)), *request);
            encode_command(&mut encoded, &arguments);
        }
        let again = read_requests(&encoded, Limits::default(), &[encoded.len().max(1)]);
        assert_eq!(again, Stream { items: whole.items, end: Ok(0) });
    }
}

/// However a stream of replies is split, it gives the same replies and the same error, and what is
/// written for them in either version can be read again.
pub(crate) fn check_replies(data: &[u8]) {
    let whole = read_replies(data, &[data.len().max(1)]);
    for pieces in ARRIVALS {
        // As texts, because a NaN is not equal to itself.
        let split = format!("{:?}", read_replies(data, pieces));
        assert_eq!(split, format!("{whole:?}"), "in pieces of {pieces:?}");
    }
    let written = write_replies(&whole.items, Version::Resp3);
    let again = read_replies(&written, &[written.len().max(1)]);
    assert_eq!(again.end, Ok(0), "{}", written.escape_ascii());
    let rewritten = write_replies(&again.items, Version::Resp3);
    assert_eq!(rewritten.escape_ascii().to_string(), written.escape_ascii().to_string());

    let written = write_replies(&whole.items, Version::Resp2);
    let again = read_replies(&written, &[written.len().max(1)]);
    assert_eq!(again.end, Ok(0), "{}", written.escape_ascii());
    assert_eq!(again.items.len(), whole.items.len());
}

/// The bytes that a server would send for these replies.
pub(crate) fn write_replies(replies: &[Reply], version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = ReplyWriter::new(&mut out, version);
    replies.iter().for_each(|reply| write_reply(&mut writer, reply));
    out
}

fn write_reply(writer: &mut ReplyWriter<'_>, reply: &Reply) {
    match reply {
        Reply::Simple(text) => writer.simple(text),
        Reply::Error(text) => writer.error(text),
        Reply::Integer(value) => writer.integer(*value),
        Reply::Bulk(bytes) => writer.bulk(bytes),
        Reply::Null => writer.null(),
        Reply::Double(value) => writer.double(*value),
        Reply::Boolean(value) => writer.boolean(*value),
        Reply::BigNumber(digits) => writer.big_number(digits),
        Reply::Verbatim { format, text } => writer.verbatim(format, text),
        Reply::Array(elements) => {
            writer.array(elements.len());
            elements.iter().for_each(|element| write_reply(writer, element));
        }
        Reply::Set(elements) => {
            writer.set(elements.len());
            elements.iter().for_each(|element| write_reply(writer, element));
        }
        Reply::Push(elements) => {
            writer.push(elements.len());
            elements.iter().for_each(|element| write_reply(writer, element));
        }
        Reply::Map(pairs) => {
            writer.map(pairs.len());
            for (key, value) in pairs {
                write_reply(writer, key);
                write_reply(writer, value);
            }
        }
    }
}
