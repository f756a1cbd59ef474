//! What each format looks like, reads back and refuses.

use proptest::prelude::*;

use super::*;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

const FORMATS: [TextFormat; 4] =
    [TextFormat::Native, TextFormat::NativeKeys, TextFormat::Map, TextFormat::MapKeys];

fn read(text: &[u8], format: TextFormat) -> Result<Pairs, TextError> {
    let mut reader = TextReader::new(text, format);
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push((record.key.to_vec(), record.value.to_vec()));
    }
    assert_eq!(reader.records(), records.len() as u64);
    Ok(records)
}

fn pairs(records: &[(&str, &str)]) -> Pairs {
    records.iter().map(|(key, value)| (key.as_bytes().into(), value.as_bytes().into())).collect()
}

fn error(text: &str, format: TextFormat) -> String {
    read(text.as_bytes(), format).unwrap_err().to_string()
}

#[test]
fn the_formats_look_like_those_of_the_tool() {
    let written = |format| {
        let mut writer = TextWriter::new(Vec::new(), format);
        writer.write("東京".as_bytes(), b"1 yen").unwrap();
        writer.write(b"b", b"").unwrap();
        String::from_utf8(writer.finish().unwrap()).unwrap()
    };
    assert_eq!(written(TextFormat::Native), "+6,5:東京->1 yen\n+1,0:b->\n\n");
    assert_eq!(written(TextFormat::NativeKeys), "+6:東京\n+1:b\n\n");
    assert_eq!(written(TextFormat::Map), "東京 1 yen\nb \n");
    assert_eq!(written(TextFormat::MapKeys), "東京\nb\n");
}

#[test]
fn native_text_holds_what_looks_like_its_own_marks() {
    let text = b"+4,5:\n->\n->\n+1,\n\n+0,0:->\n\n\n\n";
    let records = read(text, TextFormat::Native).unwrap();
    assert_eq!(records, pairs(&[("\n->\n", "\n+1,\n"), ("", "")]));
}

#[test]
fn a_map_has_comments_blanks_and_keys_without_a_value() {
    let text = "# comment\n\n \t\n  #too\na 1\n\tb\t \t2 3 \nc\nc \nd\t#4\r\ne\x005";
    let expected = [("a", "1"), ("b", "2 3 "), ("c", ""), ("c", ""), ("d", "#4\r"), ("e\x005", "")];
    assert_eq!(read(text.as_bytes(), TextFormat::Map).unwrap(), pairs(&expected));
}

#[test]
fn broken_text_is_named_by_record_and_byte() {
    for (text, message) in [
        ("", "record 1, byte 0: the empty line that ends the records is missing"),
        ("+1,1:a->b\n", "record 2, byte 10: the empty line that ends"),
        ("+1,1:a->b\nx", "record 2, byte 10: a record begins with +"),
        ("+1,1:a->b\n\n+1,1:a->b\n\n", "record 2, byte 11: something follows the empty line"),
        ("+1:a\n\n", "record 1, byte 2: a length must be decimal digits and end with ,"),
        ("+-1,1:a->b\n\n", "record 1, byte 1: a length must be decimal digits and end with ,"),
        ("+,1:a->b\n\n", "record 1, byte 2: a length is missing"),
        ("+1,1;a->b\n\n", "record 1, byte 4: a length must be decimal digits and end with :"),
        ("+2,1:a->b\n\n", "record 1, byte 7: -> is missing after the key"),
        ("+1,1:a-b\n\n", "record 1, byte 7: -> is missing after the key"),
        ("+1,1:a->bc\n\n", "record 1, byte 9: the newline is missing after the record"),
        ("+1,9:a->b\n\n", "record 1, byte 11: the text ends within a record"),
        ("+1", "record 1, byte 2: the text ends within a record"),
        ("+4294967295,0:a", "record 1, byte 15: the text ends within a record"),
        ("+4294967295,1:a", "record 1, byte 14: this is more than a cdb file can hold"),
        ("+4294967296,0:a", "record 1, byte 11: this is more than a cdb file can hold"),
        ("+123456789012345678901234567890,0:a", "record 1, byte 12: this is more than"),
    ] {
        let error = error(text, TextFormat::Native);
        assert!(error.starts_with(message), "{text:?} gives {error:?}");
    }
    assert_eq!(
        error("+1,1:a\n\n", TextFormat::NativeKeys),
        "record 1, byte 2: a length must be decimal digits and end with :"
    );
}

#[test]
fn after_an_error_there_is_no_record() {
    let mut reader = TextReader::new(&b"x+1,1:a->b\n\n"[..], TextFormat::Native);
    assert!(reader.next_record().is_err());
    assert_eq!(reader.next_record().unwrap(), None);
}

#[test]
fn a_record_that_would_read_back_as_another_is_refused() {
    let refused = |format, key: &[u8], value: &[u8]| {
        let mut writer = TextWriter::new(Vec::new(), format);
        let error = writer.write(key, value).unwrap_err().to_string();
        assert_eq!(writer.finish().unwrap(), b"", "nothing of it is written");
        error
    };
    for (key, value, message) in [
        ("", "v", r#"record 1 with the key "": the map format has no empty keys; use the native"#),
        ("#k", "v", r##"record 1 with the key "#k": a key that begins with # would be a comment"##),
        ("a b", "v", r#"record 1 with the key "a b": a key with a space or a tab would end there"#),
        ("a\tb", "v", "record 1 with the key \"a\\tb\": a key with a space or a tab"),
        ("a\nb", "v", "record 1 with the key \"a\\nb\": a key with a newline does not fit"),
        ("k", "a\nb", r#"record 1 with the key "k": a value with a newline does not fit"#),
        ("k", " v", r#"record 1 with the key "k": spaces and tabs at the beginning of a value"#),
    ] {
        let error = refused(TextFormat::Map, key.as_bytes(), value.as_bytes());
        assert!(error.starts_with(message), "{error}");
    }
    assert!(refused(TextFormat::MapKeys, b"a\nb", b"").contains("newline"));
}

fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b" \t\n#+,:->0".to_vec())];
    prop::collection::vec(byte, 0..8)
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        records in prop::collection::vec((some_bytes(), some_bytes()), 0..6),
    ) {
        for format in FORMATS {
            let mut writer = TextWriter::new(Vec::new(), format);
            let mut expected = Vec::new();
            for (key, value) in &records {
                let has_value = matches!(format, TextFormat::Native | TextFormat::Map);
                if writer.write(key, value).is_ok() {
                    expected.push((key.clone(), if has_value { value.clone() } else { vec![] }));
                }
            }
            let is_native = matches!(format, TextFormat::Native | TextFormat::NativeKeys);
            prop_assert!(!is_native || expected.len() == records.len());
            let text = writer.finish().unwrap();
            prop_assert_eq!(read(&text, format).unwrap(), expected);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in prop_oneof![some_bytes(), "(\\+[0-3],[0-3]:[a-c]{0,3}->[a-c]{0,3}\n){0,3}\n?"
            .prop_map(String::into_bytes)],
    ) {
        for format in FORMATS {
            let _ = read(&text, format);
        }
    }
}
