//! What must hold for the codec of Redis's values on any bytes. Each check panics if it does not.
//!
//! Two programs share this file: `tests/rdb.rs`, which needs only the stable toolchain, and the
//! fuzz target in `fuzz/`, which includes it by its path.

use tokaido_wire::rdb::{self, Encoder, PackedEntries, Texts, Value};

/// A limit that short inputs can reach, by compression.
const BYTES_MAX: usize = 4000;

/// A decoded value is within the limit, and can be written and read again.
pub(crate) fn check(data: &[u8]) {
    let _ = rdb::unseal(data);
    if let Ok(libraries) = rdb::decode_libraries(data, BYTES_MAX) {
        assert!(libraries.iter().map(Vec::len).sum::<usize>() <= BYTES_MAX);
        let mut written = Vec::new();
        libraries.iter().for_each(|code| rdb::encode_library(&mut written, code));
        assert_eq!(rdb::decode_libraries(&written, BYTES_MAX), Ok(libraries));
    }
    let Ok(value) = rdb::decode(data, BYTES_MAX) else { return };
    let mut payload = Vec::new();
    write(&value, &mut payload);
    rdb::seal(&mut payload);
    let body = rdb::unseal(&payload).expect("it was sealed");
    // The number beside each text counts, too, and there may be more texts than before.
    assert_eq!(rdb::decode(body, usize::MAX).as_ref(), Ok(&value));
    let last = payload.len() - 1;
    payload[last / 2] ^= 1;
    assert!(rdb::unseal(&payload).is_err(), "a bit has changed");
}

fn write(value: &Value, payload: &mut Vec<u8>) {
    let mut encoder = Encoder::new(payload);
    let bytes = |texts: &Texts| texts.iter().map(<[u8]>::len).sum::<usize>();
    match value {
        Value::String(text) => encoder.string(text),
        Value::List(items) => {
            assert!(bytes(items) <= BYTES_MAX);
            encoder.list(items.len() as u64);
            items.iter().for_each(|item| encoder.text(item));
        }
        Value::Set(members) => {
            assert!(bytes(members) <= BYTES_MAX);
            encoder.set(members.len() as u64);
            members.iter().for_each(|member| encoder.text(member));
        }
        Value::Hash(texts) => {
            assert!(bytes(texts) <= BYTES_MAX && texts.len().is_multiple_of(2));
            encoder.hash(texts.len() as u64 / 2);
            texts.iter().for_each(|text| encoder.text(text));
        }
        Value::SortedSet(members, scores) => {
            assert!(bytes(members) <= BYTES_MAX && members.len() == scores.len());
            encoder.sorted_set(members.len() as u64);
            for (member, score) in members.iter().zip(scores) {
                assert!(!score.is_nan());
                encoder.text(member);
                encoder.score(*score);
            }
        }
        Value::Stream(stream) => {
            assert!(bytes(&stream.texts) <= BYTES_MAX);
            let mut entries = PackedEntries::default();
            for (place, (id, _)) in stream.entries.iter().enumerate() {
                entries.add(*id, stream.fields(place));
            }
            encoder.stream(entries, stream);
        }
    }
}
