//! Which keys and channels a request names, and how its command uses them.

use tokaido_wire::resp::Request;

use super::{
    command::{Command, Handler},
    failure::Failure,
    number::parse_integer,
    streams,
};
use crate::access::Rights;

/// The keys and channels that a request uses.
#[derive(Default)]
pub(crate) struct Uses {
    /// The indices of the keys among the arguments.
    pub(crate) keys: Vec<(usize, Rights)>,
    /// The request is malformed, so its keys are unknown.
    pub(crate) every_key: bool,
    /// The indices of the channels.
    pub(crate) channels: Vec<usize>,
    /// Whether the channels are patterns.
    pub(crate) are_patterns: bool,
}

impl Uses {
    /// The uses of a request.
    pub(crate) fn of(command: &Command, request: Request<'_>) -> Self {
        let (first_channel, last_channel, are_patterns) = match command.name {
            "publish" | "spublish" => (1, 1, false),
            "subscribe" | "ssubscribe" => (1, request.len() - 1, false),
            "psubscribe" => (1, request.len() - 1, true),
            _ => (1, 0, false),
        };
        let channels = (first_channel..=last_channel).collect();
        let (keys, every_key) = match keys_with_rights(command, request) {
            Ok(keys) => (keys, false),
            Err(_) => (Vec::new(), true),
        };
        Self { keys, every_key, channels, are_patterns }
    }
}

/// The indices of the keys and the rights needed for each. Empty if the command has no keys.
///
/// # Errors
/// As [`key_places`].
pub(super) fn keys_with_rights(
    command: &Command,
    request: Request<'_>,
) -> Result<Vec<(usize, Rights)>, Failure> {
    if !command.names_keys() {
        return Ok(Vec::new());
    }
    let places = key_places(command, request)?;
    let (first, others) = rights(command, request);
    let rights = |nth| if nth == 0 { first } else { others };
    Ok(places.into_iter().enumerate().map(|(nth, place)| (place, rights(nth))).collect())
}

/// Commands that tell whether a key, field or member exists, or the size or kind of a value, but no content.
const LOOKING: &str = "exists hexists hlen hstrlen llen memory|usage object|encoding object|freq \
    object|idletime object|refcount scard sismember strlen touch type watch xlen zcard";

/// Commands that change a value, and need no right to read it. XCLAIM and XAUTOCLAIM return entries nevertheless,
/// but need no other right in Redis either.
const WRITING: &str = "append del expire expireat geoadd hdel hmset hset hsetnx linsert lpush lpushx lrem lset \
    ltrim mset msetnx persist pexpire pexpireat pfadd psetex restore rpush rpushx sadd setex setnx setrange srem \
    unlink xack xadd xautoclaim xclaim xdel xgroup|create xgroup|createconsumer xgroup|delconsumer xgroup|destroy \
    xgroup|setid xsetid xtrim zadd zrem zremrangebylex zremrangebyrank zremrangebyscore";

/// The rights that a command needs for its first key and for the others, as in Redis.
fn rights(command: &Command, request: Request<'_>) -> (Rights, Rights) {
    const NONE: Rights = Rights::NONE;
    const READ: Rights = Rights::READ;
    const WRITE: Rights = Rights::WRITE;
    const BOTH: Rights = Rights::BOTH;
    let gives_old_value =
        || request.arguments_from(3).any(|argument| argument.eq_ignore_ascii_case(b"GET"));
    match command.name {
        "set" if !gives_old_value() => (WRITE, WRITE),
        "bitfield" if reads_only_bits(request) => (READ, READ),
        "xreadgroup" => (READ, READ),
        "copy" | "sort" | "georadius" | "georadiusbymember" => (READ, WRITE),
        "pfmerge" => (BOTH, READ),
        "blmove" | "brpoplpush" | "lmove" | "rename" | "renamenx" | "rpoplpush" | "smove" => {
            (BOTH, WRITE)
        }
        "bitop" | "geosearchstore" | "sdiffstore" | "sinterstore" | "sunionstore"
        | "zdiffstore" | "zinterstore" | "zrangestore" | "zunionstore" => (WRITE, READ),
        name if LOOKING.split_whitespace().any(|known| known == name) => (NONE, NONE),
        name if WRITING.split_whitespace().any(|known| known == name) => (WRITE, WRITE),
        _ if command.reads() => (READ, READ),
        // All other commands need both, including scripts, which may do anything to their keys.
        _ => (BOTH, BOTH),
    }
}

/// Whether a BITFIELD only reads.
fn reads_only_bits(request: Request<'_>) -> bool {
    let is_word = |argument: &[u8], word: &str| argument.eq_ignore_ascii_case(word.as_bytes());
    request.arguments_from(2).all(|a| !is_word(a, "SET") && !is_word(a, "INCRBY"))
}

/// The indices of the keys among the arguments.
pub(super) fn key_places(command: &Command, request: Request<'_>) -> Result<Vec<usize>, Failure> {
    if let Some(place) = command.key_count_place() {
        let count = request.get(place).and_then(parse_integer);
        let count = count.and_then(|count| usize::try_from(count).ok());
        let first = place + 1;
        return match count {
            Some(count) if count <= request.len() - first => {
                let others = command.keys.places(request.len());
                Ok(others.chain(first..first + count).collect())
            }
            _ => Err(Failure::other("Invalid arguments specified for command")),
        };
    }
    if matches!(command.handler, Handler::StreamRead(_) | Handler::GroupRead(_)) {
        return match streams::keys(request) {
            Ok(keys) => Ok(keys.collect()),
            Err(_) => Err(Failure::other("Invalid arguments specified for command")),
        };
    }
    if command.keys.first == 0 {
        return Err(Failure::other("The command has no key arguments"));
    }
    Ok(command.keys.places(request.len()).chain(stored_at(command, request)).collect())
}

/// The index of the key after STORE or STOREDIST, for a command with such an option. The last one counts.
fn stored_at(command: &Command, request: Request<'_>) -> Option<usize> {
    let first = match command.name {
        "sort" => 2,
        "georadius" => 6,
        "georadiusbymember" => 5,
        _ => return None,
    };
    let is_word = |at: usize, words: &[&str]| {
        let argument = request.get(at).unwrap_or_default();
        words.iter().any(|word| argument.eq_ignore_ascii_case(word.as_bytes()))
    };
    let (mut found, mut at) = (None, first);
    while at + 1 < request.len() {
        at += if is_word(at, &["STORE", "STOREDIST"]) {
            found = Some(at + 1);
            2
        } else if is_word(at, &["BY", "GET", "COUNT"]) {
            2
        } else if is_word(at, &["LIMIT"]) {
            3
        } else {
            1
        };
    }
    found
}

/// The option of SORT, if any, by which a request reads keys that it does not name.
pub(super) fn option_with_patterns(
    command: &Command,
    request: Request<'_>,
) -> Option<&'static str> {
    if !matches!(command.name, "sort" | "sort_ro") {
        return None;
    }
    // Another argument may be mistaken for an option; then more rights are required than necessary.
    let is = |place: usize, word: &str| {
        request.get(place).is_some_and(|given| given.eq_ignore_ascii_case(word.as_bytes()))
    };
    let has_star = |place: usize| request.get(place).is_some_and(|text| text.contains(&b'*'));
    (2..request.len()).find_map(|place| match place {
        _ if is(place, "BY") && has_star(place + 1) => Some("BY"),
        _ if is(place, "GET") => Some("GET"),
        _ => None,
    })
}
