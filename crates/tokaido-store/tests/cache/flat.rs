//! The functions for callers in other languages.

use tokaido_store::{
    cache::flat::{self, Answer, Code, Mode},
    limits,
};

use crate::support::{cache, value};

#[test]
fn every_code_is_given() {
    let cache = cache(1 << 20, 1);
    let (mut answer, mut buffer) = (Answer::default(), [0; 8]);
    assert_eq!(flat::get(&cache, b"k", &mut buffer, &mut answer), Code::Absent);
    assert_eq!(flat::get(&cache, b"", &mut buffer, &mut answer), Code::KeyLength);
    let set = |key: &[u8], value: &[u8], mode, answer: &mut Answer| {
        flat::set(&cache, key, value, 7, 5_000, mode, answer)
    };
    assert_eq!(set(b"k", b"v", Mode::Replace, &mut answer), Code::Absent);
    assert_eq!(set(b"k", b"v", Mode::Cas, &mut answer), Code::Absent);
    assert_eq!(answer, Answer::default());
    assert_eq!(set(b"k", b"value", Mode::Add, &mut answer), Code::Done);
    assert_eq!(set(b"k", b"value", Mode::Add, &mut answer), Code::Exists);
    assert_eq!(set(b"", b"", Mode::Set, &mut answer), Code::KeyLength);
    let long = vec![0; limits::VALUE_LEN_MAX + 1];
    assert_eq!(set(b"k", &long, Mode::Set, &mut answer), Code::TooLarge);

    let stored = answer;
    let mut read = Answer::default();
    assert_eq!(flat::get(&cache, b"k", &mut buffer, &mut read), Code::Done);
    assert_eq!((&buffer[..5], read), (&b"value"[..], stored));
    assert_eq!(
        read,
        Answer { value_len: 5, version: read.version, expires_at_ms: 5_000, flags: 7 }
    );
    assert_eq!(set(b"k", b"longer than 8", Mode::Cas, &mut answer), Code::Done);
    assert_eq!(set(b"k", b"again", Mode::Cas, &mut stored.clone()), Code::Exists);
    assert_eq!(flat::get(&cache, b"k", &mut buffer, &mut read), Code::BufferTooSmall);
    assert_eq!(read, Answer { value_len: 13, ..stored });

    let mut number = 0;
    assert_eq!(flat::increment(&cache, b"k", 1, &mut number), Code::NotANumber);
    assert_eq!(flat::increment(&cache, b"n", i64::MAX, &mut number), Code::Done);
    assert_eq!(flat::increment(&cache, b"n", 1, &mut number), Code::Overflow);
    assert_eq!(flat::increment(&cache, b"", 1, &mut number), Code::KeyLength);
    assert_eq!(number, i64::MAX);

    assert_eq!(flat::touch(&cache, b"k", 0), Code::Done);
    assert_eq!(flat::touch(&cache, b"absent", 0), Code::Absent);
    assert_eq!(flat::touch(&cache, b"", 0), Code::KeyLength);
    assert_eq!(flat::delete(&cache, b"k"), Code::Done);
    assert_eq!(flat::delete(&cache, b"k"), Code::Absent);
    assert_eq!(flat::delete(&cache, b""), Code::KeyLength);
    assert_eq!(value(&cache, b"k"), None);
}
