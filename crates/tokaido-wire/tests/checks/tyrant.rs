//! What must hold for Tokyo Tyrant's codecs on any bytes. Each check panics if it does not.
//!
//! Two programs share this file: `tests/tyrant.rs`, which needs only the stable toolchain, and the
//! fuzz targets in `fuzz/`, which include it by its path.

use tokaido_wire::tyrant::{
    binary::{self, BinaryError},
    number,
    text::{self, TextError},
    update_log,
};

/// A limit that short inputs can reach.
const REQUEST_LEN_MAX: usize = 200;

/// Sizes of the pieces in which a stream may arrive; each list is repeated.
const ARRIVALS: [&[usize]; 4] = [&[1], &[2, 3], &[7, 1, 1, 13], &[64, 5]];

/// However the bytes are split, the requests and the end are the same.
pub(crate) fn check_binary(data: &[u8]) {
    let whole = read_binary(data, &[data.len().max(1)]);
    for pieces in ARRIVALS {
        assert_eq!(read_binary(data, pieces), whole, "in pieces of {pieces:?}");
    }
}

/// The requests of a stream as texts, and then the number of bytes left or the error.
fn read_binary(data: &[u8], pieces: &[usize]) -> (Vec<String>, Result<usize, BinaryError>) {
    let mut decoder = binary::Decoder::new(REQUEST_LEN_MAX);
    let (mut requests, mut start, mut arrived) = (Vec::new(), 0, 0);
    for piece in pieces.iter().cycle() {
        arrived = data.len().min(arrived + piece);
        loop {
            match decoder.decode(&data[start..arrived]) {
                Ok(binary::Decoded::Incomplete) => break,
                Ok(binary::Decoded::Complete { consumed, request }) => {
                    assert!(0 < consumed && consumed <= (arrived - start).min(REQUEST_LEN_MAX));
                    assert_eq!(request.items.count(), request.items.left());
                    let parts = request.parts().concat().len();
                    let items: usize = request.items.map(|item| item.len() + 4).sum();
                    assert!(parts + items + 2 <= consumed);
                    check_number(request.numbers());
                    let shown = format!("{request:?}");
                    // A request that has to run elsewhere is decoded again there.
                    let again = decoder.decode(&data[start..arrived]).expect("it was whole");
                    assert!(format!("{again:?}").contains(&shown));
                    requests.push(shown);
                    start += consumed;
                }
                Err(error) => return (requests, Err(error)),
            }
        }
        if arrived == data.len() {
            break;
        }
    }
    (requests, Ok(data.len() - start))
}

/// A number that is written can be read again, and does not change any more after that.
fn check_number([integer, fraction, _]: [i64; 3]) {
    let once = number::unpack(number::pack(number::unpack([integer, fraction])));
    let twice = number::unpack(number::pack(once));
    assert!(once.is_nan() == twice.is_nan());
    assert!(once.is_nan() || once.is_infinite() || (once - twice).abs() <= 1e-11);
}

/// An update log cut off anywhere has the same entries up to there, and each message is a request or an error.
pub(crate) fn check_update_log(data: &[u8]) {
    let (mut at, mut message) = (0, Vec::new());
    loop {
        let rest = &data[at..];
        let decoded = update_log::decode(rest, REQUEST_LEN_MAX);
        let Ok(update_log::Decoded::Complete { consumed, entry }) = decoded else { break };
        for end in 0..consumed {
            let cut = update_log::decode(&rest[..end], REQUEST_LEN_MAX);
            assert_eq!(cut, Ok(update_log::Decoded::Incomplete));
        }
        let exact = update_log::decode(&rest[..consumed], REQUEST_LEN_MAX);
        assert_eq!(exact, decoded);
        if entry.request(&mut message).is_ok() {
            assert!(message.len() < consumed);
            let _ = binary::Decoder::new(REQUEST_LEN_MAX).decode(&message);
        }
        at += consumed;
    }
}

/// However the bytes of lines are split, the requests and the end are the same, too.
pub(crate) fn check_text(data: &[u8]) {
    let whole = read_text(data, &[data.len().max(1)]);
    for pieces in ARRIVALS {
        assert_eq!(read_text(data, pieces), whole, "in pieces of {pieces:?}");
    }
}

fn read_text(data: &[u8], pieces: &[usize]) -> (Vec<String>, Result<usize, TextError>) {
    let mut decoder = text::Decoder::new(REQUEST_LEN_MAX);
    let (mut requests, mut start, mut arrived) = (Vec::new(), 0, 0);
    for piece in pieces.iter().cycle() {
        arrived = data.len().min(arrived + piece);
        loop {
            match decoder.decode(&data[start..arrived]) {
                Ok(text::Decoded::Incomplete) => break,
                Ok(text::Decoded::Complete { consumed, is_quiet, request }) => {
                    assert!(0 < consumed && consumed <= (arrived - start).min(REQUEST_LEN_MAX));
                    let shown = format!("{is_quiet} {request:?}");
                    let again = decoder.decode(&data[start..arrived]).expect("it was whole");
                    assert!(format!("{again:?}").contains(&format!("{request:?}")));
                    requests.push(shown);
                    start += consumed;
                }
                Err(error) => return (requests, Err(error)),
            }
        }
        if arrived == data.len() {
            break;
        }
    }
    (requests, Ok(data.len() - start))
}
