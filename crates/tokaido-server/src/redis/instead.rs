//! What to use in the place of commands that Redis has and this server does not, told to whoever calls them.

/// The commands, and what serves instead.
const INSTEAD: &[(&[&str], &str)] = &[
    (&["migrate"], "DUMP and RESTORE move a record, `tokaido dump` and `tokaido load` a database"),
    (&["psync", "replconf", "sync"], "there are no replicas; `tokaido backup` copies a store"),
    (&["pfdebug", "pfselftest"], "GET gives the bytes of a HyperLogLog, which are Redis' own"),
];

/// What serves in the place of a command.
pub(super) fn of(name: &[u8]) -> Option<&'static str> {
    let is_named = |names: &[&str]| names.iter().any(|n| name.eq_ignore_ascii_case(n.as_bytes()));
    INSTEAD.iter().find_map(|&(names, instead)| is_named(names).then_some(instead))
}
