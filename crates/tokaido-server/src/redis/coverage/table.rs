//! The commands that differ or are absent, and why. All others of Redis 7.2 are the same here, except for limits.

/// The names of the commands and subcommands of Redis 7.2, one per line, as COMMAND LIST returns them.
pub(super) const REDIS: &str = include_str!("redis-7.2.txt");

/// Commands that exist here but differ, and how.
pub(super) const DIFFERENT: &[(&[&str], &str)] = &[
    (&["command|getkeysandflags"], "each key is of `RO access` or of `RW update`"),
    (&["acl|cat"], "there is one category more, `procedure`"),
    (&["acl|load"], "it closes the connections of those users alone that it changes"),
    (
        &["bgrewriteaof", "bgsave", "lastsave", "save"],
        "there is nothing to do: what was answered is stored",
    ),
    (&["client|info", "client|list"], "fields about buffers and memory are 0"),
    (&["client|no-evict", "client|no-touch"], "they change nothing"),
    (
        &["client|pause"],
        "it holds for all protocols; EXEC waits whatever was queued, PUBLISH and PFCOUNT do not",
    ),
    (
        &["client|tracking"],
        "keys of caches and of constant databases are said to have changed as soon as they are read",
    ),
    (
        &["config|get", "config|set"],
        "they know few settings; CONFIG SET holds until the server stops",
    ),
    (
        &["debug"],
        "it knows few subcommands, those that test suites need; DEBUG SLEEP holds up its own connection alone",
    ),
    (
        &["config|rewrite"],
        "it writes the settings that CONFIG SET can change, into the section [redis] of the configuration file",
    ),
    (&["copy", "move", "select", "swapdb"], "they take the names of databases, too"),
    (
        &["eval", "eval_ro", "evalsha", "evalsha_ro", "exec"],
        "they are one transaction: all of it remains, or nothing",
    ),
    (
        &["failover", "replicaof", "slaveof"],
        "they are refused, but for REPLICAOF NO ONE: there are no replicas",
    ),
    (&["flushall"], "it deletes databases with names, too"),
    (&["hello"], "it is refused between MULTI and EXEC"),
    (&["hincrbyfloat", "incrbyfloat"], "they count with 64 bits, not with 80"),
    (&["info"], "it tells of this server; `expires` may be an estimate"),
    (&["keys", "scan"], "they give keys in their order"),
    (
        &["latency|doctor", "latency|graph", "latency|histogram"],
        "they say and draw it in their own way",
    ),
    (&["lcs"], "it takes shorter values"),
    (&["lolwut"], "it draws something else"),
    (
        &["memory|doctor", "memory|malloc-stats", "memory|purge", "memory|stats", "memory|usage"],
        "they tell of this server",
    ),
    (&["module|list"], "it gives none"),
    (&["monitor"], "it shows a script behind the commands that it ran"),
    (&["object|freq", "object|idletime"], "they are refused: reading notes nothing"),
    (&["pfcount"], "it notes no result in the value"),
    (&["randomkey"], "in a large database some keys are drawn somewhat more often"),
    (&["shutdown"], "it takes no time to save; its options change nothing"),
    (&["slowlog|get"], "EXEC and EVAL are one entry"),
    (&["sort", "sort_ro"], "they hold what they sort, up to `reply_bytes_max`"),
    (&["touch"], "it changes nothing, and counts"),
];

/// Commands that do not exist here, and why.
pub(super) const ABSENT: &[(&[&str], &str)] = &[
    (&["pfdebug", "pfselftest", "script|debug"], "they look into Redis' own insides"),
    (&["migrate"], "DUMP and RESTORE move a record, `tokaido dump` and `tokaido load` a database"),
    (&["module|load", "module|loadex", "module|unload"], "procedures add commands"),
    (&["psync", "replconf", "sync"], "there are no replicas; `tokaido backup` copies a store"),
    (&["restore-asking"], "it is of clusters alone"),
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
