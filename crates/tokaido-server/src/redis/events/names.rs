//! Redis's names for the changes that a command makes.

use tokaido_store::{Kind, What};

use super::classes::Classes;
use crate::redis::call::Call;

/// The names of what a command has done to the key at argument `place`, in order. Empty for a command that only
/// reads the key, and for one that this list does not include.
pub(super) fn of_command(name: &str, call: &Call<'_>, place: usize) -> &'static [&'static str] {
    let is_first = place == 1;
    let has = |word: &str| (2..call.len()).any(|index| call.is_word(index, word));
    let of_side =
        |index: usize, left, right| if call.is_word(index, "LEFT") { left } else { right };
    match name {
        "set" if ["EX", "PX", "EXAT", "PXAT"].iter().any(|word| has(word)) => &["set", "expire"],
        "setex" | "psetex" => &["set", "expire"],
        "set" | "setnx" | "getset" | "mset" | "msetnx" => &["set"],
        "append" => &["append"],
        "setrange" => &["setrange"],
        "setbit" | "bitfield" => &["setbit"],
        "pfadd" | "pfmerge" if is_first => &["pfadd"],
        "incr" | "decr" | "incrby" | "decrby" => &["incrby"],
        "incrbyfloat" => &["incrbyfloat"],
        "getex" if has("PERSIST") => &["persist"],
        "getex" | "expire" | "pexpire" | "expireat" | "pexpireat" => &["expire"],
        "persist" => &["persist"],
        "hset" | "hmset" | "hsetnx" => &["hset"],
        "hincrby" => &["hincrby"],
        "hincrbyfloat" => &["hincrbyfloat"],
        "hdel" => &["hdel"],
        "lpush" | "lpushx" => &["lpush"],
        "rpush" | "rpushx" => &["rpush"],
        "lpop" | "blpop" => &["lpop"],
        "rpop" | "brpop" => &["rpop"],
        "lmpop" | "blmpop" if has("LEFT") => &["lpop"],
        "lmpop" | "blmpop" => &["rpop"],
        "lmove" | "blmove" if is_first => of_side(3, &["lpop"], &["rpop"]),
        "lmove" | "blmove" => of_side(4, &["lpush"], &["rpush"]),
        "rpoplpush" | "brpoplpush" if is_first => &["rpop"],
        "rpoplpush" | "brpoplpush" => &["lpush"],
        "linsert" => &["linsert"],
        "lset" => &["lset"],
        "lrem" => &["lrem"],
        "ltrim" => &["ltrim"],
        "sadd" => &["sadd"],
        "srem" => &["srem"],
        "spop" => &["spop"],
        "smove" if is_first => &["srem"],
        "smove" => &["sadd"],
        "sinterstore" if is_first => &["sinterstore"],
        "sunionstore" if is_first => &["sunionstore"],
        "sdiffstore" if is_first => &["sdiffstore"],
        "zadd" if has("INCR") => &["zincr"],
        "zadd" | "geoadd" => &["zadd"],
        "zincrby" => &["zincr"],
        "zrem" => &["zrem"],
        "zremrangebyscore" => &["zremrangebyscore"],
        "zremrangebyrank" => &["zremrangebyrank"],
        "zremrangebylex" => &["zremrangebylex"],
        "zpopmin" | "bzpopmin" => &["zpopmin"],
        "zpopmax" | "bzpopmax" => &["zpopmax"],
        "zmpop" | "bzmpop" if has("MIN") => &["zpopmin"],
        "zmpop" | "bzmpop" => &["zpopmax"],
        "zrangestore" if is_first => &["zrangestore"],
        "zunionstore" if is_first => &["zunionstore"],
        "zinterstore" if is_first => &["zinterstore"],
        "zdiffstore" if is_first => &["zdiffstore"],
        "georadius" | "georadiusbymember" if !is_first => &["georadiusstore"],
        "geosearchstore" if is_first => &["geosearchstore"],
        "sort" if !is_first => &["sortstore"],
        _ => of_whole_record(name, is_first),
    }
}

/// Like [`of_command`], for commands that do not look inside a value.
fn of_whole_record(name: &str, is_first: bool) -> &'static [&'static str] {
    match name {
        "del" | "unlink" | "getdel" => &["del"],
        "rename" | "renamenx" if is_first => &["rename_from"],
        "rename" | "renamenx" => &["rename_to"],
        "move" => &["move_from"],
        "restore" => &["restore"],
        "copy" if !is_first => &["copy_to"],
        _ => &[],
    }
}

/// The name of a change that no command has named.
pub(super) fn of_change(what: What<'_>) -> Option<&'static str> {
    Some(match what {
        What::Cleared | What::Moved { .. } => return None,
        What::Reclaimed { .. } => "expired",
        What::Deleted { .. } => "del",
        What::Put { record, .. } => match record.kind {
            Kind::Bytes => "set",
            Kind::Hash => "hset",
            Kind::List => "rpush",
            Kind::Set => "sadd",
            Kind::SortedSet => "zadd",
            Kind::Stream => "xadd",
        },
    })
}

/// Whether a key whose last change has this name is gone without a further `del` event.
pub(super) fn is_of_going(name: &str) -> bool {
    matches!(name, "del" | "rename_from" | "move_from" | "expired")
}

/// Whether a change with this name that deleted the key is reported as `del` instead.
pub(super) fn is_of_staying(name: &str) -> bool {
    name.ends_with("store") || name == "expire"
}

/// The class of an event.
pub(super) fn class(name: &str) -> Classes {
    match name {
        "set" | "setrange" | "setbit" | "append" | "incrby" | "incrbyfloat" | "pfadd" => {
            Classes::STRING
        }
        "expired" => Classes::EXPIRED,
        "georadiusstore" | "geosearchstore" => Classes::SORTED_SET,
        "sortstore" | "rpush" | "rpop" => Classes::LIST,
        _ => match name.as_bytes().first() {
            Some(b'l') => Classes::LIST,
            Some(b's') => Classes::SET,
            Some(b'h') => Classes::HASH,
            Some(b'z') => Classes::SORTED_SET,
            Some(b'x') => Classes::STREAM,
            _ => Classes::GENERIC,
        },
    }
}
