//! Commands about the server: INFO, CONFIG GET, TIME, ROLE, WAIT, LOLWUT.

use tokaido_store::ReadTransaction;

use super::{
    call::Call,
    command::{Command, rows},
    events::{Classes, LETTERS},
    failure::Failure,
    glob, info as sections, introspection,
};
use crate::{
    SocketAddress,
    shared::{TOKAIDO_VERSION, wall_clock_us},
};

pub(super) const COMMANDS: &[Command] = rows! {
"config" -2 Container(None), NO_KEY [] Server "2.0.0"
    ""
    "Commands about settings.";
"config|get" -3 Server(config_get), NO_KEY [ADMIN DANGEROUS] Server "2.0.0"
    "parameter [parameter ...]"
    "Gives the settings whose names match the patterns.";
"config|help" 2 Server(introspection::help), NO_KEY [] Server "5.0.0"
    ""
    "Lists the subcommands.";
"config|set" -4 Server(config_set), NO_KEY [ADMIN DANGEROUS] Server "2.0.0"
    "parameter value [parameter value ...]"
    "Changes notify-keyspace-events until the server stops; no other setting can be changed.";
"info" -1 Read(info), NO_KEY [DANGEROUS SPANS] Server "1.0.0"
    "[section [section ...]]"
    "Tells about the server.";
"lolwut" -1 Server(lolwut), NO_KEY [FAST] Server "5.0.0"
    "[VERSION version]"
    "Draws a station on the road.";
"role" 1 Server(role), NO_KEY [FAST ADMIN DANGEROUS] Server "2.8.12"
    ""
    "Tells the role in replication, which is master.";
"time" 1 Server(time), NO_KEY [FAST] Server "2.6.0"
    ""
    "Gives the server's time in seconds, and the microseconds beside them.";
"wait" 3 Server(wait), NO_KEY [] Generic "3.0.0"
    "numreplicas timeout"
    "Gives 0: there are no replicas to wait for.";
"waitaof" 4 Server(waitaof), NO_KEY [] Generic "7.2.0"
    "numlocal numreplicas timeout"
    "Gives 1 and 0: what was answered is in the log already, and there are no replicas.";
};

fn info(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let wanted: Vec<&[u8]> = call.request.arguments().collect();
    let text = sections::render(call.shared, tx, &wanted)?;
    call.reply.verbatim("txt", &text);
    Ok(())
}

/// The setting that says which keyspace events are published.
const NOTIFY: &str = "notify-keyspace-events";

/// What can be true of a Redis setting here. Clients ask for these to find out what they may do.
fn settings(call: &Call<'_>) -> Vec<(&'static str, String)> {
    let limits = call.shared.limits();
    let unix_socket = call.shared.addresses().iter().find_map(SocketAddress::unix);
    vec![
        ("appendonly", "yes".to_owned()),
        (
            "client-output-buffer-limit",
            format!("normal 0 0 0 slave 0 0 0 pubsub {} 0 0", limits.pushed_bytes_max),
        ),
        ("databases", limits.numbered_databases_max.to_string()),
        ("maxclients", limits.connections_max.to_string()),
        ("maxmemory", "0".to_owned()),
        ("maxmemory-policy", "noeviction".to_owned()),
        (NOTIFY, call.shared.notifier.wanted().to_string()),
        ("port", sections::tcp_port(call.shared).to_string()),
        ("proto-max-bulk-len", limits.value_bytes_max.to_string()),
        ("save", String::new()),
        ("timeout", limits.idle_ms.div_ceil(1000).to_string()),
        ("unixsocket", unix_socket.map(|path| path.display().to_string()).unwrap_or_default()),
    ]
}

fn config_get(call: &mut Call<'_>) -> Result<(), Failure> {
    let patterns: Vec<Vec<u8>> =
        call.request.arguments_from(2).map(<[u8]>::to_ascii_lowercase).collect();
    let mut settings = settings(call);
    settings.retain(|(name, _)| patterns.iter().any(|p| glob::matches(p, name.as_bytes())));
    call.reply.map(settings.len());
    for (name, value) in settings {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    Ok(())
}

/// Checks all settings before it changes one.
fn config_set(call: &mut Call<'_>) -> Result<(), Failure> {
    if !call.len().is_multiple_of(2) {
        return Err(Failure::Syntax);
    }
    let mut wanted = None;
    for index in (2..call.len()).step_by(2) {
        let name = String::from_utf8_lossy(call.arg(index));
        if !call.is_word(index, NOTIFY) {
            return Err(Failure::other(format!(
                "Unknown option or number of arguments for CONFIG SET - '{name}'"
            )));
        }
        let letters = String::from_utf8_lossy(call.arg(index + 1));
        wanted = Some(Classes::parse(&letters).ok_or_else(|| {
            Failure::other(format!(
                "CONFIG SET failed (possibly related to argument '{name}') - \
                 Invalid event class character. Use '{LETTERS}'."
            ))
        })?);
    }
    if let Some(wanted) = wanted {
        call.shared.notifier.want(wanted);
    }
    call.reply.ok();
    Ok(())
}

fn time(call: &mut Call<'_>) -> Result<(), Failure> {
    let now_us = wall_clock_us();
    call.reply.array(2);
    call.reply.bulk((now_us / 1_000_000).to_string().as_bytes());
    call.reply.bulk((now_us % 1_000_000).to_string().as_bytes());
    Ok(())
}

/// A master with no replication offset and no replicas.
fn role(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.integer(0);
    call.reply.array(0);
    Ok(())
}

/// No replica will ever confirm anything, so there is nothing to wait for.
fn wait(call: &mut Call<'_>) -> Result<(), Failure> {
    call.integer(1)?;
    check_timeout(call, 2)?;
    call.reply.integer(0);
    Ok(())
}

fn check_timeout(call: &Call<'_>, index: usize) -> Result<(), Failure> {
    match call.integer(index) {
        Ok(0..) => Ok(()),
        Ok(_) => Err(Failure::other("timeout is negative")),
        Err(_) => Err(Failure::other("timeout is not an integer or out of range")),
    }
}

/// Every write is in the log before its reply is sent, as durable as the server was told to make it.
fn waitaof(call: &mut Call<'_>) -> Result<(), Failure> {
    if !matches!(call.integer(1), Ok(0 | 1)) {
        return Err(Failure::other("value is out of range, must be between 0 and 1"));
    }
    call.positive(2)?;
    check_timeout(call, 3)?;
    call.reply.array(2);
    call.reply.integer(1);
    call.reply.integer(0);
    Ok(())
}

fn lolwut(call: &mut Call<'_>) -> Result<(), Failure> {
    let picture = format!("{STATION}\nTokaido ver. {TOKAIDO_VERSION}\n");
    call.reply.verbatim("txt", &picture);
    Ok(())
}

/// Hara, the thirteenth station, where the road passes nearest to the mountain.
const STATION: &str = r"
                     _.-''-._
                  .-' ^ ^^ ^ '-.
               .-'   ^  ^   ^   '-.
           _.-'                    '-._
     __.--'                            '--.__
  ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
      |      _____/\_____                 |
   \\ | //  /____________\    13  HARA  \\|//
    \\|//    |  |  |  |  |        原      \|/
  ____|______|__|__|__|__|________________|_____
   .   o   .     .   o  o   .      .    o    .
";
