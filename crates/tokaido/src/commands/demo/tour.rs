//! The tour: a server, data, procedures, calls, and what to try next.

use std::{
    io::{self, Write},
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::ExitCode,
    time::Instant,
};

use tokaido_server::{Address, Config, PORT_DEFAULT, Server, Signals, SocketAddress};
use tokaido_wire::resp::Reply;

use super::{
    ask::{Asker, WIDTH, format_time},
    assets::{DATABASE, STATIONS, install_procedures},
};
use crate::{
    client::{self, Client},
    error::Error,
    formats::{Format, Options, Row, RowReader},
    http::HttpClient,
    loader::{Loader, Sink},
    logging,
    progress::{Progress, thousands},
    style::Style,
};

/// Number of ports to try after the default one, before taking any free one.
const PORTS_TRIED: u16 = 10;

/// How many times the demo reads the whole road in one call.
const WALKS: &str = "1000";

/// Take a one-minute tour of the server
///
/// Starts a server on an empty store in a temporary directory, loads the 53 stations of the Tokaido
/// into it, installs example procedures, calls them over the Redis protocol and over HTTP, and shows
/// each request, its answer, and how long it took. After that, the server keeps running until Ctrl-C,
/// so that you can try it out; the directory is removed at the end.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "Exit status: 0 if all went as shown, 1 on failure, 2 for a wrong command line."
)]
pub(crate) struct DemoArgs {
    /// Exit after the tour
    #[arg(long)]
    exit: bool,
}

pub(crate) fn demo(args: &DemoArgs) -> Result<ExitCode, Error> {
    logging::start("warn")?;
    let io_error = |source| Error::Io { what: "cannot make the demo's directory", source };
    let directory = tempfile::Builder::new().prefix("tokaido-demo-").tempdir().map_err(io_error)?;
    let procedures = directory.path().join("procedures");
    install_procedures(&procedures).map_err(io_error)?;
    let signals = Signals::catch().map_err(Error::signal)?;
    let server = Server::start(Config {
        listen: vec![
            Address::Tcp { host: Ipv4Addr::LOCALHOST.to_string(), port: choose_port() }.into(),
        ],
        directory: directory.path().join("data"),
        procedures: Some(procedures),
        watch: true,
        ..Config::default()
    })?;
    let toured = tour(&server, directory.path(), args.exit);
    match toured {
        Ok(()) if args.exit => server.stop(),
        Ok(()) => server.run_until_signal(signals).map_err(Error::signal)?,
        Err(error) => {
            server.stop();
            return Err(error);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The default port if it is free, otherwise one near it, otherwise any.
fn choose_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    (PORT_DEFAULT..=PORT_DEFAULT + PORTS_TRIED).find(is_free).unwrap_or(0)
}

fn tour(server: &Server, directory: &Path, exits: bool) -> Result<(), Error> {
    let address = &server.addresses()[0];
    let target = client::Server::new(Some(&address.to_string()), None)?;
    let mut asker = Asker {
        client: target.connect_to(DATABASE)?,
        http: HttpClient::connect(&target)?,
        out: io::stdout(),
        style: Style::of_stdout(),
    };
    greet(&mut asker, server, address, directory).map_err(Error::Stdout)?;
    load_stations(&mut asker, target.connect_to(DATABASE)?)?;
    ask_redis(&mut asker)?;
    ask_http(&mut asker)?;
    walk(&mut asker)?;
    part(&mut asker, address, exits).map_err(Error::Stdout)
}

fn greet<W: Write>(
    asker: &mut Asker<W>,
    server: &Server,
    address: &SocketAddress,
    directory: &Path,
) -> io::Result<()> {
    let procedures = server.procedures();
    let names: Vec<&str> = procedures.iter().map(|p| p.name.as_str()).collect();
    let title =
        format!("Tokaido {}: procedures that run next to the data", env!("CARGO_PKG_VERSION"));
    asker.heading(&title)?;
    asker.line(&format!("listening   {address} (Redis protocol and HTTP on the same port)"))?;
    asker
        .line(&format!("store       {} (removed at the end)", directory.join("data").display()))?;
    asker.line("reload      each change of a procedure file is served at once")?;
    asker.line("durability  every write is on disk before it is answered")?;
    for (index, line) in wrap(&names, WIDTH - 14).iter().enumerate() {
        asker.line(&format!("{:10}  {line}", if index == 0 { "procedures" } else { "" }))?;
    }
    for error in server.load_errors() {
        asker.line(&format!("not loaded  {error}"))?;
    }
    Ok(())
}

/// Words in lines of at most `width` characters, unless one word is longer.
fn wrap(words: &[&str], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut().filter(|line| line.len() + 1 + word.len() <= width) {
            Some(line) => line.extend([" ", word]),
            None => lines.push((*word).to_owned()),
        }
    }
    lines
}

fn load_stations<W: Write>(asker: &mut Asker<W>, client: Client) -> Result<(), Error> {
    asker.heading("Loading the stations of the Tokaido").map_err(Error::Stdout)?;
    let options =
        Options { format: Some(Format::Tsv), comment: Some("#".to_owned()), ..Options::default() };
    let path = Path::new("stations.tsv");
    let input_error = |source| Error::Input { path: path.to_owned(), source };
    let mut reader = RowReader::new(STATIONS, None, &options).map_err(input_error)?;
    let started = Instant::now();
    let mut progress = Progress::new(Some(STATIONS.len() as u64));
    let mut loader = Loader::new(Sink::Server(client));
    let mut row = Row::default();
    while let Some(read) = reader.read(&mut row).map_err(Error::file(path))? {
        if read.is_ok() {
            loader.push(&row)?;
        }
        progress.row(reader.bytes());
    }
    loader.flush()?;
    let took = started.elapsed();
    progress.finish();
    let stored = thousands(loader.stored());
    let line = format!("{stored} rows stored over the Redis protocol in {}", format_time(took));
    asker.line(&line).map_err(Error::Stdout)
}

fn ask_redis<W: Write>(asker: &mut Asker<W>) -> Result<(), Error> {
    asker.heading("Over the Redis protocol").map_err(Error::Stdout)?;
    asker.redis(&["GET", "53"])?;
    asker.redis(&["FCALL", "stations.between", "0", "Odawara", "Numazu"])?;
    asker.redis(&["FCALL", "journey.travel", "0", "1", "53"])?;
    asker.heading("A procedure that fails leaves nothing behind").map_err(Error::Stdout)?;
    asker.redis(&["SELECT", "visits"])?;
    asker.redis(&["GET", "53"])?;
    asker.redis(&["FCALL", "journey.travel", "0", "50", "60"])?;
    asker.redis(&["GET", "53"])?;
    Ok(())
}

fn ask_http<W: Write>(asker: &mut Asker<W>) -> Result<(), Error> {
    asker.heading("Over HTTP, on the same port and the same data").map_err(Error::Stdout)?;
    asker.http("GET", "/v1/db/stations/10", None)?;
    asker.http("POST", "/v1/call/stations.between", Some(r#"["Odawara", "Hakone"]"#))?;
    asker.http("GET", "/stations/10", None)
}

/// One call that reads a lot, to show what a procedure's read costs.
fn walk<W: Write>(asker: &mut Asker<W>) -> Result<(), Error> {
    asker.heading("Next to the data: one call, many reads").map_err(Error::Stdout)?;
    let (answer, took) = asker.redis(&["FCALL", "journey.walk", "0", WALKS])?;
    if let Reply::Integer(reads @ 1..) = answer {
        let each_ns = took.as_nanos() as f64 / reads as f64;
        asker.line(&format!("  = {each_ns:.0} ns a read")).map_err(Error::Stdout)?;
    }
    let mut notes = vec!["Times are of single calls from this process, the first of their kind."];
    if cfg!(debug_assertions) {
        notes.push("This is a debug build: `cargo run --release -- demo` is several times faster.");
    }
    asker.out.write_all(b"\n").map_err(Error::Stdout)?;
    for note in notes {
        let note = asker.style.dim(note);
        asker.line(&note).map_err(Error::Stdout)?;
    }
    Ok(())
}

fn part<W: Write>(asker: &mut Asker<W>, address: &SocketAddress, exits: bool) -> io::Result<()> {
    if exits {
        return asker.out.flush();
    }
    asker.heading(&format!("The server stays up at {address} until Ctrl-C. Try"))?;
    let port = address.tcp().map_or(PORT_DEFAULT, |address| address.port());
    for line in [
        format!("redis-cli -p {port} FCALL stations.between 0 Miya Kuwana"),
        format!("curl http://{address}/stations/01"),
        format!("curl http://{address}/v1/call/stations.between -d '[\"Seki\", \"Otsu\"]'"),
        format!("tokaido shell --connect {address}"),
    ] {
        let line = asker.style.accent(&line);
        asker.line(&line)?;
    }
    asker.out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_wrapped_between_them() {
        assert_eq!(
            wrap(&["a", "bc", "def", "longer than all"], 4),
            ["a bc", "def", "longer than all"]
        );
        assert_eq!(wrap(&[], 4), [""; 0]);
    }
}
