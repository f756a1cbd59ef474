//! What must hold for any bytes whatever, taken as a cdb file. Made for a fuzzer too: the tests
//! call it with damaged files.

use tokaido_store::cdb::{Damaged, TextError, TextFormat, TextReader, TextWriter, View};

/// Records whose keys are looked up; a hostile file may make each look-up long.
const LOOKED_UP_MAX: usize = 64;

/// A key and a value.
type Pair = (Vec<u8>, Vec<u8>);

/// Reads the file in every way. Ends, does not panic, and shows no bytes but those of the file.
pub(crate) fn check_bytes(bytes: &[u8]) -> Result<(), Damaged> {
    let inside = |slice: &[u8]| {
        let file = bytes.as_ptr_range();
        let slice = slice.as_ptr_range();
        assert!(file.start <= slice.start && slice.end <= file.end, "bytes of another place");
    };
    let view = View::new(bytes)?;
    let mut count = 0;
    let mut keys: Vec<&[u8]> = vec![b"", b"a", b"key", b"\0\0\0\0"];
    let mut records = view.iter();
    for record in records.by_ref() {
        count += 1;
        assert!(count <= bytes.len() / 8, "more records than fit");
        let Ok(record) = record else { break };
        inside(record.key);
        inside(record.value);
        if keys.len() < LOOKED_UP_MAX {
            keys.push(record.key);
        }
    }
    assert_eq!(records.next(), None, "something after the end or an error");
    for key in keys {
        let mut values = view.get_all(key);
        let first = values.clone().next().transpose();
        assert_eq!(view.get(key), first);
        let mut found = 0;
        for value in values.by_ref() {
            found += 1;
            assert!(found <= bytes.len() / 8, "more values than slots");
            match value {
                Ok(value) => inside(value),
                Err(_) => break,
            }
        }
        assert_eq!(values.next(), None, "something after the end or an error");
    }
    view.statistics().map(drop)
}

/// Reads bytes as each of the text formats. What was read is written to the same records.
pub(crate) fn check_text(bytes: &[u8]) {
    use TextFormat::{Map, MapKeys, Native, NativeKeys};
    for format in [Native, NativeKeys, Map, MapKeys] {
        let (records, _) = read_text(bytes, format);
        let len: usize = records.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert!(len <= bytes.len(), "more bytes than there are");
        let mut writer = TextWriter::new(Vec::new(), format);
        let written: Vec<_> = records
            .into_iter()
            .filter(|(key, value)| match writer.write(key, value) {
                Ok(()) => true,
                // A key that such a line cannot hold was read from one that holds more.
                Err(TextError::Unwritable { .. }) => false,
                Err(error) => panic!("{error}"),
            })
            .collect();
        let text = writer.finish().expect("memory does not fail");
        assert_eq!(read_text(&text, format), (written, true));
    }
}

/// The records of a text, and whether it ended as it should.
fn read_text(text: &[u8], format: TextFormat) -> (Vec<Pair>, bool) {
    let mut reader = TextReader::new(text, format);
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(record)) => records.push((record.key.to_vec(), record.value.to_vec())),
            Ok(None) => return (records, true),
            Err(_) => {
                assert!(matches!(reader.next_record(), Ok(None)), "something after an error");
                return (records, false);
            }
        }
    }
}
