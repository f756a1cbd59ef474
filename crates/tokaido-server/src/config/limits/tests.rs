//! The table, what follows from it, and the manual.

use std::{collections::BTreeMap, path::Path};

use super::*;
use crate::Config;

const MANUAL: &str = include_str!("../../../../../docs/configuration.md");

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(&format!("[limits]\n{text}"), Path::new("tokaido.toml"))
}

#[test]
fn each_option_is_read_and_takes_its_whole_range() {
    for limit in LIMITS {
        let default = limit.get(&Limits::default());
        assert!(limit.range.contains(&default), "{limit:?} is {default} by default");
        for value in [*limit.range.start(), default, *limit.range.end()] {
            let read = parse(&format!("{} = {value}", limit.name)).expect(limit.name).limits;
            assert_eq!(limit.get(&read), value, "{limit:?}");
            let others = LIMITS.iter().filter(|other| other.name != limit.name);
            for other in others {
                assert_eq!(other.get(&read), other.get(&Limits::default()), "{limit:?}");
            }
            assert!(read.validate().is_ok(), "{limit:?}");
            let mut set = Limits::default();
            limit.set(&mut set, value).expect(limit.name);
            assert_eq!(set, read, "{limit:?}");
        }
    }
}

#[test]
fn a_value_out_of_range_is_refused_with_key_value_and_range() {
    for limit in LIMITS {
        let (min, max) = (*limit.range.start(), *limit.range.end());
        for value in [min.checked_sub(1), Some(max + 1)].into_iter().flatten() {
            let expected =
                format!("option {}: {value} is out of range; it takes {min} to {max}", limit.path);
            let told = limit.set(&mut Limits::default(), value).expect_err(limit.name);
            assert_eq!(told.to_string(), expected);
            match parse(&format!("{} = {value}", limit.name)) {
                Ok(config) => {
                    let told = config.validate().expect_err(limit.name).to_string();
                    assert_eq!(told, expected);
                }
                // It does not even fit into 32 bits; the message shows the line.
                Err(error) => assert!(error.to_string().contains(limit.name), "{error}"),
            }
        }
    }
}

#[test]
fn a_value_that_is_no_number_is_refused_with_its_line() {
    let error = parse("script_ms = \"long\"").expect_err("no number").to_string();
    assert!(error.contains("script_ms = \"long\"") && error.contains("line 2"), "{error}");
    assert!(parse("idle_ms = -1").is_err());
}

#[test]
fn limits_reach_the_store_the_scripts_and_the_codec() {
    let text = "memtable_bytes = 1\nstore_bytes_max = 2\nsnapshots_max = 3\n\
        transaction_writes_max = 4\ntransaction_bytes_max = 5\nkey_bytes_max = 6\n\
        value_bytes_max = 7\nlog_left_bytes_max = 8\nlog_growth_bytes = 9\n\
        checkpoint_retry_ms = 10\ncdb_look_ms = 11\ncache_sweep_max = 12";
    let config = parse(text).expect("it parses");
    let store = config.store_options();
    assert_eq!((store.memtable_bytes, store.size_max, store.snapshots_max), (1, 2, 3));
    assert_eq!((store.transaction_writes_max, store.transaction_bytes_max), (4, 5));
    assert_eq!((store.key_len_max, store.value_len_max), (6, 7));
    assert_eq!((store.log_left_bytes_max, store.log_growth_bytes), (8, 9));
    assert_eq!(store.checkpoint_retry, Duration::from_millis(10));
    let mounts = config.mount_options();
    assert_eq!(mounts.look_interval, Duration::from_millis(11));
    assert_eq!(mounts.sweep_records_max, 12);

    let text = "script_ms = 1\nscript_memory_bytes = 2\nscript_pattern_steps_max = 3\n\
        script_many_keys_max = 4\nscript_many_bytes_max = 5\nscript_log_bytes_max = 6\n\
        http_response_bytes_max = 7\nhttp_headers_max = 8\nhttp_query_pairs_max = 9\n\
        procedure_files_max = 10\nprocedure_file_bytes_max = 11\nrequest_bytes_max = 12\n\
        request_arguments_max = 13";
    let config = parse(text).expect("it parses");
    let script = config.script_limits();
    assert_eq!(script.time, Duration::from_millis(1));
    assert_eq!((script.memory_bytes, script.pattern_steps_max), (2, 3));
    assert_eq!((script.many_keys_max, script.many_bytes_max), (4, 5));
    assert_eq!((script.log_len_max, script.response_len_max), (6, 7));
    assert_eq!((script.response_headers_max, script.query_pairs_max), (8, 9));
    let sources = config.source_limits();
    assert_eq!((sources.files_max, sources.len_max), (10, 11));
    let request = config.limits.request();
    assert_eq!((request.request_len_max, request.arguments_max), (12, 13));
}

#[test]
fn a_cache_is_held_to_the_lengths_of_keys_and_values() {
    let text = "key_bytes_max = 6\nvalue_bytes_max = 7\n\
        [databases.a]\nengine = \"cache\"\nbytes = \"1 MiB\"";
    let mounts = parse(text).expect("it parses").mounts();
    let composite::MountEngine::Cache(cache) = &mounts[0].engine else { panic!("a cache") };
    assert_eq!((cache.key_len_max, cache.value_len_max), (6, 7));
}

/// A value as the manual writes it.
fn readable(limit: &Limit, value: u64) -> String {
    let has = |unit: &str| limit.name.split('_').any(|part| part == unit);
    let units: &[(&str, u64)] = if has("bytes") {
        &[("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)]
    } else if has("ms") {
        &[("min", 60_000), ("s", 1_000), ("ms", 1)]
    } else if has("us") {
        &[("ms", 1_000), ("µs", 1)]
    } else {
        &[]
    };
    let unit = units.iter().find(|(_, unit)| value > 0 && value.is_multiple_of(*unit));
    match unit {
        Some((name, unit)) => format!("{} {name}", value / unit),
        None => grouped(value),
    }
}

/// Digits with a comma between thousands.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let parts: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8(parts.join(&b","[..])).expect("digits")
}

/// The value that the manual writes in this way.
fn value_of(limit: &Limit, text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let number: u64 = number.replace(',', "").parse().ok()?;
    let factor = match unit {
        "" | "B" | "ms" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "s" => 1_000,
        "min" => 60_000,
        _ => return None,
    };
    let factor = if unit == "ms" && limit.name.ends_with("_us") { 1_000 } else { factor };
    Some(number * factor)
}

/// The rows of the manual's tables of limits, by the option: default, 1 GB, 256 GB.
fn rows() -> BTreeMap<&'static str, [&'static str; 3]> {
    let mut rows = BTreeMap::new();
    let tables = MANUAL.lines().skip_while(|line| *line != "## Limits");
    for line in tables.skip(1).take_while(|line| !line.starts_with("## ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [what, default, small, large] = cells[..] else { continue };
        let Some((option, _)) = what.strip_prefix('`').and_then(|rest| rest.split_once('`')) else {
            continue;
        };
        assert!(rows.insert(option, [default, small, large]).is_none(), "{option} is there twice");
    }
    rows
}

#[test]
fn the_manual_has_every_option_with_its_default_and_no_others() {
    let rows = rows();
    let told: Vec<&str> = rows.keys().copied().collect();
    let mut known: Vec<&str> = LIMITS.iter().map(|limit| limit.name).collect();
    known.sort_unstable();
    assert_eq!(told, known);
    for limit in LIMITS {
        let [default, small, large] = rows[limit.name];
        assert_eq!(default, readable(limit, limit.get(&Limits::default())), "{}", limit.name);
        for advice in [small, large] {
            let mut values = advice.split(" to ").map(|text| value_of(limit, text));
            let is_possible = values.all(|value| value.is_some_and(|v| limit.range.contains(&v)));
            assert!(is_possible, "{}: {advice}", limit.name);
        }
    }
}
