//! The text of INFO. Clients look in it for `redis_version`, `loading`, `role` and
//! `maxmemory_policy`, so those are always true in Redis's terms.

use std::{
    fmt::Write,
    fs,
    sync::atomic::{AtomicU64, Ordering},
};

use tokaido_store::{
    Capabilities, DatabaseId, DatabaseStatistics, ReadTransaction, Usage, composite,
};

use super::{
    clients::Totals,
    failure::Failure,
    operator::Row,
    pubsub::Names,
    table::{self, COMMANDS},
};
use crate::{
    Shared, SocketAddress, log,
    shared::{REDIS_VERSION, TOKAIDO_VERSION, wall_clock_us},
    system::resident_bytes,
};

/// The sections in display order.
const SECTIONS: [&str; 11] = [
    "Server",
    "Clients",
    "Memory",
    "Persistence",
    "Stats",
    "Replication",
    "CPU",
    "Commandstats",
    "Cluster",
    "Keyspace",
    "Databases",
];

/// The sections that `wanted` names; if it is empty, all but `Commandstats`.
pub(super) fn render(
    shared: &Shared,
    tx: &mut dyn ReadTransaction,
    wanted: &[&[u8]],
) -> Result<String, Failure> {
    let is_wanted = |section: &str| {
        let is_default = section != "Commandstats";
        let default = if is_default { "default" } else { "all" };
        let names = ["all", default, "everything", section];
        wanted.is_empty() && is_default
            || wanted.iter().any(|w| names.iter().any(|n| w.eq_ignore_ascii_case(n.as_bytes())))
    };
    let mut text = String::new();
    for section in SECTIONS.into_iter().filter(|section| is_wanted(section)) {
        let lines = match section {
            "Server" => {
                let lines =
                    server(shared).into_iter().map(|(name, value)| (name.to_owned(), value));
                let listeners = shared.addresses().iter().enumerate().map(listener);
                push_section(&mut text, section, &lines.chain(listeners).collect::<Vec<_>>());
                continue;
            }
            "Clients" => clients(shared),
            "Memory" => memory(shared),
            "Persistence" => persistence(shared),
            "Stats" => stats(shared),
            "Replication" => replication(shared),
            "CPU" => processor(),
            "Commandstats" => {
                push_section(&mut text, section, &command_statistics(shared));
                continue;
            }
            "Cluster" => vec![("cluster_enabled", "0".to_owned())],
            _ => {
                let lines = keyspace(shared, tx, section == "Keyspace")?;
                push_section(&mut text, section, &lines);
                continue;
            }
        };
        push_section(&mut text, section, &lines);
    }
    Ok(text)
}

fn push_section<N: AsRef<str>>(text: &mut String, section: &str, lines: &[(N, String)]) {
    if !text.is_empty() {
        text.push_str("\r\n");
    }
    // Writing to a string cannot fail.
    let _ = write!(text, "# {section}\r\n");
    for (name, value) in lines {
        let _ = write!(text, "{}:{value}\r\n", name.as_ref());
    }
}

type Lines = Vec<(&'static str, String)>;

fn server(shared: &Shared) -> Lines {
    let uptime_s = shared.uptime_s();
    vec![
        ("redis_version", REDIS_VERSION.to_owned()),
        ("tokaido_version", TOKAIDO_VERSION.to_owned()),
        ("redis_mode", "standalone".to_owned()),
        ("os", std::env::consts::OS.to_owned()),
        ("arch_bits", usize::BITS.to_string()),
        ("process_id", std::process::id().to_string()),
        ("run_id", shared.run_id().to_owned()),
        ("tcp_port", tcp_port(shared).to_string()),
        ("server_time_usec", wall_clock_us().to_string()),
        ("uptime_in_seconds", uptime_s.to_string()),
        ("uptime_in_days", (uptime_s / 86_400).to_string()),
    ]
}

/// The port of the first TCP address, or 0 if there is none, as in Redis.
pub(super) fn tcp_port(shared: &Shared) -> u16 {
    shared.addresses().iter().find_map(SocketAddress::tcp).map_or(0, |address| address.port())
}

/// A line for each address that the server listens on.
fn listener((number, address): (usize, &SocketAddress)) -> (String, String) {
    let value = match address {
        SocketAddress::Tcp(address) => {
            format!("name=tcp,bind={},port={}", address.ip(), address.port())
        }
        SocketAddress::Unix(path) => format!("name=unix,bind={}", path.display()),
    };
    (format!("listener{number}"), value)
}

fn clients(shared: &Shared) -> Lines {
    let open = shared.clients.totals().open;
    vec![
        ("connected_clients", open.to_string()),
        ("maxclients", shared.limits().connections_max.to_string()),
        ("blocked_clients", shared.waiters.len().to_string()),
        ("tracking_clients", shared.tracker.sizes().clients.to_string()),
    ]
}

fn memory(shared: &Shared) -> Lines {
    let resident = resident_bytes().to_string();
    let Usage { memtable_bytes, held_bytes, .. } = shared.store().usage();
    vec![
        ("used_memory", resident.clone()),
        ("used_memory_rss", resident),
        ("maxmemory", "0".to_owned()),
        ("maxmemory_policy", "noeviction".to_owned()),
        ("memtable_bytes", memtable_bytes.to_string()),
        ("memtable_held_bytes", held_bytes.to_string()),
    ]
}

fn persistence(shared: &Shared) -> Lines {
    let Usage { log_bytes, base_bytes, runs_bytes, .. } = shared.store().usage();
    vec![
        ("loading", "0".to_owned()),
        // Everything acknowledged is in the log, and no client has to wait for checkpoints.
        ("rdb_changes_since_last_save", "0".to_owned()),
        ("rdb_bgsave_in_progress", "0".to_owned()),
        ("aof_enabled", "1".to_owned()),
        ("aof_rewrite_in_progress", "0".to_owned()),
        ("log_bytes", log_bytes.to_string()),
        ("base_bytes", base_bytes.to_string()),
        ("runs_bytes", runs_bytes.to_string()),
    ]
}

fn stats(shared: &Shared) -> Lines {
    let Totals { opened, done, .. } = shared.clients.totals();
    let tracked = shared.tracker.sizes();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed).to_string();
    vec![
        ("total_connections_received", opened.to_string()),
        ("total_commands_processed", count(&done.commands)),
        ("total_error_replies", count(&done.errors)),
        ("total_procedure_calls", count(&done.procedure_calls)),
        ("pubsub_channels", shared.channels.len(Names::Channels).to_string()),
        ("pubsub_patterns", shared.channels.len(Names::Patterns).to_string()),
        ("pubsubshard_channels", shared.channels.len(Names::Shards).to_string()),
        ("tracking_total_keys", tracked.keys.to_string()),
        ("tracking_total_items", tracked.items.to_string()),
        ("tracking_total_prefixes", tracked.prefixes.to_string()),
        ("log_lines_dropped", log::lines_dropped().to_string()),
    ]
}

fn replication(shared: &Shared) -> Lines {
    vec![
        ("role", "master".to_owned()),
        ("connected_slaves", "0".to_owned()),
        ("master_replid", shared.run_id().to_owned()),
        ("master_repl_offset", "0".to_owned()),
    ]
}

/// The processor time that the process and its threads have used, in seconds; 0 where the system does not
/// report it.
fn processor() -> Lines {
    /// The unit in which Linux reports a process's times.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name before the closing bracket may contain spaces.
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    [
        ("used_cpu_sys", 12),
        ("used_cpu_user", 11),
        ("used_cpu_sys_children", 14),
        ("used_cpu_user_children", 13),
    ]
    .into_iter()
    .map(|(name, place)| {
        let ticks = fields.get(place).and_then(|field| field.parse().ok()).unwrap_or(0.0);
        (name, format!("{:.6}", ticks / TICKS_PER_SECOND))
    })
    .collect()
}

/// How often each command ran, and how long it took.
fn command_statistics(shared: &Shared) -> Vec<(String, String)> {
    let rows = COMMANDS.iter().map(|command| {
        (command.name, shared.instruments.statistics.row(table::number_of(command)))
    });
    let rows = rows.filter(|(_, row)| row.calls + row.rejected > 0);
    rows.map(|(name, row)| {
        let Row { calls, took_us, failed, rejected, .. } = row;
        let average = took_us as f64 / calls.max(1) as f64;
        let numbers = format!(
            "calls={calls},usec={took_us},usec_per_call={average:.2},rejected_calls={rejected},failed_calls={failed}"
        );
        (format!("cmdstat_{name}"), numbers)
    })
    .collect()
}

/// The databases that are not empty or have another engine than `tree`: if `numbered`, those with a
/// number, under Redis's name for them; otherwise those with a name.
fn keyspace(
    shared: &Shared,
    tx: &mut dyn ReadTransaction,
    numbered: bool,
) -> Result<Vec<(String, String)>, Failure> {
    let mut lines = Vec::new();
    for (id, name) in shared.store().databases() {
        let number = if id == shared.main() { Some(0) } else { number_of(&name, shared.limits()) };
        if number.is_some() != numbered {
            continue;
        }
        let DatabaseStatistics { records, key_bytes, value_bytes } = tx.statistics(id)?;
        let engine = engine(shared, id);
        // Even an empty cache has numbers to show.
        if records == 0 && engine.is_empty() {
            continue;
        }
        lines.push(match number {
            Some(n) => {
                let expires = tx.expiring(id)?;
                (format!("db{n}"), format!("keys={records},expires={expires},avg_ttl=0{engine}"))
            }
            None => (
                name,
                format!("keys={records},key_bytes={key_bytes},value_bytes={value_bytes}{engine}"),
            ),
        });
    }
    Ok(lines)
}

/// The description of an engine other than `tree`.
fn engine(shared: &Shared, database: DatabaseId) -> String {
    let store = &**shared.store();
    let name = store.capabilities(database).name;
    if name == Capabilities::TREE.name {
        return String::new();
    }
    let mut text = format!(",engine={name}");
    if let Some(s) = composite::cache(store, database).map(|cache| cache.statistics()) {
        text += &format!(
            ",bytes={},bytes_max={},hits={},misses={},evicted={},expired={}",
            s.bytes_used, s.bytes_max, s.hits, s.misses, s.evicted, s.expired
        );
    }
    text
}

fn number_of(name: &str, limits: &crate::Limits) -> Option<usize> {
    let number = name.parse().ok().filter(|&n| (1..limits.numbered_databases_max).contains(&n))?;
    (number.to_string() == name).then_some(number)
}
