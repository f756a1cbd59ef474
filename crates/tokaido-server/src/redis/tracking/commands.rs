//! CLIENT TRACKING, CACHING, GETREDIR, TRACKINGINFO.

use std::sync::Arc;

use tokaido_store::limits::KEY_LEN_MAX;

use super::session::{Mode, Tracking, Wish};
use crate::redis::{
    call::Call,
    clients::{Client, Mark},
    command::{Command, rows},
    execute::Step,
    failure::Failure,
    session::Session,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"client|caching" 3 Connection(caching), NO_KEY [] Connection "6.0.0"
    "<YES | NO>"
    "Sets whether the keys that the next request reads are tracked, after CLIENT TRACKING with OPTIN or OPTOUT.";
"client|getredir" 2 Connection(get_redirect), NO_KEY [] Connection "6.0.0"
    ""
    "Returns the id of the connection notified of changes in place of this one; 0: none; -1: keys are not tracked.";
"client|tracking" -3 Connection(tracking), NO_KEY [] Connection "6.0.0"
    "<ON | OFF> [REDIRECT client-id] [PREFIX prefix] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]"
    "Turns on or off notifications about changes to the keys that a client has read, or to keys with a prefix, so that it can cache what it reads. PREFIX may be given several times.";
"client|trackinginfo" 2 Connection(tracking_info), NO_KEY [] Connection "6.2.0"
    ""
    "Returns how this connection tracks keys.";
};

fn tracking(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    let options = Options::read(call)?;
    if call.is_word(2, "ON") {
        let before = session.tracking.as_ref();
        check_modes(&options, before.map(Tracking::mode))?;
        check_prefixes(call, &options, before)?;
        let tracker = &call.shared.tracker;
        let wish = options.into_wish();
        let client = session.client_handle();
        client.mark(Mark::BrokenRedirect, false);
        let before = session.tracking.take();
        session.tracking = Some(Tracking::turn_on(before, tracker, client, wish)?);
    } else if call.is_word(2, "OFF") {
        session.tracking = None;
    } else {
        return Err(Failure::Syntax);
    }
    call.reply.ok();
    Ok(Step::Done)
}

/// The options of CLIENT TRACKING, as given.
#[derive(Default)]
struct Options<'c> {
    redirect: Option<Arc<Client>>,
    is_broadcast: bool,
    opts_in: bool,
    opts_out: bool,
    skips_own: bool,
    prefixes: Vec<&'c [u8]>,
}

impl<'c> Options<'c> {
    fn read(call: &Call<'c>) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut at = 3;
        while at < call.len() {
            let has_more = at + 1 < call.len();
            if call.is_word(at, "REDIRECT") && has_more {
                at += 1;
                if options.redirect.is_some() {
                    let message = "A client can only redirect to a single other client";
                    return Err(Failure::other(message));
                }
                let id = u64::try_from(call.integer(at)?).ok();
                let client = id.and_then(|id| call.shared.clients.find(id));
                let message = "The client ID you want redirect to does not exist";
                options.redirect = Some(client.ok_or_else(|| Failure::other(message))?);
            } else if call.is_word(at, "PREFIX") && has_more {
                at += 1;
                options.prefixes.push(call.arg(at));
            } else if call.is_word(at, "BCAST") {
                options.is_broadcast = true;
            } else if call.is_word(at, "OPTIN") {
                options.opts_in = true;
            } else if call.is_word(at, "OPTOUT") {
                options.opts_out = true;
            } else if call.is_word(at, "NOLOOP") {
                options.skips_own = true;
            } else {
                return Err(Failure::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }

    fn into_wish(self) -> Wish {
        let mode = match self {
            Self { is_broadcast: true, .. } => Mode::Broadcast,
            Self { opts_in: true, .. } => Mode::OptIn,
            Self { opts_out: true, .. } => Mode::OptOut,
            _ => Mode::Reads,
        };
        let mut prefixes: Vec<Arc<[u8]>> = self.prefixes.into_iter().map(Arc::from).collect();
        if mode == Mode::Broadcast && prefixes.is_empty() {
            // All keys have the empty prefix.
            prefixes.push(Arc::from(&b""[..]));
        }
        Wish { mode, skips_own: self.skips_own, redirect: self.redirect, prefixes }
    }
}

/// Rejects options that do not go together, and mode changes that require disabling tracking first.
fn check_modes(options: &Options<'_>, before: Option<Mode>) -> Result<(), Failure> {
    let Options { is_broadcast, opts_in, opts_out, .. } = *options;
    let message = if !is_broadcast && !options.prefixes.is_empty() {
        "PREFIX option requires BCAST mode to be enabled"
    } else if before.is_some_and(|before| (before == Mode::Broadcast) != is_broadcast) {
        "You can't switch BCAST mode on/off before disabling tracking for this client, and then \
         re-enabling it with a different mode."
    } else if is_broadcast && (opts_in || opts_out) {
        "OPTIN and OPTOUT are not compatible with BCAST"
    } else if opts_in && opts_out {
        "You can't specify both OPTIN mode and OPTOUT mode"
    } else if opts_in && before == Some(Mode::OptOut) || opts_out && before == Some(Mode::OptIn) {
        "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then \
         re-enabling it with a different mode."
    } else {
        return Ok(());
    };
    Err(Failure::other(message))
}

/// Rejects prefixes that overlap, prefixes that no key can have, and too many prefixes.
fn check_prefixes(
    call: &Call<'_>,
    options: &Options<'_>,
    before: Option<&Tracking>,
) -> Result<(), Failure> {
    let overlap = |one: &[u8], what: &str, other: &[u8]| {
        let [one, other] = [one, other].map(String::from_utf8_lossy);
        Err(Failure::other(format!(
            "Prefix '{one}' overlaps with {what} prefix '{other}'. Prefixes for a single client \
             must not overlap."
        )))
    };
    let do_overlap = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
    let known = before.map(|before| before.prefixes().iter().map(|known| &**known));
    let known: Vec<&[u8]> = known.into_iter().flatten().collect();
    let prefixes_max = call.shared.limits().tracking_prefixes_max;
    if known.len() + options.prefixes.len() > prefixes_max {
        let message = format!("a client tracks at most {prefixes_max} prefixes");
        return Err(Failure::other(message));
    }
    if options.prefixes.iter().any(|prefix| prefix.len() > KEY_LEN_MAX) {
        let message = format!("no key begins with that: keys have at most {KEY_LEN_MAX} bytes");
        return Err(Failure::other(message));
    }
    for (index, one) in options.prefixes.iter().enumerate() {
        if let Some(other) = known.iter().find(|known| do_overlap(one, known)) {
            return overlap(one, "an existing", other);
        }
        if let Some(other) = options.prefixes[index + 1..].iter().find(|p| do_overlap(one, p)) {
            return overlap(one, "another provided", other);
        }
    }
    Ok(())
}

fn caching(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    let Some(tracking) = &mut session.tracking else {
        return Err(Failure::other(
            "CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
             OPTOUT mode enabled",
        ));
    };
    if call.is_word(2, "YES") {
        if tracking.mode() != Mode::OptIn {
            let message =
                "CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.";
            return Err(Failure::other(message));
        }
    } else if call.is_word(2, "NO") {
        if tracking.mode() != Mode::OptOut {
            let message =
                "CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.";
            return Err(Failure::other(message));
        }
    } else {
        return Err(Failure::Syntax);
    }
    tracking.choose(true);
    call.reply.ok();
    Ok(Step::Done)
}

fn get_redirect(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    call.reply.integer(session.tracking.as_ref().map_or(-1, |t| t.redirect() as i64));
    Ok(Step::Done)
}

fn tracking_info(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    let tracking = session.tracking.as_ref();
    let mut flags = Vec::new();
    match tracking.map(|tracking| (tracking.mode(), tracking.is_chosen())) {
        None => flags.push("off"),
        Some((mode, is_chosen)) => {
            flags.push("on");
            flags.extend_from_slice(match (mode, is_chosen) {
                (Mode::Reads, _) => &[],
                (Mode::Broadcast, _) => &["bcast"],
                (Mode::OptIn, false) => &["optin"],
                (Mode::OptIn, true) => &["optin", "caching-yes"],
                (Mode::OptOut, false) => &["optout"],
                (Mode::OptOut, true) => &["optout", "caching-no"],
            });
        }
    }
    if tracking.is_some_and(Tracking::skips_own) {
        flags.push("noloop");
    }
    if tracking.is_some_and(Tracking::has_broken_redirect) {
        flags.push("broken_redirect");
    }
    call.reply.map(3);
    call.reply.bulk(b"flags");
    call.reply.set(flags.len());
    flags.iter().for_each(|flag| call.reply.bulk(flag.as_bytes()));
    call.reply.bulk(b"redirect");
    call.reply.integer(tracking.map_or(-1, |tracking| tracking.redirect() as i64));
    call.reply.bulk(b"prefixes");
    let prefixes: Vec<_> = tracking.into_iter().flat_map(Tracking::prefixes).collect();
    call.reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| call.reply.bulk(prefix));
    Ok(Step::Done)
}
