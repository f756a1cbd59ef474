//! The categories of commands, by which a user's rules name several commands at once.

use super::command::{Command, Flags, Handler};

/// All categories: those of Redis in its order, and the one for procedures.
pub(super) const ALL: [&str; 22] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
    "procedure",
];

impl Command {
    /// The access categories that COMMAND INFO reports.
    pub(crate) fn categories(&self) -> impl Iterator<Item = &'static str> {
        let kind = match self.kind() {
            Some(kind) => kind,
            None => [self.access_category(), self.group.category(), None, None],
        };
        let speed = if self.flags.has(Flags::FAST) { "@fast" } else { "@slow" };
        let blocking = self.blocks().then_some("@blocking");
        let admin = self.flags.has(Flags::ADMIN).then_some("@admin");
        let dangerous = self.flags.has(Flags::DANGEROUS).then_some("@dangerous");
        let properties = [Some(speed), blocking, admin, dangerous];
        kind.into_iter().chain(properties).flatten()
    }

    fn access_category(&self) -> Option<&'static str> {
        match self.handler {
            Handler::Read(_) | Handler::StreamRead(_) | Handler::Watch => Some("@read"),
            Handler::Write(_) | Handler::Blocking(_) | Handler::GroupRead(_) => Some("@write"),
            _ => None,
        }
    }

    /// A command's categories in Redis, where they do not follow from its group and its handler.
    fn kind(&self) -> Option<[Option<&'static str>; 4]> {
        let access = self.access_category();
        let only = |category| [Some(category), None, None, None];
        Some(match self.name {
            // On its own: what a procedure does is up to its author, not to the rules of its caller.
            "procedure" => only("@procedure"),
            "command" | "wait" | "waitaof" => only("@connection"),
            name if name.starts_with("command|") => only("@connection"),
            "dbsize" | "flushall" | "flushdb" | "swapdb" => [access, Some("@keyspace"), None, None],
            "function|dump" | "function|list" | "function|stats" => only("@scripting"),
            "function|load" | "function|restore" => {
                [Some("@write"), Some("@scripting"), None, None]
            }
            "info" | "memory|stats" | "pubsub|help" => [None; 4],
            "lolwut" => only("@read"),
            "sort" | "sort_ro" => [access, Some("@list"), Some("@set"), Some("@sortedset")],
            "watch" => only("@transaction"),
            _ if self.is_container() => [None; 4],
            _ => return None,
        })
    }
}
