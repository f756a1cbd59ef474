//! CONFIG: the settings that Redis has a name for, with their values here.

use std::sync::atomic::Ordering::Relaxed;

use crate::{
    Shared, SocketAddress,
    access::LOG_ENTRIES_MAX,
    config,
    redis::{
        call::Call,
        command::{Command, rows},
        events::{Classes, LETTERS},
        failure::Failure,
        glob, info, introspection,
        number::parse_integer,
    },
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"config" -2 Container(None), NO_KEY [] Server "2.0.0"
    ""
    "Commands about settings.";
"config|get" -3 Server(get), NO_KEY [ADMIN DANGEROUS] Server "2.0.0"
    "parameter [parameter ...]"
    "Returns the settings whose names match the patterns.";
"config|help" 2 Server(introspection::help), NO_KEY [] Server "5.0.0"
    ""
    "Lists the subcommands.";
"config|resetstat" 2 Server(reset_statistics), NO_KEY [ADMIN DANGEROUS] Server "2.0.0"
    ""
    "Resets the counters of commands and connections in INFO to 0.";
"config|rewrite" 2 Server(rewrite), NO_KEY [ADMIN DANGEROUS] Server "2.8.0"
    ""
    "Writes the settings that CONFIG SET can change into the section [redis] of the configuration file.";
"config|set" -4 Server(set), NO_KEY [ADMIN DANGEROUS] Server "2.0.0"
    "parameter value [parameter value ...]"
    "Changes settings until the server stops, or for good with CONFIG REWRITE.";
};

/// Why a value is invalid for a setting.
struct Wrong(String);

type Set = fn(&Shared, &str) -> Result<(), Wrong>;

/// How to change a setting, if that is possible, and its name in the section `[redis]` of the
/// configuration.
type Change = Option<(Set, &'static str)>;

/// A setting: its name, its value, and how to change it.
type Setting = (&'static str, fn(&Shared) -> String, Change);

/// The Redis settings that make sense here. Clients query them to find out what they may do.
const SETTINGS: &[Setting] = &[
    (
        "aclfile",
        |shared| shared.users().file().map(|path| path.display().to_string()).unwrap_or_default(),
        None,
    ),
    ("acllog-max-len", |_| LOG_ENTRIES_MAX.to_string(), None),
    ("appendonly", |_| "yes".to_owned(), None),
    (
        "client-output-buffer-limit",
        |shared| {
            format!("normal 0 0 0 slave 0 0 0 pubsub {} 0 0", shared.limits().pushed_bytes_max)
        },
        None,
    ),
    ("databases", |shared| shared.limits().numbered_databases_max.to_string(), None),
    ("enable-debug-command", |shared| shared.debug_command().word().to_owned(), None),
    (
        "latency-monitor-threshold",
        |shared| shared.instruments.latency_threshold_ms.load(Relaxed).to_string(),
        Some((
            |shared, value| {
                let threshold_ms = whole(value, 0, i64::MAX)?;
                shared.instruments.latency_threshold_ms.store(threshold_ms as u64, Relaxed);
                Ok(())
            },
            "latency_threshold_ms",
        )),
    ),
    ("maxclients", |shared| shared.limits().connections_max.to_string(), None),
    ("maxmemory", |_| "0".to_owned(), None),
    ("maxmemory-policy", |_| "noeviction".to_owned(), None),
    (
        "notify-keyspace-events",
        |shared| shared.notifier.wanted().to_string(),
        Some((
            |shared, value| {
                let wrong = || Wrong(format!("Invalid event class character. Use '{LETTERS}'."));
                shared.notifier.want(Classes::parse(value).ok_or_else(wrong)?);
                Ok(())
            },
            "notify_keyspace_events",
        )),
    ),
    ("port", |shared| info::tcp_port(shared).to_string(), None),
    ("proto-max-bulk-len", |shared| shared.limits().value_bytes_max.to_string(), None),
    ("save", |_| String::new(), None),
    (
        "slowlog-log-slower-than",
        |shared| shared.instruments.slower_than_us.load(Relaxed).to_string(),
        Some((
            |shared, value| {
                let slower_than_us = whole(value, -1, i64::MAX)?;
                shared.instruments.slower_than_us.store(slower_than_us, Relaxed);
                Ok(())
            },
            "slowlog_slower_than_us",
        )),
    ),
    (
        "slowlog-max-len",
        |shared| shared.instruments.slow_entries_max.load(Relaxed).to_string(),
        Some((
            |shared, value| {
                let entries_max = whole(value, 0, SLOW_ENTRIES_MAX)? as usize;
                shared.instruments.slow_entries_max.store(entries_max, Relaxed);
                shared.instruments.slow_log.limit(entries_max);
                Ok(())
            },
            "slowlog_entries_max",
        )),
    ),
    ("timeout", |shared| shared.limits().idle_ms.div_ceil(1000).to_string(), None),
    (
        "tracking-table-max-keys",
        |shared| shared.tracker.keys_max().to_string(),
        Some((
            |shared, value| {
                shared.tracker.limit(whole(value, 1, TRACKED_KEYS_MAX)? as usize);
                Ok(())
            },
            "tracked_keys_max",
        )),
    ),
    (
        "unixsocket",
        |shared| {
            let path = shared.addresses().iter().find_map(SocketAddress::unix);
            path.map(|path| path.display().to_string()).unwrap_or_default()
        },
        None,
    ),
];

/// Maximum value of the setting for the number of entries in the slow log.
const SLOW_ENTRIES_MAX: i64 = crate::config::SLOW_ENTRIES_MAX as i64;

/// Maximum value of the setting for the number of keys in the tracking table.
const TRACKED_KEYS_MAX: i64 = crate::config::TRACKED_KEYS_MAX as i64;

fn whole(value: &str, min: i64, max: i64) -> Result<i64, Wrong> {
    let number = parse_integer(value.as_bytes())
        .ok_or_else(|| Wrong("argument couldn't be parsed into an integer".to_owned()))?;
    if !(min..=max).contains(&number) {
        return Err(Wrong(format!("argument must be between {min} and {max} inclusive")));
    }
    Ok(number)
}

fn get(call: &mut Call<'_>) -> Result<(), Failure> {
    let patterns: Vec<Vec<u8>> =
        call.request.arguments_from(2).map(<[u8]>::to_ascii_lowercase).collect();
    let is_wanted = |name: &str| patterns.iter().any(|p| glob::matches(p, name.as_bytes()));
    let wanted: Vec<_> = SETTINGS.iter().filter(|(name, ..)| is_wanted(name)).collect();
    call.reply.map(wanted.len());
    for (name, value, _) in wanted {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value(call.shared).as_bytes());
    }
    Ok(())
}

/// Changes all settings or none: if one fails, those already changed get their old values back.
fn set(call: &mut Call<'_>) -> Result<(), Failure> {
    if !call.len().is_multiple_of(2) {
        return Err(Failure::Syntax);
    }
    let mut wanted: Vec<(&str, Set, String, String)> = Vec::new();
    for index in (2..call.len()).step_by(2) {
        let given = String::from_utf8_lossy(call.arg(index));
        let found = SETTINGS.iter().find(|(name, ..)| call.is_word(index, name));
        let Some((name, value, set)) = found else {
            return Err(Failure::other(format!(
                "Unknown option or number of arguments for CONFIG SET - '{given}'"
            )));
        };
        let refused = |why: &str| {
            Failure::other(format!(
                "CONFIG SET failed (possibly related to argument '{given}') - {why}"
            ))
        };
        let (set, _) = set.ok_or_else(|| refused("can't set immutable config"))?;
        if wanted.iter().any(|(other, ..)| other == name) {
            return Err(refused("duplicate parameter"));
        }
        let new = String::from_utf8_lossy(call.arg(index + 1)).into_owned();
        wanted.push((name, set, new, value(call.shared)));
    }
    for (place, (name, set, new, _)) in wanted.iter().enumerate() {
        let Err(Wrong(why)) = set(call.shared, new) else { continue };
        for (_, set, _, old) in &wanted[..place] {
            // It was the value until now, so it can be set again.
            let _ = set(call.shared, old);
        }
        return Err(Failure::other(format!(
            "CONFIG SET failed (possibly related to argument '{name}') - {why}"
        )));
    }
    call.reply.ok();
    Ok(())
}

fn reset_statistics(call: &mut Call<'_>) -> Result<(), Failure> {
    call.shared.instruments.statistics.reset();
    call.shared.clients.reset();
    call.reply.ok();
    Ok(())
}

/// Writes the settings that can be changed into the configuration file.
fn rewrite(call: &mut Call<'_>) -> Result<(), Failure> {
    let Some(file) = call.shared.config_file() else {
        return Err(Failure::other("The server is running without a config file"));
    };
    let changeable = SETTINGS.iter().filter_map(|(_, value, change)| {
        let value = value(call.shared);
        // No value of a text setting can be a number.
        let item = value.parse::<i64>().map_or_else(|_| value.into(), Into::into);
        change.map(|(_, option)| (option, item))
    });
    config::rewrite(file, &changeable.collect::<Vec<_>>()).map_err(|error| {
        tracing::error!(%error, "CONFIG REWRITE has failed");
        Failure::other(format!("Rewriting config file: {error}"))
    })?;
    call.reply.ok();
    Ok(())
}
