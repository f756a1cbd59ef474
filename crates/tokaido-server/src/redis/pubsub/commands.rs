//! SUBSCRIBE, PUBLISH, PUBSUB and related commands.

use std::sync::Arc;

use super::{Message, Names};
use crate::redis::{
    call::Call,
    command::{Command, rows},
    execute::Step,
    failure::Failure,
    glob, introspection,
    session::Session,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"psubscribe" -2 Connection(psubscribe), NO_KEY [NO_MULTI WHILE_SUBSCRIBED] PubSub "2.0.0"
    "pattern [pattern ...]"
    "Subscribes to all channels whose names match the patterns.";
"publish" 3 Server(publish), NO_KEY [FAST] PubSub "2.0.0"
    "channel message"
    "Sends a message to the subscribers of a channel; returns the number of times it is sent.";
"pubsub" -2 Container(None), NO_KEY [] PubSub "2.8.0"
    ""
    "Commands about subscriptions.";
"pubsub|channels" -2 Server(channels), NO_KEY [] PubSub "2.8.0"
    "[pattern]"
    "Lists the channels that have subscribers.";
"pubsub|help" 2 Server(introspection::help), NO_KEY [] PubSub "6.2.0"
    ""
    "Lists the subcommands.";
"pubsub|numpat" 2 Server(numpat), NO_KEY [] PubSub "2.8.0"
    ""
    "Returns the number of patterns that have subscribers.";
"pubsub|numsub" -2 Server(numsub), NO_KEY [] PubSub "2.8.0"
    "[channel [channel ...]]"
    "Returns the number of subscribers of each channel, not counting those of patterns.";
"pubsub|shardchannels" -2 Server(shard_channels), NO_KEY [] PubSub "7.0.0"
    "[pattern]"
    "Lists the shard channels that have subscribers.";
"pubsub|shardnumsub" -2 Server(shard_numsub), NO_KEY [] PubSub "7.0.0"
    "[shardchannel [shardchannel ...]]"
    "Returns the number of subscribers of each shard channel.";
"punsubscribe" -1 Connection(punsubscribe), NO_KEY [NO_MULTI WHILE_SUBSCRIBED] PubSub "2.0.0"
    "[pattern [pattern ...]]"
    "Unsubscribes from the given patterns, or from all.";
"spublish" 3 Server(spublish), NO_KEY [FAST] PubSub "7.0.0"
    "shardchannel message"
    "Sends a message to the subscribers of a shard channel; returns how many there are.";
"ssubscribe" -2 Connection(ssubscribe), NO_KEY [NO_MULTI WHILE_SUBSCRIBED] PubSub "7.0.0"
    "shardchannel [shardchannel ...]"
    "Subscribes to shard channels, whose names are separate from those of channels.";
"subscribe" -2 Connection(subscribe), NO_KEY [NO_MULTI WHILE_SUBSCRIBED] PubSub "2.0.0"
    "channel [channel ...]"
    "Subscribes to channels.";
"sunsubscribe" -1 Connection(sunsubscribe), NO_KEY [NO_MULTI WHILE_SUBSCRIBED] PubSub "7.0.0"
    "[shardchannel [shardchannel ...]]"
    "Unsubscribes from the given shard channels, or from all.";
"unsubscribe" -1 Connection(unsubscribe), NO_KEY [NO_MULTI WHILE_SUBSCRIBED] PubSub "2.0.0"
    "[channel [channel ...]]"
    "Unsubscribes from the given channels, or from all.";
};

fn subscribe(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    add_all(call, session, Names::Channels, "subscribe")
}

fn psubscribe(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    add_all(call, session, Names::Patterns, "psubscribe")
}

fn ssubscribe(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    add_all(call, session, Names::Shards, "ssubscribe")
}

/// Subscribes to the names. Each gets its own reply.
fn add_all(
    call: &mut Call<'_>,
    session: &mut Session,
    names: Names,
    verb: &str,
) -> Result<Step, Failure> {
    session.subscriptions.check(call.request.arguments(), call.shared.limits())?;
    for name in call.request.arguments() {
        session.subscriptions.add(names, name);
        confirm(call, verb, Some(name), session.subscriptions.count(names));
    }
    Ok(Step::Done)
}

fn unsubscribe(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    remove_all(call, session, Names::Channels, "unsubscribe")
}

fn punsubscribe(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    remove_all(call, session, Names::Patterns, "punsubscribe")
}

fn sunsubscribe(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    remove_all(call, session, Names::Shards, "sunsubscribe")
}

fn remove_all(
    call: &mut Call<'_>,
    session: &mut Session,
    names: Names,
    verb: &str,
) -> Result<Step, Failure> {
    let named = match call.len() {
        1 => session.subscriptions.all(names),
        _ => call.request.arguments().map(Arc::from).collect(),
    };
    if named.is_empty() {
        confirm(call, verb, None, session.subscriptions.count(names));
    }
    for name in named {
        session.subscriptions.remove(names, &name);
        confirm(call, verb, Some(&name), session.subscriptions.count(names));
    }
    Ok(Step::Done)
}

fn confirm(call: &mut Call<'_>, verb: &str, name: Option<&[u8]>, count: usize) {
    call.reply.push(3);
    call.reply.bulk(verb.as_bytes());
    call.reply.bulk_or_null(name);
    call.reply.integer(count as i64);
}

/// The reply to PING in version 2 of the protocol while there are subscriptions, in the form of a
/// message.
pub(in crate::redis) fn pong(call: &mut Call<'_>) -> Result<Step, Failure> {
    if call.len() > 2 {
        return Err(call.wrong_arity("ping"));
    }
    call.reply.array(2);
    call.reply.bulk(b"pong");
    call.reply.bulk(call.arg(1));
    Ok(Step::Done)
}

fn publish(call: &mut Call<'_>) -> Result<(), Failure> {
    send(call, false)
}

fn spublish(call: &mut Call<'_>) -> Result<(), Failure> {
    send(call, true)
}

/// Queues the message until the transaction that it may be a part of is committed.
fn send(call: &mut Call<'_>, is_sharded: bool) -> Result<(), Failure> {
    let (channel, payload) = (call.arg(1).to_vec(), call.arg(2).to_vec());
    let message = Message { is_sharded, channel, payload };
    let receivers = call.shared.channels.receivers(&message);
    call.messages.push(message);
    call.reply.integer(receivers as i64);
    Ok(())
}

fn channels(call: &mut Call<'_>) -> Result<(), Failure> {
    list(call, Names::Channels)
}

fn shard_channels(call: &mut Call<'_>) -> Result<(), Failure> {
    list(call, Names::Shards)
}

fn list(call: &mut Call<'_>, names: Names) -> Result<(), Failure> {
    if call.len() > 3 {
        let subcommand = String::from_utf8_lossy(call.arg(1));
        return Err(Failure::other(format!(
            "unknown subcommand or wrong number of arguments for '{subcommand}'. Try PUBSUB HELP."
        )));
    }
    let mut all = call.shared.channels.all(names);
    if let Some(pattern) = call.request.get(2) {
        all.retain(|(name, _)| glob::matches(pattern, name));
    }
    call.reply.array(all.len());
    for (name, _) in all {
        call.reply.bulk(&name);
    }
    Ok(())
}

fn numpat(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.integer(call.shared.channels.len(Names::Patterns) as i64);
    Ok(())
}

fn numsub(call: &mut Call<'_>) -> Result<(), Failure> {
    count(call, Names::Channels)
}

fn shard_numsub(call: &mut Call<'_>) -> Result<(), Failure> {
    count(call, Names::Shards)
}

fn count(call: &mut Call<'_>, names: Names) -> Result<(), Failure> {
    call.reply.array(2 * (call.len() - 2));
    for name in call.request.arguments_from(2) {
        call.reply.bulk(name);
        call.reply.integer(call.shared.channels.subscribers_of(names, name) as i64);
    }
    Ok(())
}
