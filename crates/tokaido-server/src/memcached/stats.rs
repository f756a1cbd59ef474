//! `stats`: figures of the server, in groups, under the names that monitoring knows.

use std::sync::atomic::Ordering::Relaxed;

use tokaido_store::{DatabaseStatistics, cache, composite};
use tokaido_wire::memcached::{Words, text as reply};

use super::{
    MEMCACHED_VERSION, Session,
    failure::Failure,
    figures::{Figure, NAMES},
};
use crate::{
    SocketAddress,
    protocol::Context,
    shared::{TOKAIDO_VERSION, wall_clock_us},
    system::processor_time,
};

/// Figures in order.
pub(super) type Group = Vec<(String, String)>;

/// The outcome of a request for figures.
pub(super) enum Told {
    Group(Group),
    /// The figures count from 0 again.
    Reset,
    /// There is no such group.
    Unknown,
}

/// Answers in the text protocol.
pub(super) fn answer(
    mut arguments: Words<'_>,
    session: &Session,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Failure> {
    match tell(arguments.next().unwrap_or_default(), session, context)? {
        Told::Unknown => reply::line(output, "ERROR"),
        Told::Reset => reply::line(output, "RESET"),
        Told::Group(group) => {
            group.iter().for_each(|(name, value)| reply::stat(output, name, value));
            reply::line(output, "END");
        }
    }
    Ok(())
}

/// The figures of a group.
pub(super) fn tell(
    group: &[u8],
    session: &Session,
    context: &mut Context<'_>,
) -> Result<Told, Failure> {
    Ok(Told::Group(match group {
        b"" => general(session, context)?,
        b"items" => items(session, context)?,
        b"slabs" => slabs(session, context)?,
        b"sizes" => vec![("sizes_status".to_owned(), "disabled".to_owned())],
        b"settings" => settings(session, context),
        b"conns" => connections(context),
        b"reset" => {
            context.shared.memcached.clients.reset();
            return Ok(Told::Reset);
        }
        _ => return Ok(Told::Unknown),
    }))
}

/// What the database holds and, for a cache, what it has done.
struct Holdings {
    database: DatabaseStatistics,
    cache: Option<cache::Statistics>,
}

impl Holdings {
    fn of(session: &Session, context: &mut Context<'_>) -> Result<Self, Failure> {
        let cache = composite::cache(&**context.shared.store(), session.database);
        let cache = cache.map(|cache| cache.statistics());
        let database = session.read(context, |tx| Ok(tx.statistics(session.database)?))?;
        Ok(Self { database, cache })
    }

    fn bytes(&self) -> u64 {
        self.database.key_bytes + self.database.value_bytes
    }

    fn bytes_max(&self, context: &Context<'_>) -> u64 {
        let store_max = context.shared.limits().store_bytes_max as u64;
        self.cache.map_or(store_max, |cache| cache.bytes_max)
    }
}

#[allow(clippy::needless_pass_by_value, reason = "so that numbers can be given as they are")]
fn stat(name: &str, value: impl ToString) -> (String, String) {
    (name.to_owned(), value.to_string())
}

fn general(session: &Session, context: &mut Context<'_>) -> Result<Group, Failure> {
    let holdings = Holdings::of(session, context)?;
    let shared = context.shared;
    let limits = shared.limits();
    let counts = shared.memcached.clients.counts();
    let (open, opened) = shared.memcached.clients.numbers();
    let (user, system) = processor_time();
    let cache = holdings.cache.unwrap_or_default();
    let mut group = vec![
        stat("pid", std::process::id()),
        stat("uptime", shared.uptime_s()),
        stat("time", wall_clock_us() / 1_000_000),
        stat("version", MEMCACHED_VERSION),
        stat("tokaido_version", TOKAIDO_VERSION),
        stat("pointer_size", usize::BITS),
        stat("rusage_user", user),
        stat("rusage_system", system),
        stat("max_connections", limits.connections_max),
        stat("curr_connections", open),
        stat("total_connections", opened),
    ];
    group.extend(NAMES.iter().zip(counts).map(|(name, count)| stat(name, count)));
    group.extend([
        stat("limit_maxbytes", holdings.bytes_max(context)),
        stat("accepting_conns", 1),
        stat("threads", shared.worker_count()),
        stat("bytes", holdings.bytes()),
        stat("curr_items", holdings.database.records),
        stat("total_items", counts[Figure::CmdSet as usize]),
        stat("evictions", cache.evicted),
        stat("reclaimed", cache.expired),
    ]);
    Ok(group)
}

/// There is one class of items, number 1: memory is not divided by sizes.
fn items(session: &Session, context: &mut Context<'_>) -> Result<Group, Failure> {
    let holdings = Holdings::of(session, context)?;
    let cache = holdings.cache.unwrap_or_default();
    if holdings.database.records == 0 {
        return Ok(Vec::new());
    }
    Ok(vec![
        stat("items:1:number", holdings.database.records),
        stat("items:1:mem_requested", holdings.bytes()),
        stat("items:1:evicted", cache.evicted),
        stat("items:1:outofmemory", 0),
        stat("items:1:reclaimed", cache.expired),
    ])
}

fn slabs(session: &Session, context: &mut Context<'_>) -> Result<Group, Failure> {
    let holdings = Holdings::of(session, context)?;
    let counts = context.shared.memcached.clients.counts();
    let count = |figure: Figure| counts[figure as usize];
    let mut group = Vec::new();
    if holdings.database.records > 0 {
        group = vec![
            stat("1:used_chunks", holdings.database.records),
            stat("1:mem_requested", holdings.bytes()),
            stat("1:get_hits", count(Figure::GetHits)),
            stat("1:cmd_set", count(Figure::CmdSet)),
            stat("1:delete_hits", count(Figure::DeleteHits)),
            stat("1:incr_hits", count(Figure::IncrHits)),
            stat("1:decr_hits", count(Figure::DecrHits)),
            stat("1:cas_hits", count(Figure::CasHits)),
            stat("1:cas_badval", count(Figure::CasBadval)),
            stat("1:touch_hits", count(Figure::TouchHits)),
        ];
    }
    let malloced = holdings.cache.map_or(holdings.bytes(), |cache| cache.bytes_used);
    group.push(stat("active_slabs", u8::from(holdings.database.records > 0)));
    group.push(stat("total_malloced", malloced));
    Ok(group)
}

fn settings(session: &Session, context: &Context<'_>) -> Group {
    let shared = context.shared;
    let limits = shared.limits();
    let cache = composite::cache(&**shared.store(), session.database);
    let bytes_max = cache.map_or(limits.store_bytes_max as u64, |c| c.statistics().bytes_max);
    let tcp = shared.addresses().iter().find_map(SocketAddress::tcp);
    let unix = shared.addresses().iter().find_map(SocketAddress::unix);
    let has_password = if shared.users().need_authentication() { "yes" } else { "no" };
    vec![
        stat("maxbytes", bytes_max),
        stat("maxconns", limits.connections_max),
        stat("tcpport", tcp.map_or(0, |address| address.port())),
        stat("udpport", 0),
        stat("inter", tcp.map_or_else(|| "NULL".to_owned(), |address| address.ip().to_string())),
        stat("verbosity", shared.memcached.verbosity()),
        stat("evictions", if cache.is_some() { "on" } else { "off" }),
        stat("domain_socket", unix.map_or_else(|| "NULL".to_owned(), |p| p.display().to_string())),
        stat("num_threads", shared.worker_count()),
        stat("cas_enabled", "yes"),
        stat("auth_enabled_sasl", has_password),
        stat("auth_enabled_ascii", has_password),
        stat("item_size_max", limits.memcached_value_bytes_max),
        stat("flush_enabled", "yes"),
        stat("idle_timeout", limits.idle_ms / 1000),
        stat("database", shared.memcached.database_name()),
        stat("engine", session.capabilities.name),
    ]
}

fn connections(context: &Context<'_>) -> Group {
    let now_ms = wall_clock_us() / 1000;
    let clients = context.shared.memcached.clients.open();
    let figures = clients.iter().flat_map(|(id, client)| {
        let idle_ms = now_ms.saturating_sub(client.active_at_ms.load(Relaxed));
        [
            (format!("{id}:addr"), client.peer.clone()),
            (format!("{id}:listen_addr"), client.local.clone()),
            (format!("{id}:secs_since_last_cmd"), (idle_ms / 1000).to_string()),
        ]
    });
    figures.collect()
}
