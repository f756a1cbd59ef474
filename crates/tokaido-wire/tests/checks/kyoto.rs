//! What must hold for Kyoto Tycoon's codecs on any bytes. Each check panics if it does not.
//!
//! Two programs share this file: `tests/kyoto.rs`, which needs only the stable toolchain, and the
//! fuzz targets in `fuzz/`, which include it by its path.

use tokaido_wire::kyoto::{
    ContentType, Encoding, Pairs,
    binary::{BinaryError, Decoded, Decoder, Request},
    columns,
};

/// A limit that short inputs can reach.
const REQUEST_LEN_MAX: usize = 200;

/// Sizes of the pieces in which a stream may arrive; each list is repeated.
const ARRIVALS: [&[usize]; 4] = [&[1], &[2, 3], &[7, 1, 1, 13], &[64, 5]];

/// However the bytes are split, the requests and the end are the same.
pub(crate) fn check_binary(data: &[u8]) {
    let whole = read(data, &[data.len().max(1)]);
    for pieces in ARRIVALS {
        assert_eq!(read(data, pieces), whole, "in pieces of {pieces:?}");
    }
}

/// The requests of a stream as texts, and then the number of bytes left or the error.
fn read(data: &[u8], pieces: &[usize]) -> (Vec<String>, Result<usize, BinaryError>) {
    let mut decoder = Decoder::new(REQUEST_LEN_MAX);
    let (mut requests, mut start, mut arrived) = (Vec::new(), 0, 0);
    for piece in pieces.iter().cycle() {
        arrived = data.len().min(arrived + piece);
        loop {
            match decoder.decode(&data[start..arrived]) {
                Ok(Decoded::Incomplete) => break,
                Ok(Decoded::Complete { consumed, is_quiet, request }) => {
                    assert!(0 < consumed && consumed <= (arrived - start).min(REQUEST_LEN_MAX));
                    check_items(&request);
                    let shown = format!("{is_quiet} {request:?}");
                    // A request that has to run elsewhere is decoded again there.
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

/// There are as many items as were announced.
fn check_items(request: &Request<'_>) {
    match request {
        Request::PlayScript { pairs: items, .. }
        | Request::SetBulk(items)
        | Request::RemoveBulk(items)
        | Request::GetBulk(items) => assert_eq!(items.clone().count(), items.left()),
        Request::Replication => {}
    }
}

/// The pairs of a body can be written and read again.
pub(crate) fn check_columns(data: &[u8]) {
    let (&first, body) = data.split_first().unwrap_or((&0, &[]));
    let content_type = match first % 5 {
        0 => ContentType::Tsv(Encoding::Raw),
        1 => ContentType::Tsv(Encoding::Base64),
        2 => ContentType::Tsv(Encoding::Quoted),
        3 => ContentType::Tsv(Encoding::Url),
        _ => ContentType::Form,
    };
    let mut pairs = Pairs::new();
    if content_type.read(body, &mut pairs).is_ok() {
        let (header, written) = columns::write(&pairs);
        let mut again = Pairs::new();
        ContentType::parse(header).read(&written, &mut again).expect("what was written");
        assert_eq!(again, pairs);
    }
}
