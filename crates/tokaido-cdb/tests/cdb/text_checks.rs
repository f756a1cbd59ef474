//! What must hold for arbitrary bytes read as text. Used by a fuzzer, and by the tests.

use crate::cdb_text::{TextError, TextFormat, TextReader, TextWriter};

/// A key and a value.
type Pair = (Vec<u8>, Vec<u8>);

/// Reads bytes in each of the text formats. Writing and rereading yields the same records.
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

/// The records of a text, and whether it ended properly.
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
