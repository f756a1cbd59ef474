//! Consumer groups: XGROUP, XACK.

use tokaido_collections::{OpenGroup, State, Stream, StreamId};
use tokaido_store::{ReadTransaction, WriteTransaction};

use super::{
    ids,
    writing::{no_group_of, stream, tell, wrong_options},
};
use crate::redis::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    introspection,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"xack" -4 Write(xack), KEY [FAST] Stream "5.0.0"
    "key group id [id ...]"
    "Acknowledges entries, which are then no longer pending; returns how many were pending.";
"xgroup" -2 Container(None), NO_KEY [] Stream "5.0.0"
    ""
    "Commands about consumer groups.";
"xgroup|create" -5 Write(create), SUBKEY [DENYOOM] Stream "5.0.0"
    "key group <id | $> [MKSTREAM] [ENTRIESREAD entries-read]"
    "Creates a consumer group, whose first entry is the one after the id.";
"xgroup|createconsumer" 5 Write(create_consumer), SUBKEY [DENYOOM] Stream "6.2.0"
    "key group consumer"
    "Creates a consumer in a group; returns 0 if it already exists.";
"xgroup|delconsumer" 5 Write(delete_consumer), SUBKEY [] Stream "5.0.0"
    "key group consumer"
    "Deletes a consumer with its list of pending entries; returns how many there were.";
"xgroup|destroy" 4 Write(destroy), SUBKEY [] Stream "5.0.0"
    "key group"
    "Deletes a group with its consumers and its list of pending entries.";
"xgroup|help" 2 Server(introspection::help), NO_KEY [] Stream "5.0.0"
    ""
    "Lists the subcommands.";
"xgroup|setid" -5 Write(set_id), SUBKEY [] Stream "5.0.0"
    "key group <id | $> [ENTRIESREAD entries-read]"
    "Makes a group continue after another id.";
};

/// The options after the id of CREATE and SETID.
struct Options {
    makes_stream: bool,
    entries_read: Option<u64>,
}

fn options(call: &Call<'_>, is_create: bool) -> Result<Options, Failure> {
    let mut options = Options { makes_stream: false, entries_read: None };
    let mut at = 5;
    while at < call.len() {
        if is_create && call.is_word(at, "MKSTREAM") {
            options.makes_stream = true;
            at += 1;
        } else if call.is_word(at, "ENTRIESREAD") && at + 1 < call.len() {
            options.entries_read =
                match call.integer(at + 1)? {
                    -1 => None,
                    read => Some(u64::try_from(read).map_err(|_| {
                        Failure::other("value for ENTRIESREAD must be positive or -1")
                    })?),
                };
            at += 2;
        } else {
            return Err(wrong_options(call, "XGROUP"));
        }
    }
    Ok(options)
}

/// The stream of the third argument, which must exist.
fn existing<'c>(
    call: &Call<'c>,
    tx: &mut (impl ReadTransaction + ?Sized),
) -> Result<(Stream<'c>, State), Failure> {
    let stream = stream(call, 2);
    let state = stream.state(tx)?.ok_or_else(|| {
        Failure::other(
            "The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the \
             MKSTREAM option to create an empty stream automatically.",
        )
    })?;
    Ok((stream, state))
}

/// The group of the fourth argument, which must exist.
fn existing_group<'c>(
    call: &Call<'c>,
    tx: &mut (impl ReadTransaction + ?Sized),
) -> Result<(OpenGroup<'c>, State), Failure> {
    let (stream, state) = existing(call, tx)?;
    let group = stream.group(tx, &state, call.arg(3))?;
    Ok((group.ok_or_else(|| no_group_of(call, 2, 3))?, state))
}

/// The id in the fifth argument; `$` is the last one.
fn id_or_last(call: &Call<'_>, state: Option<&State>) -> Result<StreamId, Failure> {
    match call.arg(4) {
        b"$" => Ok(state.map_or(StreamId::MIN, |state| state.last_id)),
        text => ids::parse(text, 0),
    }
}

fn create(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let Options { makes_stream, entries_read } = options(call, true)?;
    let stream = stream(call, 2);
    let found = stream.state(tx)?;
    if !makes_stream {
        existing(call, tx)?;
    }
    let last_id = id_or_last(call, found.as_ref())?;
    let mut state = stream.open(tx)?;
    if !stream.create_group(tx, &mut state, call.arg(3), last_id, entries_read)? {
        return Err(Failure::GroupExists);
    }
    tell(call, tx, 2, &["xgroup-create"]);
    call.reply.ok();
    Ok(())
}

fn set_id(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let Options { entries_read, .. } = options(call, false)?;
    let (mut group, state) = existing_group(call, tx)?;
    let last_id = id_or_last(call, Some(&state))?;
    group.set_last_id(tx, last_id, entries_read)?;
    group.save(tx)?;
    tell(call, tx, 2, &["xgroup-setid"]);
    call.reply.ok();
    Ok(())
}

fn destroy(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (stream, mut state) = existing(call, tx)?;
    let was_there = stream.destroy_group(tx, &mut state, call.arg(3))?;
    if was_there {
        tell(call, tx, 2, &["xgroup-destroy"]);
    }
    call.reply.integer(i64::from(was_there));
    Ok(())
}

fn create_consumer(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (mut group, _) = existing_group(call, tx)?;
    let is_new = group.find_consumer(tx, call.arg(4))?.is_none();
    if is_new {
        group.open_consumer(tx, call.arg(4))?;
        group.save(tx)?;
        tell(call, tx, 2, &["xgroup-createconsumer"]);
    }
    call.reply.integer(i64::from(is_new));
    Ok(())
}

fn delete_consumer(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (mut group, _) = existing_group(call, tx)?;
    let removed = group.delete_consumer(tx, call.arg(4))?;
    if removed.is_some() {
        group.save(tx)?;
        tell(call, tx, 2, &["xgroup-delconsumer"]);
    }
    call.reply.integer(removed.unwrap_or(0) as i64);
    Ok(())
}

fn xack(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let stream = stream(call, 1);
    let group = match stream.state(tx)? {
        Some(state) => stream.group(tx, &state, call.arg(2))?,
        None => None,
    };
    let Some(mut group) = group else {
        call.reply.integer(0);
        return Ok(());
    };
    let mut acknowledged = 0;
    for id in ids::all_from(call, 3)? {
        acknowledged += i64::from(group.acknowledge(tx, id)?);
    }
    if acknowledged > 0 {
        group.save(tx)?;
    }
    call.reply.integer(acknowledged);
    Ok(())
}
