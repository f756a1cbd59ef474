//! `tokaido cdb`: constant databases in the format of TinyCDB, with the options of its tool.

mod input;

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use input::Input;
use tokaido_cdb::{Duplicates, Options, Put, Reader, Temporary, Writer};

use crate::{
    error::{EXIT_FAILED, Error},
    formats::cdb_text::{TextError, TextFormat, TextReader, TextWriter},
};

/// The end of the help of commands that read a whole file.
const READ_EXIT_STATUS: &str = "\
Exit status: 0 if everything was printed, 1 on failure, 2 for a wrong command line.";

/// Size of a read from an input in bytes.
const READ_LEN: usize = 256 << 10;

/// Create and read constant databases (cdb files)
///
/// A constant database is created once and then only read; a new one replaces it in one step. The
/// files are those of cdb and TinyCDB, and the commands have the options of TinyCDB's tool `cdb`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CdbArgs {
    #[command(subcommand)]
    command: CdbCommand,
}

#[derive(Debug, clap::Subcommand)]
enum CdbCommand {
    Make(MakeArgs),
    Get(GetArgs),
    Dump(DumpArgs),
    List(ListArgs),
    Stats(StatsArgs),
}

/// Create a file from text
///
/// The records are written to a temporary file, which replaces FILE once it is complete and on
/// disk. Each INPUT is text as `tokaido cdb dump` prints it: +KLEN,VLEN:KEY->VALUE and a newline
/// for each record, then an empty line. A key may have several records.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  tokaido cdb make -m ports.cdb < ports.txt
  tokaido cdb dump old.cdb | tokaido cdb make -r new.cdb - more.txt

Exit status: 0 if FILE was created, 1 on failure (then FILE is as it was before, except with -t -), 2
for a wrong command line."
)]
struct MakeArgs {
    /// File to create or replace
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Text to read; - is standard input, which is also the default
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Read a key and a value, separated by spaces or tabs, from each line; # begins a comment
    #[arg(short, long)]
    map: bool,
    /// Build the file under this name, on the file system of FILE; - builds it in FILE itself [default: a new name]
    #[arg(short, long, value_name = "TMP")]
    temporary: Option<PathBuf>,
    /// Permissions of the file, in octal with a leading 0 [default: 0666 minus the umask]
    #[arg(short, long, value_name = "PERMS", value_parser = parse_permissions)]
    permissions: Option<u32>,
    /// Report duplicate keys
    #[arg(short, long)]
    warn: bool,
    /// Fail at a duplicate key
    #[arg(short = 'e', long)]
    refuse: bool,
    /// Of several records with the same key, keep the last
    #[arg(short, long, overrides_with_all = ["keep_first", "zero_fill"])]
    replace: bool,
    /// Of several records with the same key, keep the first
    #[arg(short = 'u', long, overrides_with_all = ["replace", "zero_fill"])]
    keep_first: bool,
    /// Of several records with the same key, keep the last, and overwrite the others with zeros
    #[arg(short = '0', long, overrides_with_all = ["replace", "keep_first"])]
    zero_fill: bool,
}

/// Print the values of a key
///
/// All values of the key are printed unchanged, one after the other.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Example:
  tokaido cdb get -m ports.cdb ssh

Exit status: 0 if the key exists, 1 if it does not, 2 for a wrong command line, 3 if that is
unknown: the file cannot be read, or is damaged."
)]
struct GetArgs {
    /// File to look in
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Key to look for
    #[arg(value_name = "KEY")]
    key: OsString,
    /// Print a newline after each value
    #[arg(short, long)]
    map: bool,
    /// Print only the value with this number; the first is 1
    #[arg(short, long, value_name = "NUM", value_parser = clap::value_parser!(u32).range(1..))]
    number: Option<u32>,
}

/// Print all records, in the form that make reads
#[derive(Debug, clap::Args)]
#[command(after_long_help = READ_EXIT_STATUS)]
struct DumpArgs {
    /// File to read; - is standard input, which is also the default
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print key and value on one line; fails at a record that does not fit on a line
    #[arg(short, long)]
    map: bool,
}

/// Print the key of each record, as +KLEN:KEY and a newline
#[derive(Debug, clap::Args)]
#[command(after_long_help = READ_EXIT_STATUS)]
struct ListArgs {
    /// File to read; - is standard input, which is also the default
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print each key on one line; fails at a key that does not fit on a line
    #[arg(short, long)]
    map: bool,
}

/// Print the number of records, their lengths, and their distances in the hash tables
#[derive(Debug, clap::Args)]
#[command(after_long_help = READ_EXIT_STATUS)]
struct StatsArgs {
    /// File to read; - is standard input, which is also the default
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) fn cdb(args: &CdbArgs) -> Result<ExitCode, Error> {
    match &args.command {
        CdbCommand::Make(args) => make(args),
        CdbCommand::Get(args) => get(args).map_err(Error::looking_up),
        CdbCommand::Dump(DumpArgs { file, map }) => {
            print_records(file.as_deref(), if *map { TextFormat::Map } else { TextFormat::Native })
        }
        CdbCommand::List(ListArgs { file, map }) => {
            let format = if *map { TextFormat::MapKeys } else { TextFormat::NativeKeys };
            print_records(file.as_deref(), format)
        }
        CdbCommand::Stats(args) => stats(args),
    }
}

/// An octal number. The leading 0 is required, because the `cdb` tool reads others as decimal.
fn parse_permissions(text: &str) -> Result<u32, String> {
    let permissions = text.strip_prefix('0').and_then(|_| u32::from_str_radix(text, 8).ok());
    permissions
        .filter(|permissions| *permissions <= 0o777)
        .ok_or_else(|| "write an octal number from 0000 to 0777, such as 0644".to_owned())
}

fn make(args: &MakeArgs) -> Result<ExitCode, Error> {
    let temporary = match &args.temporary {
        None => Temporary::Beside,
        Some(path) if path == Path::new("-") => Temporary::None,
        Some(path) => Temporary::At(path.clone()),
    };
    let options = Options {
        duplicates: duplicates(args),
        temporary,
        permissions: args.permissions,
        ..Options::default()
    };
    let mut writer = Writer::create(&args.file, &options)?;
    let standard_input = [PathBuf::from("-")];
    let inputs = if args.inputs.is_empty() { &standard_input[..] } else { &args.inputs };
    for path in inputs {
        if path == Path::new("-") {
            read_records(io::stdin().lock(), "standard input", args, &mut writer)?;
        } else {
            let file = File::open(path).map_err(Error::file(path))?;
            let input = BufReader::with_capacity(READ_LEN, file);
            read_records(input, &path.display().to_string(), args, &mut writer)?;
        }
    }
    writer.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn duplicates(args: &MakeArgs) -> Duplicates {
    match args {
        MakeArgs { refuse: true, .. } => Duplicates::Refuse,
        MakeArgs { replace: true, .. } => Duplicates::Replace,
        MakeArgs { keep_first: true, .. } => Duplicates::KeepFirst,
        MakeArgs { zero_fill: true, .. } => Duplicates::ZeroFill,
        MakeArgs { warn: true, .. } => Duplicates::Report,
        _ => Duplicates::Keep,
    }
}

fn read_records(
    input: impl BufRead,
    name: &str,
    args: &MakeArgs,
    writer: &mut Writer,
) -> Result<(), Error> {
    let format = if args.map { TextFormat::Map } else { TextFormat::Native };
    let text_error = |source| Error::CdbText { name: name.to_owned(), source };
    let mut reader = TextReader::new(input, format);
    while let Some(record) = reader.next_record().map_err(text_error)? {
        if writer.put(record.key, record.value)? == Put::Duplicate && args.warn {
            let key = String::from_utf8_lossy(record.key).into_owned();
            let record = reader.records();
            // If nobody can read it, the file is made all the same.
            let _ = writeln!(
                io::stderr(),
                "tokaido: {name}: record {record}: the key {key:?} was there before"
            );
        }
    }
    Ok(())
}

fn get(args: &GetArgs) -> Result<ExitCode, Error> {
    // Not from standard input, where TinyCDB's tool does not look up keys either.
    let file = Reader::open(&args.file)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let before = args.number.map_or(0, |number| number as usize - 1);
    let count = args.number.map_or(usize::MAX, |_| 1);
    let mut is_found = false;
    for value in file.get_all(args.key.as_bytes()).skip(before).take(count) {
        let value =
            value.map_err(|source| Error::CdbDamaged { path: args.file.clone(), source })?;
        is_found = true;
        let end: &[u8] = if args.map { b"\n" } else { b"" };
        out.write_all(value).and_then(|()| out.write_all(end)).map_err(Error::Stdout)?;
    }
    out.flush().map_err(Error::Stdout)?;
    Ok(if is_found { ExitCode::SUCCESS } else { EXIT_FAILED.into() })
}

fn print_records(file: Option<&Path>, format: TextFormat) -> Result<ExitCode, Error> {
    let input = Input::open(file)?;
    let mut writer = TextWriter::new(BufWriter::new(io::stdout().lock()), format);
    for record in input.reader.iter() {
        let record = record.map_err(input.damaged())?;
        writer.write(record.key, record.value).map_err(|error| match error {
            TextError::Io(source) => Error::Stdout(source),
            source => Error::CdbText { name: input.name(), source },
        })?;
    }
    writer.finish().map_err(Error::Stdout)?;
    Ok(ExitCode::SUCCESS)
}

fn stats(args: &StatsArgs) -> Result<ExitCode, Error> {
    let input = Input::open(args.file.as_deref())?;
    let statistics = input.reader.statistics().map_err(input.damaged())?;
    let mut out = io::stdout().lock();
    write!(out, "{statistics}").and_then(|()| out.flush()).map_err(Error::Stdout)?;
    Ok(ExitCode::SUCCESS)
}
