//! `tokaido dump`: a database as text that `load` can read back.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::ExitCode,
};

use tempfile::NamedTempFile;
use tokaido_store::{Clock, DatabaseId, ScanRange, Scanner, Store, SystemClock};
use tokaido_wire::resp::{Reply, encode_command};

use crate::{
    client::Client,
    endpoint::{Endpoint, EndpointArgs, Missing, find_database, open_store},
    error::Error,
    formats::{Format, Row, RowWriter, UnwritableRow},
    progress::Progress,
};

/// Number of keys requested from a server at once.
const SCAN_COUNT: usize = 1_000;

/// Write a database as text that load can read back
///
/// Records are written in the order of their keys. JSON lines contain the whole record, with its flags
/// and its expiry; bytes that are not text are in base64. memcached-dump contains the whole record, too,
/// but stops at a key that memcached would not accept. The other formats contain only key and value. TSV
/// has no escapes, so a record that it cannot represent stops the dump, such as one with a newline, or
/// with a TAB in its key; pairs and csv can contain any bytes.
///
/// With --dir, the dump shows one moment. With --connect, the server keeps running meanwhile: a record
/// that is written during the dump may appear with its old or its new value. Flags, which the Redis
/// protocol does not have, are left out.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  tokaido dump --dir data --db companies > companies.jsonl
  tokaido dump --connect 127.0.0.1:7653 --db main --format pairs -o main.pairs

Exit status: 0 if everything was written, 1 on failure (then FILE is as it was before), 2 for a wrong
command line, 3 if no server answers or the store cannot be opened."
)]
pub(crate) struct DumpArgs {
    /// Database to write
    #[arg(long, value_name = "NAME", default_value = "main")]
    db: String,
    /// Format [default: by the extension of FILE; otherwise jsonl]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Only keys that start with this
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,
    /// Write to this file instead of standard output; it is put in place only once the dump is complete
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

pub(crate) fn dump(args: &DumpArgs) -> Result<ExitCode, Error> {
    let by_ending = || args.output.as_deref().and_then(Format::of_ending);
    let format = args.format.or_else(by_ending).unwrap_or(Format::Jsonl);
    match &args.output {
        None => {
            let out = BufWriter::new(io::stdout().lock());
            let dumped = dump_rows(args, RowWriter::new(out, format));
            dumped.map_err(|error| stream_error(error, Error::Stdout)).map(drop)?;
        }
        Some(path) => write_file(path, |out| {
            let dumped = dump_rows(args, RowWriter::new(out, format));
            dumped.map_err(|error| stream_error(error, Error::file(path)))
        })?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Names the stream whose write failed.
pub(super) fn stream_error(error: Error, name: impl Fn(io::Error) -> Error) -> Error {
    match error {
        Error::Unwritable(UnwritableRow::Io(source)) => name(source),
        error => error,
    }
}

/// Writes a file beside `path`, and renames it when it is complete and on disk. Anything but a
/// regular file, such as a pipe or a device, is written to directly.
fn write_file(
    path: &Path,
    write: impl FnOnce(Box<dyn Write>) -> Result<Box<dyn Write>, Error>,
) -> Result<(), Error> {
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        let file = File::options().write(true).open(path).map_err(Error::file(path))?;
        return write(Box::new(BufWriter::new(file))).map(drop);
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));
    let file = NamedTempFile::new_in(directory).map_err(Error::file(path))?;
    let handle = file.as_file().try_clone().map_err(Error::file(path))?;
    drop(write(Box::new(BufWriter::new(handle)))?);
    file.as_file().sync_all().map_err(Error::file(path))?;
    file.persist(path).map_err(|error| Error::file(path)(error.error))?;
    Ok(())
}

/// Writes all rows, and returns the flushed stream.
fn dump_rows<W: Write>(args: &DumpArgs, mut writer: RowWriter<W>) -> Result<W, Error> {
    let prefix = args.prefix.as_bytes();
    match args.endpoint.endpoint()? {
        Endpoint::Directory(directory) => {
            let store = open_store(&directory, Missing::Refuse)?;
            let database = find_database(&*store, &args.db)?;
            dump_store(&*store, database, prefix, &mut writer)?;
        }
        Endpoint::Server(server) => {
            dump_server(&mut server.connect_to(&args.db)?, prefix, &mut writer)?;
        }
    }
    writer.finish().map_err(|error| Error::Unwritable(error.into()))
}

fn dump_store<W: Write>(
    store: &dyn Store,
    database: DatabaseId,
    prefix: &[u8],
    writer: &mut RowWriter<W>,
) -> Result<(), Error> {
    let mut snapshot = store.snapshot()?;
    let total = prefix.is_empty().then_some(snapshot.exact_statistics(database)?.records);
    let mut progress = Progress::new(total);
    let mut scanner = Scanner::new(database, ScanRange::prefix(prefix), usize::MAX);
    let mut row = Row::default();
    let mut written = Ok(());
    scanner.visit(&mut *snapshot, |entry| {
        row.set(&entry);
        written = writer.write(&row);
        progress.row(writer.rows());
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    progress.clear();
    written.map_err(Error::Unwritable)
}

/// Iterates over the keys with SCAN. Values are fetched one by one, not with MGET, so that no reply
/// is larger than one value.
fn dump_server<W: Write>(
    client: &mut Client,
    prefix: &[u8],
    writer: &mut RowWriter<W>,
) -> Result<(), Error> {
    let total = match client.call(&["DBSIZE"])? {
        Reply::Integer(count) if prefix.is_empty() => u64::try_from(count).ok(),
        _ => None,
    };
    let mut progress = Progress::new(total);
    let pattern = [&escape_glob(prefix)[..], b"*"].concat();
    let count = SCAN_COUNT.to_string();
    let mut cursor = b"0".to_vec();
    loop {
        let scan = [b"SCAN", &cursor[..], b"MATCH", &pattern, b"COUNT", count.as_bytes()];
        let (next, keys) = match client.call(&scan)? {
            Reply::Array(parts) => scan_reply(parts),
            _ => None,
        }
        .ok_or_else(|| client.unexpected("SCAN"))?;
        dump_keys(client, keys, writer, &mut progress)?;
        cursor = next;
        if cursor == b"0" {
            break;
        }
    }
    progress.clear();
    Ok(())
}

/// The next cursor, and the keys.
fn scan_reply(parts: Vec<Reply>) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let [Reply::Bulk(cursor), Reply::Array(keys)] = <[Reply; 2]>::try_from(parts).ok()? else {
        return None;
    };
    let keys = keys.into_iter().map(|key| match key {
        Reply::Bulk(key) => Some(key),
        _ => None,
    });
    Some((cursor, keys.collect::<Option<_>>()?))
}

fn dump_keys<W: Write>(
    client: &mut Client,
    keys: Vec<Vec<u8>>,
    writer: &mut RowWriter<W>,
    progress: &mut Progress,
) -> Result<(), Error> {
    let mut requests = Vec::new();
    for key in &keys {
        encode_command(&mut requests, &[b"PTTL", &key[..]]);
        encode_command(&mut requests, &[b"GET", &key[..]]);
    }
    let count = 2 * keys.len();
    let mut keys = keys.into_iter();
    let mut row = Row::default();
    client.pipeline(&requests, count, |_, reply| {
        match reply {
            Reply::Integer(left_ms) => {
                row.clear();
                row.key = keys.next().unwrap_or_default();
                // Negative: it never expires, or is gone; the value that follows tells which.
                let left_ms = u64::try_from(left_ms).ok();
                row.expires_at_ms = left_ms.map(|left_ms| SystemClock.now_ms() + left_ms);
            }
            Reply::Bulk(value) => {
                row.value = value;
                writer.write(&row).map_err(Error::Unwritable)?;
                progress.row(writer.rows());
            }
            // Deleted since SCAN saw it.
            _ => {}
        }
        Ok::<(), Error>(())
    })
}

/// Escapes the special characters of a pattern.
fn escape_glob(text: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(text.len());
    for &byte in text {
        if b"*?[]\\^-".contains(&byte) {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    pattern
}
