//! `stat`: information about the server and its database.

use std::fs;

use tokaido_store::{DatabaseId, DatabaseStatistics, ReadTransaction};

use super::{figures::Figure, refusal::Refusal};
use crate::{
    Shared,
    shared::{TOKAIDO_VERSION, wall_clock_us},
    system,
};

/// The version of Tokyo Tyrant whose commands are supported.
pub(super) const TOKYO_TYRANT_VERSION: &str = "1.1.41";

/// The versions of its library and its protocol.
const LIBRARY_VERSION: u32 = 324;
const PROTOCOL_VERSION: &str = "0.91";

/// The information, in the order of Tokyo Tyrant.
pub(crate) type Described = Vec<(&'static str, String)>;

/// Describes the server, without its counts.
pub(crate) fn describe(
    shared: &Shared,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Described, Refusal> {
    let statistics = tx.statistics(database)?;
    #[allow(clippy::cast_precision_loss, reason = "a time of the day, to the microsecond")]
    let now_s = wall_clock_us() as f64 / 1e6;
    let is_ordered = shared.capabilities(database).is_ordered;
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
    let (user, system) = system::processor_time();
    Ok(vec![
        ("version", format!("{TOKYO_TYRANT_VERSION} (Tokaido {TOKAIDO_VERSION})")),
        ("libver", LIBRARY_VERSION.to_string()),
        ("protver", PROTOCOL_VERSION.to_owned()),
        ("os", "Linux".to_owned()),
        ("time", format!("{now_s:.6}")),
        ("pid", std::process::id().to_string()),
        ("sid", "0".to_owned()),
        ("type", if is_ordered { "B+ tree" } else { "hash" }.to_owned()),
        ("path", shared.tyrant.database().to_owned()),
        ("rnum", statistics.records.to_string()),
        ("size", (statistics.key_bytes + statistics.value_bytes).to_string()),
        ("bigend", "0".to_owned()),
        ("loadavg", format!("{load:.6}")),
        ("memsize", system::address_space_bytes().to_string()),
        ("memrss", system::resident_bytes().to_string()),
        ("ru_user", user),
        ("ru_sys", system),
        ("ru_real", format!("{}.000000", shared.uptime_s())),
    ])
}

/// The text of `stat`: information, and counts of what clients did.
pub(super) fn text(shared: &Shared, described: Described) -> String {
    let figures = &shared.tyrant.figures;
    let described = described.into_iter().map(|(name, value)| format!("{name}\t{value}\n"));
    let counts = figures.each().map(|(name, count)| format!("cnt_{name}\t{count}\n"));
    described.chain(counts).collect()
}

/// The lines of memcached's `stats`.
pub(super) fn lines(shared: &Shared, statistics: &DatabaseStatistics) -> String {
    use tokaido_wire::tyrant::Verb::{Get, Out, Put, PutCat, PutKeep, PutNr, PutShl, Vanish};
    let figures = &shared.tyrant.figures;
    let count = |verb| figures.get(Figure::Command(verb));
    let (user, system) = system::processor_time();
    let sums = [
        ("cmd_set", [Put, PutKeep, PutCat, PutShl, PutNr].map(count).iter().sum(), Figure::PutMiss),
        ("cmd_delete", count(Out), Figure::OutMiss),
        ("cmd_get", count(Get), Figure::GetMiss),
    ];
    let mut lines = vec![
        ("pid".to_owned(), std::process::id().to_string()),
        ("uptime".to_owned(), shared.uptime_s().to_string()),
        ("time".to_owned(), (wall_clock_us() / 1_000_000).to_string()),
        ("version".to_owned(), TOKYO_TYRANT_VERSION.to_owned()),
        ("pointer_size".to_owned(), usize::BITS.to_string()),
        ("rusage_user".to_owned(), user),
        ("rusage_system".to_owned(), system),
    ];
    for (name, sum, missed) in sums {
        let missed = figures.get(missed);
        lines.push((name.to_owned(), sum.to_string()));
        lines.push((format!("{name}_hits"), sum.saturating_sub(missed).to_string()));
        lines.push((format!("{name}_misses"), missed.to_string()));
    }
    let bytes = statistics.key_bytes + statistics.value_bytes;
    lines.extend([
        ("cmd_flush".to_owned(), count(Vanish).to_string()),
        ("curr_items".to_owned(), statistics.records.to_string()),
        ("total_items".to_owned(), statistics.records.to_string()),
        ("bytes".to_owned(), bytes.to_string()),
        ("threads".to_owned(), shared.worker_count().to_string()),
    ]);
    let lines: String =
        lines.into_iter().map(|(name, value)| format!("STAT {name} {value}\r\n")).collect();
    lines + "END\r\n"
}
