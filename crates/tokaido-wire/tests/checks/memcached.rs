//! What must hold for the memcached codec on any bytes. Each check panics if it does not.
//!
//! Two programs share this file: `tests/memcached.rs`, which needs only the stable toolchain, and
//! the fuzz targets in `fuzz/`, which include it by its path.

use tokaido_wire::memcached::{
    BinaryDecoded, BinaryDecoder, BinaryRequest, Credentials, Decoded, KEY_LEN_MAX, Limits,
    ProtocolError, Request, TextDecoder,
};

/// Limits that short inputs can reach.
const SMALL: Limits = Limits { value_len_max: 6, keys_line_len_max: 2100 };

/// Sizes of the pieces in which a stream may arrive; each list is repeated.
const ARRIVALS: [&[usize]; 4] = [&[1], &[2, 3], &[7, 1, 1, 13], &[64, 5]];

/// The requests of a stream as texts, and then the number of bytes left or the error.
type Stream = (Vec<String>, Result<usize, ProtocolError>);

/// Feeds `data` in pieces to `decode`, which returns an item and its length, or only a length.
fn read_stream(
    data: &[u8],
    pieces: &[usize],
    mut decode: impl FnMut(&[u8]) -> Result<Option<(Option<String>, usize)>, ProtocolError>,
) -> Stream {
    let (mut items, mut start, mut arrived) = (Vec::new(), 0, 0);
    for piece in pieces.iter().cycle() {
        arrived = data.len().min(arrived + piece);
        loop {
            match decode(&data[start..arrived]) {
                Ok(Some((item, len))) => {
                    assert!(0 < len && len <= arrived - start, "an item of {len} bytes");
                    items.extend(item);
                    start += len;
                }
                Ok(None) => break,
                Err(error) => return (items, Err(error)),
            }
        }
        if arrived == data.len() {
            break;
        }
    }
    (items, Ok(data.len() - start))
}

fn read_text(data: &[u8], limits: Limits, pieces: &[usize]) -> Stream {
    let mut decoder = TextDecoder::new(limits);
    read_stream(data, pieces, |input| {
        Ok(match decoder.decode(input)? {
            Decoded::Incomplete => None,
            Decoded::Skipped { consumed } => Some((None, consumed)),
            Decoded::Complete { consumed, command, is_quiet, request } => {
                check_limits(&request, limits);
                let name = command.map(|command| command.name);
                let item = format!("{name:?} {is_quiet} {request:?}");
                let skip = if let Request::Refused { skip, .. } = request { skip } else { 0 };
                // A request that has to run elsewhere is decoded again there.
                let again = decoder.decode(input)?;
                assert!(format!("{again:?}").contains(&format!("{request:?}")));
                decoder.skip(skip);
                Some((Some(item), consumed))
            }
        })
    })
}

fn check_limits(request: &Request<'_>, limits: Limits) {
    match request {
        Request::Get { keys, .. } => {
            for key in *keys {
                assert!(!key.is_empty() && key.len() <= KEY_LEN_MAX);
            }
        }
        Request::Store(store) | Request::MetaSet(_, store) => {
            assert!(store.key.len() <= KEY_LEN_MAX && store.value.len() <= limits.value_len_max);
        }
        Request::MetaGet(meta) => assert!(!meta.key.bytes().is_empty()),
        _ => {}
    }
}

fn read_credentials(data: &[u8], pieces: &[usize]) -> Stream {
    let mut decoder = TextDecoder::new(Limits::default());
    read_stream(data, pieces, |input| {
        let credentials = decoder.decode_credentials(input)?;
        let item = Some(format!("{credentials:?}"));
        Ok(match credentials {
            Credentials::Incomplete => None,
            Credentials::Given { consumed, .. }
            | Credentials::Unterminated { consumed }
            | Credentials::Other { consumed } => Some((item, consumed)),
        })
    })
}

/// However a stream of the text protocol is split, it gives the same requests and the same error.
pub(crate) fn check_text(data: &[u8]) {
    for limits in [Limits::default(), SMALL] {
        let whole = read_text(data, limits, &[data.len().max(1)]);
        for pieces in ARRIVALS {
            assert_eq!(read_text(data, limits, pieces), whole, "in pieces of {pieces:?}");
        }
    }
    let whole = read_credentials(data, &[data.len().max(1)]);
    for pieces in ARRIVALS {
        assert_eq!(read_credentials(data, pieces), whole, "in pieces of {pieces:?}");
    }
}

fn read_binary(data: &[u8], value_len_max: usize, pieces: &[usize]) -> Stream {
    let mut decoder = BinaryDecoder::default();
    read_stream(data, pieces, |input| {
        Ok(match decoder.decode(input, value_len_max)? {
            BinaryDecoded::Incomplete => None,
            BinaryDecoded::Skipped { consumed } => Some((None, consumed)),
            BinaryDecoded::Complete { consumed, echo, operation, request } => {
                if let BinaryRequest::Store(store) = &request {
                    assert!(store.key.len() <= KEY_LEN_MAX && store.value.len() <= value_len_max);
                }
                let name = operation.map(|operation| operation.name);
                let item = format!("{echo:?} {name:?} {request:?}");
                let skip = if let BinaryRequest::Refused { skip, .. } = request { skip } else { 0 };
                // A request that has to run elsewhere is decoded again there.
                let again = decoder.decode(input, value_len_max)?;
                assert!(format!("{again:?}").contains(&format!("{request:?}")));
                decoder.skip(skip);
                Some((Some(item), consumed))
            }
        })
    })
}

/// However a stream of the binary protocol is split, it gives the same requests and the same error.
pub(crate) fn check_binary(data: &[u8]) {
    for value_len_max in [1 << 20, 6] {
        let whole = read_binary(data, value_len_max, &[data.len().max(1)]);
        for pieces in ARRIVALS {
            assert_eq!(read_binary(data, value_len_max, pieces), whole, "in pieces of {pieces:?}");
        }
    }
}
