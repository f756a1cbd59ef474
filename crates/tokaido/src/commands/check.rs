//! `tokaido check`: finds what is wrong with a store, and salvages what is readable.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::{Value, json};
use tokaido_store::tree::{self, CheckReport, Finding};

use crate::{
    error::{EXIT_FAILED, Error},
    progress::thousands,
};

/// Verify a store without changing it
///
/// Reads every page of the base and every frame of the log, and reports what is damaged, where, and
/// what can be saved. Nothing is changed, and the store cannot be opened meanwhile. To check a store
/// that a server has open, take a backup and check that.
///
/// With --salvage, everything that can be read goes into a new store: from the base, all records on
/// sound pages; from the log, all transactions before the first damage.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  tokaido check data
  tokaido check data --salvage saved && mv data damaged && mv saved data

Exit status: 0 if the store is sound, 1 if it is damaged, 2 for a wrong command line, 3 if it cannot be
checked, because there is none or it is in use."
)]
pub(crate) struct CheckArgs {
    /// Directory of the store
    #[arg(value_name = "DATA", default_value = "tokaido-data")]
    data: PathBuf,
    /// Print the findings as one JSON object
    #[arg(long)]
    json: bool,
    /// Create a new store in NEW from what can be read
    #[arg(long, value_name = "NEW")]
    salvage: Option<PathBuf>,
}

pub(crate) fn check(args: &CheckArgs) -> Result<ExitCode, Error> {
    let (report, salvaged) = match &args.salvage {
        None => (tree::check(&args.data)?, None),
        Some(destination) => {
            let salvage = tree::salvage(&args.data, destination)?;
            (salvage.check, Some(salvage.records))
        }
    };
    let mut text = match args.json {
        true => format!("{}\n", as_json(&report, salvaged)),
        false => as_text(&report, &args.data, salvaged.is_some()),
    };
    if let (Some(records), Some(destination), false) = (salvaged, &args.salvage, args.json) {
        let records = thousands(records);
        text.push_str(&format!("salvaged  {records} records, in {}\n", destination.display()));
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Stdout)?;
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { EXIT_FAILED.into() })
}

fn as_text(report: &CheckReport, data: &Path, is_salvaged: bool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text.push_str(&format!("{name:<9} {value}\n"));
    let (base, log) = (&report.base, &report.log);
    if report.is_unfinished {
        line("empty", "making this store was interrupted before anything was written to it");
        line("sound", "nothing is wrong: opening it makes it anew");
        return text;
    }
    line(
        "base",
        &format!(
            "{} pages of {} bytes in use, {} free; up to transaction {}",
            thousands(base.pages),
            thousands(base.page_len),
            thousands(base.pages_free),
            thousands(base.sequence)
        ),
    );
    if report.runs.runs > 0 {
        let (runs, entries) = (thousands(report.runs.runs), thousands(report.runs.entries));
        line("runs", &format!("{runs} files with {entries} records that the base gets later"));
    }
    line(
        "log",
        &format!(
            "{} segments, {} transactions after that",
            thousands(log.segments),
            thousands(log.transactions)
        ),
    );
    if let Some((segment, byte)) = log.torn_at {
        let place = format!("segment {segment}, byte {byte}");
        line("", &format!("an interrupted write at {place}, which opening cuts off: no damage"));
    }
    for database in &report.databases {
        let records = thousands(database.statistics.records);
        let expiring = thousands(database.expiring);
        let elements = match database.elements.records {
            0 => String::new(),
            elements => format!("; {} elements of collections", thousands(elements)),
        };
        let name = &database.name;
        line("database", &format!("{name}: {records} records, {expiring} expire{elements}"));
    }
    for finding in &report.findings {
        line("damaged", &finding.to_string());
    }
    if report.findings_more > 0 {
        line("", &format!("and {} more", thousands(report.findings_more)));
    }
    if report.is_sound() {
        line("sound", "nothing is wrong");
        return text;
    }
    let records = report.databases.iter().map(|database| database.statistics.records).sum();
    let how = match is_salvaged {
        true => String::new(),
        false => format!(", which `tokaido check {} --salvage NEW` saves", data.display()),
    };
    line("readable", &format!("{} records{how}", thousands(records)));
    if log.transactions_behind > 0 {
        let behind = thousands(log.transactions_behind);
        line(
            "lost",
            &format!("{behind} transactions behind the damage in the log, at least one more"),
        );
    }
    text
}

fn as_json(report: &CheckReport, salvaged: Option<u64>) -> Value {
    let databases = report.databases.iter().map(|database| {
        json!({
            "name": database.name,
            "records": database.statistics.records,
            "key_bytes": database.statistics.key_bytes,
            "value_bytes": database.statistics.value_bytes,
            "expiring": database.expiring,
            "elements": database.elements.records,
        })
    });
    let torn_at = report.log.torn_at;
    json!({
        "sound": report.is_sound(),
        "unfinished": report.is_unfinished,
        "findings": report.findings.iter().map(finding_as_json).collect::<Vec<_>>(),
        "findings_more": report.findings_more,
        "base": {
            "sequence": report.base.sequence,
            "pages": report.base.pages,
            "pages_free": report.base.pages_free,
            "page_len": report.base.page_len,
        },
        "runs": {
            "runs": report.runs.runs,
            "bytes": report.runs.bytes,
            "entries": report.runs.entries,
        },
        "log": {
            "segments": report.log.segments,
            "transactions": report.log.transactions,
            "transactions_behind_damage": report.log.transactions_behind,
            "torn_at": torn_at.map(|(segment, byte)| json!({ "segment": segment, "byte": byte })),
        },
        "databases": databases.collect::<Vec<_>>(),
        "expiry_entries_stale": report.expiry_entries_stale,
        "salvaged_records": salvaged,
    })
}

/// A finding's kind, its position if it has one, and the message. Keys are shown with escapes.
fn finding_as_json(finding: &Finding) -> Value {
    let mut object = match finding {
        Finding::Log { segment, byte, .. } => {
            json!({ "kind": "log", "segment": segment, "byte": byte })
        }
        Finding::Page { page, tree, .. } => json!({ "kind": "page", "page": page, "tree": tree }),
        Finding::Unread { page, tree, .. } => {
            json!({ "kind": "unread", "page": page, "tree": tree })
        }
        Finding::Record { tree, key, .. } => {
            json!({ "kind": "record", "tree": tree, "key": key.escape_ascii().to_string() })
        }
        Finding::Statistics { tree, .. } => json!({ "kind": "statistics", "tree": tree }),
        Finding::ExpiryEntry { tree, key, .. } => {
            json!({ "kind": "expiry", "tree": tree, "key": key.escape_ascii().to_string() })
        }
        Finding::Pages { .. } => json!({ "kind": "pages" }),
        Finding::Run { .. } => json!({ "kind": "run" }),
        Finding::Directory { .. } => json!({ "kind": "directory" }),
        // A new kind, unknown to this program; the message describes it.
        _ => json!({ "kind": "other" }),
    };
    object["message"] = json!(finding.to_string());
    object
}
