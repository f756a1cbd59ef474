//! What handlers of OpenResty's do with request and response beside what those of the native dialect do.

use std::{
    net::SocketAddr,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use super::{
    context::{Context, Fault, NO, YES},
    exchange::header_name,
};
use crate::Waiting;

/// An address or a port of the connection, as the reply's data; `NO` for a UNIX socket.
pub(super) fn request_end(context: &mut Context, which: i32) -> Result<i32, Fault> {
    let request = context.exchange.request()?;
    let end = if which < 2 { request.client } else { request.server };
    let text = |end: SocketAddr| match which {
        0 | 2 => end.ip().to_string(),
        _ => end.port().to_string(),
    };
    let Some(text) = end.map(text) else { return Ok(NO) };
    Ok(context.answer(|out| out.extend_from_slice(text.as_bytes())))
}

/// The minor number of the request's version of HTTP/1, as the reply's number, and when it began, in milliseconds
/// since 1970, as its flags.
pub(super) fn request_line(context: &mut Context) -> Result<i32, Fault> {
    let request = context.exchange.request()?;
    context.reply.number = f64::from(request.is_1_1);
    context.reply.flags = request.began_ms;
    Ok(YES)
}

/// The first header of that name, which is in lower case.
pub(super) fn request_header(context: &mut Context, name: &[u8]) -> Result<i32, Fault> {
    let request = context.exchange.request()?;
    match request.headers.iter().find(|(other, _)| other.as_bytes() == name) {
        None => Ok(NO),
        Some((_, value)) => {
            context.reply.data(value);
            Ok(YES)
        }
    }
}

/// Removes every header of that name from the response.
pub(super) fn response_header_remove(context: &mut Context, name: &[u8]) -> Result<i32, Fault> {
    let name = header_name(name)?;
    context.exchange.response()?.headers.retain(|(other, _)| *other != name);
    Ok(YES)
}

/// The header of that name at that place among those of the name.
pub(super) fn response_header_at(
    context: &mut Context,
    name: &[u8],
    place: i32,
) -> Result<i32, Fault> {
    let name = header_name(name)?;
    let headers = context.exchange.response()?.headers.iter();
    let place = usize::try_from(place).unwrap_or(usize::MAX);
    match headers.filter(|(other, _)| *other == name).nth(place) {
        None => Ok(NO),
        Some((_, value)) => {
            context.reply.data(value);
            Ok(YES)
        }
    }
}

/// From here on the response cannot be another one: a failure breaks the connection off. The reply's number is 1 if it
/// has no body, whatever is written.
pub(super) fn response_sent(context: &mut Context, status: i32) -> Result<i32, Fault> {
    let response = context.exchange.response()?;
    response.status = status as u16;
    response.is_sent = true;
    let is_nested = context.exchange.outer_response()?.nested.is_current();
    let is_head = !is_nested && context.exchange.request()?.method == "HEAD";
    context.reply.number = f64::from(is_head || matches!(status, 204 | 304));
    Ok(YES)
}

/// What becomes of a flush; `lua/ngx/output.lua` has the same numbers.
const FLUSHED: f64 = 0.0;
const UNSENT: f64 = 1.0;
const GONE: f64 = 2.0;
const BUFFERED: f64 = 3.0;

/// What there is of the response is to be sent while the handler waits. The reply's number is what becomes of that; if
/// `waits` is not 0, the handler is about to wait for as long as something is unsent.
pub(super) fn response_flush(context: &mut Context, waits: i32) -> Result<i32, Fault> {
    let request = context.exchange.request()?;
    let response = context.exchange.outer_response()?;
    let progress = response.progress;
    let has_length = || response.headers.iter().any(|(name, _)| name == "content-length");
    context.reply.number = if progress.is_gone {
        GONE
    } else if !request.is_1_1 && !has_length() {
        // The end of the connection would be the end of the body.
        BUFFERED
    } else if !request.may_stream {
        FLUSHED
    } else {
        response.is_flushed = true;
        let has_unsent = progress.has_unsent || !progress.has_begun || !response.body.is_empty();
        let awaits_sent = waits != 0 && has_unsent;
        // Another light thread may wait for the same.
        response.awaits_sent |= awaits_sent;
        if awaits_sent { UNSENT } else { FLUSHED }
    };
    Ok(YES)
}

/// Whether the client has gone, so that nothing can be sent any more.
pub(super) fn response_gone(context: &mut Context) -> Result<i32, Fault> {
    Ok(if context.exchange.outer_response()?.progress.is_gone { YES } else { NO })
}

/// The response is complete, whatever becomes of the handler.
pub(super) fn response_complete(context: &mut Context) -> Result<i32, Fault> {
    context.exchange.response()?.is_complete = true;
    Ok(YES)
}

/// The response is complete, and says itself that the handler has failed.
pub(super) fn response_tells_failure(context: &mut Context) -> Result<i32, Fault> {
    context.exchange.outer_response()?.tells_failure = true;
    Ok(YES)
}

/// There is to be no response, and no connection any more.
pub(super) fn response_drop(context: &mut Context) -> Result<i32, Fault> {
    context.exchange.response()?.is_dropped = true;
    Ok(YES)
}

/// How long the body is by now, as the reply's number.
pub(super) fn response_len(context: &mut Context) -> Result<i32, Fault> {
    let response = context.exchange.response()?;
    context.reply.number = response.progress.taken_len as f64 + response.body.len() as f64;
    Ok(YES)
}

/// Drops what the body of a response within the response has.
pub(super) fn response_forget(context: &mut Context) -> Result<i32, Fault> {
    context.exchange.outer_response()?.nested.forget_body();
    Ok(YES)
}

/// Begins a response within the response, which is written from here on; its place is the reply's number.
pub(super) fn response_nest(context: &mut Context) -> Result<i32, Fault> {
    let nested = &mut context.exchange.outer_response()?.nested;
    let Some(place) = nested.begin() else {
        return Err(Fault::Refused("a request has too many requests within it".to_owned()));
    };
    nested.select(place);
    context.reply.number = place as f64;
    Ok(YES)
}

/// From here on the response at that place is written; 0 is the one around all others.
pub(super) fn response_select(context: &mut Context, place: i32) -> Result<i32, Fault> {
    let place = usize::try_from(place).unwrap_or(0);
    context.exchange.outer_response()?.nested.select(place);
    Ok(YES)
}

/// Ends a response within the response; its body is the reply's data.
pub(super) fn response_unnest(context: &mut Context, place: i32) -> Result<i32, Fault> {
    let place = usize::try_from(place).unwrap_or(0);
    let nested = context.exchange.outer_response()?.nested.end(place).unwrap_or_default();
    Ok(context.answer(|out| out.extend_from_slice(&nested.body)))
}

/// The number of the handler that was the last to wait. No two have the same one, whatever virtual machine they are of.
static LAST_SLOT: AtomicU64 = AtomicU64::new(0);

/// The time since the first of these calls in milliseconds, as the reply's number.
pub(super) fn clock(context: &mut Context) -> Result<i32, Fault> {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    context.reply.number = START.elapsed().as_secs_f64() * 1000.0;
    Ok(YES)
}

/// Whether the handler may wait.
pub(super) fn may_wait(context: &mut Context) -> Result<i32, Fault> {
    Ok(if context.exchange.request()?.may_wait { YES } else { NO })
}

/// The handler waits for so many milliseconds; the reply's number is that by which it is resumed.
pub(super) fn wait(context: &mut Context, time_ms: f64) -> Result<i32, Fault> {
    if !context.exchange.request()?.may_wait {
        return Err(Fault::Refused(
            "nothing waits here: a handler that writes is a transaction, for which all others would wait".to_owned(),
        ));
    }
    let slot = LAST_SLOT.fetch_add(1, Relaxed) + 1;
    let time = Duration::try_from_secs_f64(time_ms.max(0.0) / 1000.0).unwrap_or(Duration::MAX);
    context.exchange.outer_response()?.waiting = Some(Waiting { slot, time });
    context.reply.number = slot as f64;
    Ok(YES)
}
