//! The commands that differ or are absent, and why. All others of Redis 7.2 are the same here, except for limits.

/// The names of the commands and subcommands of Redis 7.2, one per line, as COMMAND LIST returns them.
pub(super) const REDIS: &str = include_str!("redis-7.2.txt");

/// Commands that exist here but differ, and how.
pub(super) const DIFFERENT: &[(&[&str], &str)] = &[
    (&["command|getkeysandflags"], "the flags of each key are either `RO access` or `RW update`"),
    (&["acl|cat"], "there is one more category, `procedure`"),
    (&["acl|load"], "it closes only the connections of the users that it changes"),
    (
        &["bgrewriteaof", "bgsave", "lastsave", "save"],
        "they do nothing: every acknowledged write is already stored",
    ),
    (&["client|info", "client|list"], "fields about buffers and memory are 0"),
    (&["client|no-evict", "client|no-touch"], "they only set a flag that CLIENT LIST shows"),
    (
        &["client|pause"],
        "it applies to all protocols; with WRITE, every EXEC waits, but PUBLISH and PFCOUNT do not",
    ),
    (
        &["client|tracking"],
        "keys of caches and constant databases are reported as changed as soon as they are read",
    ),
    (
        &["config|get", "config|set"],
        "they support few settings; CONFIG SET lasts until the server stops",
    ),
    (
        &["debug"],
        "it has only a few subcommands, for test suites; DEBUG SLEEP holds up only its own connection",
    ),
    (
        &["config|rewrite"],
        "it writes only the settings that CONFIG SET can change, to the section [redis] of the configuration file",
    ),
    (&["copy", "move", "select", "swapdb"], "they also accept the names of databases"),
    (
        &["eval", "eval_ro", "evalsha", "evalsha_ro", "exec"],
        "each is one transaction: all of its changes are kept, or none",
    ),
    (
        &["failover", "replicaof", "slaveof"],
        "they return an error, except REPLICAOF NO ONE and SLAVEOF NO ONE: there are no replicas",
    ),
    (&["flushall"], "it also deletes named databases"),
    (&["hello"], "it returns an error between MULTI and EXEC"),
    (&["hincrbyfloat", "incrbyfloat"], "they calculate with 64-bit floats, not 80-bit ones"),
    (&["info"], "it describes this server; `expires` may be an estimate"),
    (&["keys", "scan"], "they return keys in byte order"),
    (
        &["latency|doctor", "latency|graph", "latency|histogram"],
        "their texts, drawings and histogram steps differ",
    ),
    (&["lcs"], "it accepts only shorter values"),
    (&["lolwut"], "it draws something else"),
    (
        &["memory|doctor", "memory|malloc-stats", "memory|purge", "memory|stats", "memory|usage"],
        "they describe this server",
    ),
    (&["module|list"], "it returns an empty list"),
    (&["monitor"], "it shows a script after the commands that it ran"),
    (&["object|freq", "object|idletime"], "they fail if the key exists: reads are not recorded"),
    (&["pfcount"], "it does not store its result in the value"),
    (&["randomkey"], "in a large database, some keys are returned somewhat more often than others"),
    (&["shutdown"], "it has nothing to save; NOSAVE, SAVE, NOW and FORCE have no effect"),
    (&["slowlog|get"], "EXEC and EVAL are one entry each"),
    (&["sort", "sort_ro"], "they keep what they sort in memory, up to `reply_bytes_max`"),
    (&["touch"], "it only counts the keys that exist"),
];

/// Commands that do not exist here, and why.
pub(super) const ABSENT: &[(&[&str], &str)] = &[
    (&["pfdebug", "pfselftest", "script|debug"], "they inspect Redis' internals"),
    (&["migrate"], "DUMP and RESTORE move a record, `tokaido dump` and `tokaido load` a database"),
    (&["module|load", "module|loadex", "module|unload"], "procedures add commands"),
    (&["psync", "replconf", "sync"], "there are no replicas; `tokaido backup` copies a store"),
    (&["restore-asking"], "it is only for clusters"),
];

/// Whether a list contains this name.
pub(super) fn has(list: &[(&[&str], &str)], name: &str) -> bool {
    list.iter().any(|(names, _)| names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::COMMANDS;

    fn is_here(name: &str) -> bool {
        COMMANDS.iter().any(|command| command.name == name)
    }

    #[test]
    fn every_command_of_redis_is_here_or_it_is_said_why_not() {
        let missing: Vec<_> =
            REDIS.lines().filter(|name| !is_here(name) && !has(ABSENT, name)).collect();
        assert!(missing.is_empty(), "neither in the table nor in ABSENT: {missing:?}");
    }

    #[test]
    fn nothing_is_said_of_commands_that_it_is_not_true_of() {
        for (names, why) in DIFFERENT.iter().chain(ABSENT) {
            assert!(!names.is_empty() && !why.ends_with('.'), "{why}");
        }
        let names = |list: &'static [(&[&str], &str)]| list.iter().flat_map(|(names, _)| *names);
        for name in names(DIFFERENT) {
            assert!(is_here(name) && REDIS.lines().any(|of_redis| of_redis == *name), "{name}");
        }
        for name in names(ABSENT) {
            assert!(!is_here(name), "{name} is here: take it out of ABSENT");
            assert!(REDIS.lines().any(|of_redis| of_redis == *name), "{name}");
        }
    }
}
