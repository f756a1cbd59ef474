//! Commands about the server: INFO, CONFIG GET, TIME, ROLE, WAIT, LOLWUT.

use tokaido_store::ReadTransaction;

use super::{call::Call, execute::Step, failure::Failure, glob, info as sections};
use crate::shared::{TOKAIDO_VERSION, wall_clock_us};

pub(super) fn info(call: &mut Call<'_, '_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let wanted: Vec<&[u8]> = call.request.arguments().collect();
    let text = sections::render(call.shared, tx, &wanted)?;
    call.reply.verbatim("txt", &text);
    Ok(())
}

/// What can be true of a Redis setting here. Clients ask for these to find out what they may do.
fn settings(call: &Call<'_, '_>) -> Vec<(&'static str, String)> {
    let limits = call.shared.limits();
    vec![
        ("appendonly", "yes".to_owned()),
        ("databases", limits.numbered_databases_max.to_string()),
        ("maxclients", limits.connections_max.to_string()),
        ("maxmemory", "0".to_owned()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("notify-keyspace-events", String::new()),
        ("port", call.shared.port().to_string()),
        ("proto-max-bulk-len", limits.value_bytes_max.to_string()),
        ("save", String::new()),
        ("timeout", limits.idle_ms.div_ceil(1000).to_string()),
    ]
}

pub(super) fn config_get(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    let patterns: Vec<Vec<u8>> =
        call.request.arguments_from(2).map(<[u8]>::to_ascii_lowercase).collect();
    let mut settings = settings(call);
    settings.retain(|(name, _)| patterns.iter().any(|p| glob::matches(p, name.as_bytes())));
    call.reply.map(settings.len());
    for (name, value) in settings {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    Ok(Step::Done)
}

pub(super) fn time(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    let now_us = wall_clock_us();
    call.reply.array(2);
    call.reply.bulk((now_us / 1_000_000).to_string().as_bytes());
    call.reply.bulk((now_us % 1_000_000).to_string().as_bytes());
    Ok(Step::Done)
}

/// A master with no replication offset and no replicas.
pub(super) fn role(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.integer(0);
    call.reply.array(0);
    Ok(Step::Done)
}

/// No replica will ever confirm anything, so there is nothing to wait for.
pub(super) fn wait(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    call.integer(1)?;
    if call.integer(2).map_err(|_| Failure::other("timeout is not an integer or out of range"))? < 0
    {
        return Err(Failure::other("timeout is negative"));
    }
    call.reply.integer(0);
    Ok(Step::Done)
}

pub(super) fn lolwut(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    let picture = format!("{STATION}\nTokaido ver. {TOKAIDO_VERSION}\n");
    call.reply.verbatim("txt", &picture);
    Ok(Step::Done)
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
