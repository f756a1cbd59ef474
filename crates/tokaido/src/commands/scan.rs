//! `tokaido scan`: prints the records of a range, in key order.

use std::{
    ffi::OsString,
    io::{self, BufWriter, Write},
    ops::{Bound, ControlFlow},
    os::unix::ffi::OsStrExt,
    process::ExitCode,
};

use tokaido_script::percent;
use tokaido_store::{DatabaseId, Direction, ScanRange, Scanner, Store};

use super::dump::stream_error;
use crate::{
    client::{ClientError, Server},
    endpoint::{Endpoint, EndpointArgs, Missing, find_database, open_store},
    error::Error,
    formats::{Format, Options, Row, RowReader, RowWriter},
    http::{HttpClient, refusal},
};

/// Number of records requested from a server at once.
const PAGE_RECORDS: usize = 1_000;

/// Print the records in a range of keys
///
/// Records are printed in the order of their keys, compared byte by byte, or with --reverse from the
/// last to the first. Several bounds narrow the range together. The formats are those of `tokaido dump`;
/// the default is one line for each record, key TAB value, with \\ \t \n and \r for the bytes that a line
/// cannot contain.
///
/// With --dir, the scan shows one moment. With --connect, others may write meanwhile, and JSON lines
/// lack flags and expiry.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  tokaido scan --dir data pages --prefix /blog/ --limit 10
  tokaido scan --dir data events --from 2026-11-01 --before 2026-12-01 --reverse
  tokaido scan main --keys

Exit status: 0 if everything was printed, 1 on failure, 2 for a wrong command line, 3 if no server answers
or the store cannot be opened."
)]
pub(crate) struct ScanArgs {
    /// Database to scan
    #[arg(value_name = "DB")]
    db: String,
    /// Only keys that start with this
    #[arg(long, value_name = "TEXT")]
    prefix: Option<OsString>,
    /// Only keys at or after this one
    #[arg(long, value_name = "KEY", conflicts_with = "after")]
    from: Option<OsString>,
    /// Only keys after this one
    #[arg(long, value_name = "KEY")]
    after: Option<OsString>,
    /// Only keys at or before this one
    #[arg(long, value_name = "KEY", conflicts_with = "before")]
    to: Option<OsString>,
    /// Only keys before this one
    #[arg(long, value_name = "KEY")]
    before: Option<OsString>,
    /// Print from the last key to the first
    #[arg(long)]
    reverse: bool,
    /// Stop after this number of records
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print only the keys, one per line
    #[arg(long, conflicts_with = "format")]
    keys: bool,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "pairs")]
    format: Format,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

pub(crate) fn scan(args: &ScanArgs) -> Result<ExitCode, Error> {
    let out = BufWriter::new(io::stdout().lock());
    let writer = if args.keys { RowWriter::of_keys(out) } else { RowWriter::new(out, args.format) };
    let scanned = match args.endpoint.endpoint()? {
        Endpoint::Directory(directory) => {
            let store = open_store(&directory, Missing::Refuse)?;
            let database = find_database(&*store, &args.db)?;
            scan_store(&*store, database, args, writer)
        }
        Endpoint::Server(server) => scan_server(&server, args, writer),
    };
    scanned.map_err(|error| stream_error(error, Error::Stdout))?;
    Ok(ExitCode::SUCCESS)
}

fn scan_store<W: Write>(
    store: &dyn Store,
    database: DatabaseId,
    args: &ScanArgs,
    mut writer: RowWriter<W>,
) -> Result<(), Error> {
    let mut snapshot = store.snapshot()?;
    let mut scanner = Scanner::new(database, args.range(), args.limit.unwrap_or(usize::MAX));
    let mut row = Row::default();
    let mut written = Ok(());
    scanner.visit(&mut *snapshot, |entry| {
        row.set(&entry);
        written = writer.write(&row);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written.map_err(Error::Unwritable)?;
    writer.finish().map(drop).map_err(|error| Error::Unwritable(error.into()))
}

/// Fetches the pages of the server's listing, which are JSON lines as `dump` writes them.
fn scan_server<W: Write>(
    server: &Server,
    args: &ScanArgs,
    mut writer: RowWriter<W>,
) -> Result<(), Error> {
    let mut client = HttpClient::connect(server)?;
    let target = format!("/v1/db/{}?{}", percent::encode(args.db.as_bytes()), args.query());
    let options = Options { format: Some(Format::Jsonl), ..Options::default() };
    let mut left = args.limit.unwrap_or(usize::MAX);
    let mut place = String::new();
    let mut row = Row::default();
    while left > 0 {
        let page_target = format!("{target}&limit={}{place}", left.min(PAGE_RECORDS));
        let response = client.request("GET", &page_target, None)?;
        if response.status != 200 {
            return Err(ClientError::Refused { message: refusal(&response) }.into());
        }
        let (records, next) = split_page(&response.body);
        let malformed = || ClientError::Unexpected { server: server.to_string(), command: "GET" };
        let mut rows = RowReader::new(records, None, &options).map_err(|_| malformed())?;
        while let Some(read) = rows.read(&mut row).map_err(|_| malformed())? {
            read.map_err(|_| malformed())?;
            // A page of a cache may be longer than requested.
            if left == 0 {
                break;
            }
            writer.write(&row).map_err(Error::Unwritable)?;
            left = left.saturating_sub(1);
        }
        place = match next {
            Next::End => break,
            Next::Key => format!("&after={}", percent::encode(&row.key)),
            Next::Cursor(cursor) => format!("&cursor={cursor}"),
        };
    }
    writer.finish().map(drop).map_err(|error| Error::Unwritable(error.into()))
}

/// Where a listing continues.
#[derive(Debug, PartialEq, Eq)]
enum Next<'p> {
    /// It does not.
    End,
    /// After the last key.
    Key,
    /// At a cursor, if keys have no order.
    Cursor(&'p str),
}

/// The records of a page, and where its last line says that the listing continues.
fn split_page(body: &[u8]) -> (&[u8], Next<'_>) {
    let lines = body.strip_suffix(b"\n").unwrap_or(body);
    let start = memchr::memrchr(b'\n', lines).map_or(0, |newline| newline + 1);
    let last = &lines[start..];
    if !last.starts_with(b"{\"next") {
        return (body, Next::End);
    }
    let cursor = last.strip_prefix(b"{\"next_cursor\":").and_then(|rest| rest.strip_suffix(b"}"));
    let cursor = cursor.and_then(|digits| std::str::from_utf8(digits).ok());
    (&body[..start], cursor.map_or(Next::Key, Next::Cursor))
}

impl ScanArgs {
    /// The lowest key in the range, and the first key beyond it.
    fn bounds(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let bytes = |text: &Option<OsString>| text.as_ref().map(|text| text.as_bytes().to_vec());
        // The next key after a key is the key plus a zero byte.
        let behind = |text: &Option<OsString>| bytes(text).map(|key| [&key[..], &[0]].concat());
        (bytes(&self.from).or(behind(&self.after)), bytes(&self.before).or(behind(&self.to)))
    }

    fn range(&self) -> ScanRange {
        let prefix = self.prefix.as_ref().map(|prefix| ScanRange::prefix(prefix.as_bytes()));
        let mut range = prefix.unwrap_or_else(ScanRange::all);
        let (from, before) = self.bounds();
        range.low = match (range.low, from) {
            (Bound::Included(low), Some(from)) => Bound::Included(low.max(from)),
            (low, from) => from.map_or(low, Bound::Included),
        };
        range.high = match (range.high, before) {
            (Bound::Excluded(high), Some(before)) => Bound::Excluded(high.min(before)),
            (high, before) => before.map_or(high, Bound::Excluded),
        };
        if self.reverse {
            range.direction = Direction::Backward;
        }
        range
    }

    /// The same range as a query for the server's listing.
    fn query(&self) -> String {
        let mut query = format!("reverse={}", self.reverse);
        let (from, before) = self.bounds();
        let prefix = self.prefix.as_ref().map(|prefix| prefix.as_bytes().to_vec());
        for (name, value) in [("prefix", prefix), ("from", from), ("before", before)] {
            if let Some(value) = value {
                query.push_str(&format!("&{name}={}", percent::encode(&value)));
            }
        }
        query
    }
}
