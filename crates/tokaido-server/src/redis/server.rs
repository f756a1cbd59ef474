//! Commands about the server: INFO, TIME, ROLE, WAIT, LOLWUT.

use tokaido_store::ReadTransaction;

use super::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    info as sections,
};
use crate::shared::{TOKAIDO_VERSION, wall_clock_us};

pub(super) const COMMANDS: &[Command] = rows! {
"info" -1 Read(info), NO_KEY [DANGEROUS SPANS] Server "1.0.0"
    "[section [section ...]]"
    "Returns information about the server.";
"lolwut" -1 Server(lolwut), NO_KEY [FAST] Server "5.0.0"
    "[VERSION version]"
    "Draws a station of the Tokaido road.";
"role" 1 Server(role), NO_KEY [FAST ADMIN DANGEROUS] Server "2.8.12"
    ""
    "Returns the role in replication, which is always master.";
"time" 1 Server(time), NO_KEY [FAST] Server "2.6.0"
    ""
    "Returns the server's time: seconds since 1970, and microseconds within the second.";
"wait" 3 Server(wait), NO_KEY [] Generic "3.0.0"
    "numreplicas timeout"
    "Returns 0: there are no replicas to wait for.";
"waitaof" 4 Server(waitaof), NO_KEY [] Generic "7.2.0"
    "numlocal numreplicas timeout"
    "Returns 1 and 0: every acknowledged write is already in the log, and there are no replicas.";
};

fn info(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let wanted: Vec<&[u8]> = call.request.arguments().collect();
    let text = sections::render(call.shared, tx, &wanted)?;
    call.reply.verbatim("txt", &text);
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

/// There are no replicas to confirm anything, so there is nothing to wait for.
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

/// Every write is in the log before its reply is sent, as durably as the configuration says.
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
