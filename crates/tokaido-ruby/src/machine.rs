//! What scripts may know about the machine: files below the document root, and its load.

use std::{fs, os::unix::fs::MetadataExt as _};

use tokaido_script::{Fault, FileError, ServerFigures, Value};

use crate::{
    context::Context,
    items::{self, Argument},
    operation::Operation,
};

pub(crate) fn run(
    context: &mut Context,
    operation: Operation,
    arguments: &[Argument<'_>],
) -> Result<(), Fault> {
    match operation {
        Operation::DocumentRoot => {
            let root = context.document_root.as_ref().map(|root| root.path().as_os_str());
            let root = root.map(|root| root.as_encoded_bytes().to_vec());
            root.into_iter().for_each(|root| context.answer_bytes(root));
        }
        Operation::Stat => {
            let path = arguments[0].text("a path")?;
            let Some(root) = &context.document_root else { return Ok(()) };
            let file = match root.open(&path) {
                Ok(file) => file,
                Err(FileError::Missing(_) | FileError::Outside(_)) => return Ok(()),
            };
            let Ok(metadata) = file.metadata() else { return Ok(()) };
            context.answer_value(Value::Array(figures(&metadata)));
        }
        _ => {
            let (host, _) = context.host()?;
            let no_figures = || Fault::refused("there are no figures of this server");
            let ServerFigures { uptime_s, requests, connections_open, connections_max } =
                host.figures().ok_or_else(no_figures)?;
            let whole =
                [std::process::id().into(), uptime_s, requests, connections_open, connections_max];
            let mut averages = load_averages().unwrap_or_default();
            averages.resize(3, 0.0);
            let times = [processor_seconds().unwrap_or_default()];
            context.answer.push(items::array(whole.len() + times.len() + averages.len()));
            let whole = whole.into_iter().map(|number| items::integer(whole_number(number)));
            context.answer.extend(whole);
            context.answer.extend(times.into_iter().chain(averages).map(items::number));
        }
    }
    Ok(())
}

/// The figures of `Apache::Finfo` about a file, in the order in which `ruby/apache/server.rb`
/// expects them. Times are microseconds since 1970.
fn figures(metadata: &fs::Metadata) -> Vec<Value> {
    let time = |seconds: i64, nanoseconds: i64| {
        seconds.saturating_mul(1_000_000).saturating_add(nanoseconds / 1000)
    };
    let whole = whole_number;
    let figures = [
        i64::from(metadata.mode()),
        i64::from(metadata.uid()),
        i64::from(metadata.gid()),
        whole(metadata.dev()),
        whole(metadata.ino()),
        whole(metadata.nlink()),
        whole(metadata.size()),
        whole(metadata.blocks().saturating_mul(512)),
        time(metadata.atime(), metadata.atime_nsec()),
        time(metadata.mtime(), metadata.mtime_nsec()),
        time(metadata.ctime(), metadata.ctime_nsec()),
    ];
    figures.map(Value::Integer).to_vec()
}

fn whole_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Ticks per second in the files of `/proc`, on every machine.
const TICKS: f64 = 100.0;

/// Processor time of this process, according to proc(5): its user and kernel times.
fn processor_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may contain spaces.
    let (_, fields) = text.rsplit_once(") ")?;
    let ticks = fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    Some(ticks.sum::<f64>() / TICKS)
}

/// The load averages over one, five and fifteen minutes.
fn load_averages() -> Option<Vec<f64>> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    Some(text.split(' ').take(3).filter_map(|number| number.parse().ok()).collect())
}
