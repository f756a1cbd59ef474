//! `tokaido load`: loads rows of text files into a database.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use crate::{
    endpoint::{Endpoint, EndpointArgs, Missing, open_store},
    error::{EXIT_FAILED, Error},
    formats::{Format, Options, Row, RowReader},
    loader::{Loader, Sink},
    progress::{Progress, thousands},
};

/// Size of a read from a file in bytes.
const READ_LEN: usize = 256 << 10;

/// Load the rows of text files into a database
///
/// Each line is a record. --key and --value select the columns of its key and its value: by number,
/// counted from 1, or by name with --header. Without --value, the value is all columns except the key,
/// joined by TABs; JSON lines without --key and --value are read as `tokaido dump` writes them.
///
/// A line that does not make a record (a column is missing, the key is empty, a limit is exceeded) is
/// reported with its number and skipped; all others are stored. A later row overwrites an earlier one
/// with the same key, so the same file can be loaded again with the same result.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  tokaido load --dir data --db companies --key 3 --value 5 companies.txt
  tokaido load --db people --header --key id --value name,town people.csv
  tokaido dump --dir old --db main | tokaido load --dir new --db main -

Exit status: 0 if all rows were read, even if some were skipped; 1 on failure, and with --strict if
any was skipped; 2 for a wrong command line; 3 if no server answers or the store cannot be opened."
)]
pub(crate) struct LoadArgs {
    /// Files to load; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Database to load into; created if it does not exist
    #[arg(long, value_name = "NAME", default_value = "main")]
    db: String,
    /// Column or JSON field that is the key [default: 1]
    #[arg(long, value_name = "COLUMN")]
    key: Option<String>,
    /// Columns or JSON fields that are the value, joined by TABs [default: all except the key]
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    value: Option<Vec<String>>,
    /// Prepend this to every key
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,
    /// Format of the files [default: by their extension; otherwise jsonl if they start with {, else tsv]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// The first line names the columns
    #[arg(long)]
    header: bool,
    /// Skip lines that start with this
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// Fail if any line was skipped; the others are stored nevertheless
    #[arg(long)]
    strict: bool,
    /// Report this number of skipped lines, and only count the rest
    #[arg(long, value_name = "N", default_value_t = 100)]
    report_max: u64,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

/// The outcome of the lines so far.
#[derive(Debug, Default)]
struct Tally {
    rows: u64,
    skipped: u64,
    comments: u64,
}

pub(crate) fn load(args: &LoadArgs) -> Result<ExitCode, Error> {
    let options = Options {
        format: args.format,
        header: args.header,
        key: args.key.clone(),
        values: args.value.clone(),
        comment: args.comment.clone().filter(|comment| !comment.is_empty()),
        prefix: args.prefix.clone().into_bytes(),
    };
    let total = total_len(&args.files)?;
    let sink = match args.endpoint.endpoint()? {
        Endpoint::Directory(directory) => {
            Sink::store(open_store(&directory, Missing::Create)?, &args.db)?
        }
        Endpoint::Server(server) => Sink::Server(server.connect_to(&args.db)?),
    };
    let started = Instant::now();
    let mut loader = Loader::new(sink);
    let mut progress = Progress::new(total);
    let mut tally = Tally::default();
    let loaded = load_files(args, &options, &mut loader, &mut progress, &mut tally);
    progress.clear();
    loaded.map_err(|source| match loader.stored() {
        0 => source,
        stored => Error::LoadStopped { stored, source: Box::new(source) },
    })?;
    let unreported = tally.skipped.saturating_sub(args.report_max);
    if unreported > 0 {
        let line = format!("… and {} more; --report-max shows more", thousands(unreported));
        // As for the reports themselves: if nobody can read it, the summary still counts them.
        let _ = writeln!(io::stderr(), "{line}");
    }
    print_summary(&tally, &loader, &args.db, started).map_err(Error::Stdout)?;
    Ok(if args.strict && tally.skipped > 0 { EXIT_FAILED.into() } else { ExitCode::SUCCESS })
}

/// Total size of all files, if it is known. Reports an unreadable file early.
fn total_len(files: &[PathBuf]) -> Result<Option<u64>, Error> {
    let mut total = Some(0);
    for path in files {
        if is_stdin(path) {
            total = None;
            continue;
        }
        let metadata = std::fs::metadata(path).map_err(Error::file(path))?;
        if metadata.is_dir() {
            return Err(Error::file(path)(io::ErrorKind::IsADirectory.into()));
        }
        let len = metadata.is_file().then_some(metadata.len());
        total = total.zip(len).map(|(total, len)| total + len);
    }
    Ok(total)
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn load_files(
    args: &LoadArgs,
    options: &Options,
    loader: &mut Loader,
    progress: &mut Progress,
    tally: &mut Tally,
) -> Result<(), Error> {
    let mut bytes_before = 0;
    for path in &args.files {
        let input: Box<dyn BufRead> = if is_stdin(path) {
            Box::new(BufReader::with_capacity(READ_LEN, io::stdin()))
        } else {
            let file = File::open(path).map_err(Error::file(path))?;
            Box::new(BufReader::with_capacity(READ_LEN, file))
        };
        let reader = RowReader::new(input, Some(path), options)
            .map_err(|source| Error::Input { path: path.clone(), source })?;
        let mut file = FileLoad { path, reader, bytes_before, report_max: args.report_max };
        let loaded = file.load(loader, progress, tally);
        bytes_before += file.reader.bytes();
        tally.comments += file.reader.comments();
        // What was read before an error is stored, too: a second load need not find it again.
        loader.flush()?;
        loaded?;
    }
    Ok(())
}

struct FileLoad<'a> {
    path: &'a Path,
    reader: RowReader<Box<dyn BufRead>>,
    bytes_before: u64,
    report_max: u64,
}

impl FileLoad<'_> {
    fn load(
        &mut self,
        loader: &mut Loader,
        progress: &mut Progress,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        let mut row = Row::default();
        while let Some(read) = self.reader.read(&mut row).map_err(Error::file(self.path))? {
            tally.rows += 1;
            match read {
                Ok(()) => loader.push(&row)?,
                Err(bad) => {
                    tally.skipped += 1;
                    if tally.skipped <= self.report_max {
                        progress.complain(&format!("{}:{bad}", self.path.display()));
                    }
                }
            }
            progress.row(self.bytes_before + self.reader.bytes());
        }
        Ok(())
    }
}

fn print_summary(tally: &Tally, loader: &Loader, db: &str, started: Instant) -> io::Result<()> {
    let seconds = started.elapsed().as_secs_f64();
    let rate = tally.rows as f64 / seconds.max(1e-9);
    let (stored, overwritten) = (loader.stored(), loader.overwritten());
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "rows read    {:>12}  in {seconds:.2} s, {}/s",
        thousands(tally.rows),
        thousands(rate as u64)
    )?;
    writeln!(out, "stored       {:>12}  in database {db}", thousands(stored))?;
    writeln!(out, "  new        {:>12}", thousands(stored - overwritten))?;
    writeln!(out, "  overwritten{:>12}", thousands(overwritten))?;
    writeln!(out, "skipped      {:>12}", thousands(tally.skipped))?;
    if tally.comments > 0 {
        writeln!(out, "comments     {:>12}", thousands(tally.comments))?;
    }
    out.flush()
}
