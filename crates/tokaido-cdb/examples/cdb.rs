//! A constant database as a dictionary: `cargo run -p tokaido-cdb --example cdb`.
//!
//! It is made once, read through a memory map without copying, and replaced as a whole. TinyCDB's
//! `cdb` can read the file, too.

use std::{error::Error, io::Write, path::Path};

use tokaido_cdb::{Options, Reader, Writer};

const WORDS: [(&str, &str); 4] =
    [("eki", "station"), ("michi", "road"), ("umi", "sea"), ("michi", "way")];

fn make(path: &Path, words: &[(&str, &str)]) -> Result<(), Box<dyn Error>> {
    // A temporary file until `finish` renames it: readers see all of it or none.
    let mut writer = Writer::create(path, &Options::default())?;
    for (word, meaning) in words {
        writer.put(word.as_bytes(), meaning.as_bytes())?;
    }
    Ok(writer.finish()?)
}

fn run(directory: &Path, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let path = directory.join("words.cdb");
    make(&path, &WORDS)?;

    let words = Reader::open(&path)?;
    let meaning = words.get(b"umi")?.expect("it is in the list");
    writeln!(out, "umi: {}", std::str::from_utf8(meaning)?)?;
    // A key may have several values, in the order in which they were put.
    for value in words.get_all(b"michi") {
        writeln!(out, "michi: {}", std::str::from_utf8(value?)?)?;
    }

    // A new file replaces the old one; a reader that has the old one open keeps reading it.
    make(&path, &[("eki", "post station")])?;
    assert_eq!(words.get(b"eki")?, Some(&b"station"[..]));
    let now = Reader::open(&path)?;
    writeln!(out, "eki: {}", now.get(b"eki")?.expect("it is there").escape_ascii())?;
    writeln!(out, "{} record", now.iter().count())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    run(directory.path(), &mut std::io::stdout())
}

#[test]
fn it_prints_what_it_should() {
    let directory = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    run(directory.path(), &mut out).unwrap();
    let expected = "umi: sea\nmichi: road\nmichi: way\neki: post station\n1 record\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
