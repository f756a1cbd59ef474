//! The table of all commands, merged from the rows of each family. Dispatch, COMMAND, and the
//! documentation page are all based on it.

use tokaido_wire::resp::Request;

use super::{
    acl, bitfields, bitmaps, blocking, client, cluster, command::Command, connection, counters,
    debug, dump, eval, expiry, failure::Failure, functions, geo, hashes, hyperloglog,
    introspection, keys, keyspace, lcs, lists, memory, operator, pausing, procedures, pubsub, scan,
    server, set, sets, sort, sorted_sets, standalone, streams, strings, tracking, transactions,
};

/// The rows of each family, sorted by name.
const FAMILIES: &[&[Command]] = &[
    acl::COMMANDS,
    bitfields::COMMANDS,
    bitmaps::COMMANDS,
    blocking::COMMANDS,
    client::COMMANDS,
    cluster::COMMANDS,
    connection::COMMANDS,
    counters::COMMANDS,
    debug::COMMANDS,
    dump::COMMANDS,
    eval::COMMANDS,
    expiry::COMMANDS,
    functions::COMMANDS,
    geo::POINTS,
    geo::SEARCHES,
    hashes::COMMANDS,
    hyperloglog::COMMANDS,
    introspection::COMMANDS,
    keys::COMMANDS,
    keyspace::COMMANDS,
    lcs::COMMANDS,
    lists::COMMANDS,
    memory::COMMANDS,
    operator::CONFIG,
    operator::LATENCY,
    operator::MONITOR,
    operator::SLOWLOG,
    pausing::COMMANDS,
    procedures::COMMANDS,
    pubsub::COMMANDS,
    scan::COMMANDS,
    server::COMMANDS,
    set::COMMANDS,
    sets::COMMANDS,
    sort::COMMANDS,
    sorted_sets::COMBINING,
    sorted_sets::MEMBERS,
    sorted_sets::POPS,
    sorted_sets::RANGES,
    standalone::COMMANDS,
    streams::CLAIMS,
    streams::ENTRIES,
    streams::GROUPS,
    streams::INFO,
    streams::PENDING,
    streams::READING,
    strings::COMMANDS,
    tracking::COMMANDS,
    transactions::COMMANDS,
];

/// Maximum length of a command's name, in bytes.
const NAME_LEN_MAX: usize = 32;

/// Maximum length of an unknown name that is repeated in an error, in bytes.
const SHOWN_LEN_MAX: usize = 128;

/// All commands, sorted by name. A container's subcommands follow it.
pub static COMMANDS: &[Command] = &merge();

/// The number of commands.
const LEN: usize = {
    let (mut len, mut family) = (0, 0);
    while family < FAMILIES.len() {
        len += FAMILIES[family].len();
        family += 1;
    }
    len
};

/// Merges the families: repeatedly takes the smallest of their next names until all are taken.
const fn merge() -> [Command; LEN] {
    let mut merged = [FAMILIES[0][0]; LEN];
    let mut taken = [0; FAMILIES.len()];
    let mut len = 0;
    while len < LEN {
        let (mut smallest, mut family) = (None, 0);
        while family < FAMILIES.len() {
            if taken[family] < FAMILIES[family].len() {
                let command = FAMILIES[family][taken[family]];
                smallest = match smallest {
                    Some((_, other)) if !is_before(command, other) => smallest,
                    _ => Some((family, command)),
                };
            }
            family += 1;
        }
        let Some((family, command)) = smallest else { break };
        let is_sorted = len == 0 || is_before(merged[len - 1], command);
        assert!(is_sorted, "a family is not sorted by name, or a name is there twice");
        merged[len] = command;
        taken[family] += 1;
        len += 1;
    }
    merged
}

/// Whether the name of `a` comes before that of `b`.
const fn is_before(a: Command, b: Command) -> bool {
    let (a, b) = (a.name.as_bytes(), b.name.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() {
        if a[i] != b[i] {
            return a[i] < b[i];
        }
        i += 1;
    }
    a.len() < b.len()
}

/// So many times the number of commands that most are found in their first slot.
const SLOTS: usize = (8 * LEN).next_power_of_two();
const EMPTY: u16 = u16::MAX;

/// An open-addressing hash table over [`COMMANDS`], built at compile time.
static INDEX: [u16; SLOTS] = build_index();

const fn build_index() -> [u16; SLOTS] {
    assert!(LEN < EMPTY as usize);
    let mut index = [EMPTY; SLOTS];
    let mut i = 0;
    while i < LEN {
        let name = COMMANDS[i].name.as_bytes();
        assert!(name.len() <= NAME_LEN_MAX);
        let mut hash = HASH_START;
        let mut j = 0;
        while j < name.len() {
            hash = hash_step(hash, name[j]);
            j += 1;
        }
        let mut slot = slot_of(hash);
        while index[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        index[slot] = i as u16;
        i += 1;
    }
    index
}

const HASH_START: u32 = 0;

/// Names may differ in as little as one letter. Multiplying by a large odd number spreads that, and
/// the highest bits are mixed best.
const fn hash_step(hash: u32, byte: u8) -> u32 {
    (hash ^ byte as u32).wrapping_mul(0x9e37_79b1)
}

const fn slot_of(hash: u32) -> usize {
    (hash >> (32 - SLOTS.trailing_zeros())) as usize
}

/// The command with this name, in any case. For a subcommand, `rest` is its own name, after the
/// container's; this needs no allocation either.
pub(crate) fn find(name: &[u8], rest: Option<&[u8]>) -> Option<&'static Command> {
    let mut lower = [0; NAME_LEN_MAX];
    let mut len = 0;
    let mut hash = HASH_START;
    let mut push = |byte: u8| {
        let byte = byte.to_ascii_lowercase();
        *lower.get_mut(len)? = byte;
        len += 1;
        hash = hash_step(hash, byte);
        Some(())
    };
    for &byte in name {
        push(byte)?;
    }
    if let Some(rest) = rest {
        push(b'|')?;
        for &byte in rest {
            push(byte)?;
        }
    }
    let wanted = &lower[..len];
    let mut slot = slot_of(hash);
    loop {
        let command = COMMANDS.get(usize::from(INDEX[slot]))?;
        if command.name.as_bytes() == wanted {
            return Some(command);
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// The command or subcommand that a request names, or `None` if the name is unknown.
///
/// # Errors
/// If a container does not have the subcommand.
pub(crate) fn resolve(request: Request<'_>) -> Result<Option<&'static Command>, Failure> {
    let name = request.name();
    // `client|id` is the name in COMMAND; a subcommand cannot be called by it.
    let command = find(name, None).filter(|command| command.container().is_none());
    match (command, request.get(1)) {
        (Some(container), Some(sub)) if container.is_container() => {
            let found = find(name, Some(sub));
            found.map(Some).ok_or_else(|| {
                let sub = String::from_utf8_lossy(&sub[..sub.len().min(SHOWN_LEN_MAX)]);
                let container = container.name.to_uppercase();
                Failure::other(format!("unknown subcommand '{sub}'. Try {container} HELP."))
            })
        }
        _ => Ok(command),
    }
}

/// The command with this name, as users' rules write it: `get`, or `config|get`.
pub(crate) fn find_by_name(name: &str) -> Option<&'static Command> {
    find(name.as_bytes(), None)
}

/// The index of a command in [`COMMANDS`].
pub(crate) fn number_of(command: &'static Command) -> usize {
    let offset = std::ptr::from_ref(command).addr() - COMMANDS.as_ptr().addr();
    offset / size_of::<Command>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_in_any_case() {
        for command in COMMANDS {
            let upper = command.name.to_uppercase();
            for name in [command.name, &upper] {
                let found = match name.split_once('|') {
                    None => find(name.as_bytes(), None),
                    Some((name, rest)) => find(name.as_bytes(), Some(rest.as_bytes())),
                };
                assert_eq!(found.map(|c| c.name), Some(command.name));
            }
        }
        for name in ["", "ge", "gett", "client|", "\0", &"x".repeat(1000)] {
            assert!(find(name.as_bytes(), None).is_none(), "{name}");
        }
        assert!(find(b"client", Some(b"")).is_none());
    }

    #[test]
    fn rows_are_consistent() {
        for command in COMMANDS {
            let name = command.name;
            assert_eq!(name, name.to_lowercase());
            assert!(command.summary.ends_with('.'), "{name}");
            assert!(command.arity != 0, "{name}");
            if let Some(container) = command.container() {
                assert!(find(container.as_bytes(), None).is_some(), "{name}");
            }
            if command.is_container() {
                assert!(find(name.as_bytes(), Some(b"help")).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn few_names_collide() {
        let displaced = COMMANDS
            .iter()
            .filter(|c| {
                let hash = c.name.bytes().fold(HASH_START, hash_step);
                COMMANDS.get(usize::from(INDEX[slot_of(hash)])).map(|c| c.name) != Some(c.name)
            })
            .map(|c| c.name)
            .collect::<Vec<_>>();
        assert!(displaced.len() <= COMMANDS.len() / 10, "{displaced:?}");
        assert!(!displaced.contains(&"get") && !displaced.contains(&"set"), "{displaced:?}");
    }
}
