//! What OpenResty handlers do with request and response beyond what native handlers do.

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

/// The minor version of the request's HTTP/1, as the reply's number, and when the request began, in milliseconds
/// since 1970, as its flags.
pub(super) fn request_line(context: &mut Context) -> Result<i32, Fault> {
    let request = context.exchange.request()?;
    context.reply.number = f64::from(request.is_1_1);
    context.reply.flags = request.began_ms;
    Ok(YES)
}

/// The first header of that name, which is given in lower case.
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

/// The header at that place among those of that name.
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

/// From here on the response cannot be replaced: a failure breaks off the connection. The reply's number is 1 if the
/// response has no body, whatever is written.
pub(super) fn response_sent(context: &mut Context, status: i32) -> Result<i32, Fault> {
    let response = context.exchange.response()?;
    response.status = status as u16;
    response.is_sent = true;
    let is_nested = context.exchange.outer_response()?.nested.is_current();
    let is_head = !is_nested && context.exchange.request()?.method == "HEAD";
    context.reply.number = f64::from(is_head || matches!(status, 204 | 304));
    Ok(YES)
}

/// The result of a flush; `lua/ngx/output.lua` has the same numbers.
const FLUSHED: f64 = 0.0;
const UNSENT: f64 = 1.0;
const GONE: f64 = 2.0;
const BUFFERED: f64 = 3.0;

/// Requests that the response so far is sent while the handler waits. The reply's number is the result; if `waits` is
/// not 0, the handler is about to wait as long as something is unsent.
pub(super) fn response_flush(context: &mut Context, waits: i32) -> Result<i32, Fault> {
    let request = context.exchange.request()?;
    let response = context.exchange.outer_response()?;
    let progress = response.progress;
    let has_length = || response.headers.iter().any(|(name, _)| name == "content-length");
    context.reply.number = if progress.is_gone {
        GONE
    } else if !request.is_1_1 && !has_length() {
        // The body would end where the connection does.
        BUFFERED
    } else if !request.may_stream {
        FLUSHED
    } else {
        response.is_flushed = true;
        let has_unsent = progress.has_unsent || !progress.has_begun || !response.body.is_empty();
        let awaits_sent = waits != 0 && has_unsent;
        // Another light thread may wait for the same thing.
        response.awaits_sent |= awaits_sent;
        if awaits_sent { UNSENT } else { FLUSHED }
    };
    Ok(YES)
}

/// Whether the client is gone, so that nothing can be sent any more.
pub(super) fn response_gone(context: &mut Context) -> Result<i32, Fault> {
    Ok(if context.exchange.outer_response()?.progress.is_gone { YES } else { NO })
}

/// The response is complete, whatever happens to the handler.
pub(super) fn response_complete(context: &mut Context) -> Result<i32, Fault> {
    context.exchange.response()?.is_complete = true;
    Ok(YES)
}

/// The response is complete, and itself reports that the handler has failed.
pub(super) fn response_tells_failure(context: &mut Context) -> Result<i32, Fault> {
    context.exchange.outer_response()?.tells_failure = true;
    Ok(YES)
}

/// There will be no response, and the connection is closed.
pub(super) fn response_drop(context: &mut Context) -> Result<i32, Fault> {
    context.exchange.response()?.is_dropped = true;
    Ok(YES)
}

/// The length of the body so far, as the reply's number.
pub(super) fn response_len(context: &mut Context) -> Result<i32, Fault> {
    let response = context.exchange.response()?;
    context.reply.number = response.progress.taken_len as f64 + response.body.len() as f64;
    Ok(YES)
}

/// Drops the body so far of a response within the response.
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

/// Selects the response to write from here on by its place; 0 is the outermost one.
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

/// The slot of the last handler that began to wait. Slots are unique across all virtual machines.
static LAST_SLOT: AtomicU64 = AtomicU64::new(0);

/// The milliseconds since the first of these calls, as the reply's number.
pub(super) fn clock(context: &mut Context) -> Result<i32, Fault> {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    context.reply.number = START.elapsed().as_secs_f64() * 1000.0;
    Ok(YES)
}

/// Whether the handler may wait.
pub(super) fn may_wait(context: &mut Context) -> Result<i32, Fault> {
    Ok(if context.exchange.request()?.may_wait { YES } else { NO })
}

/// The handler waits for that many milliseconds; the reply's number is the slot to resume it by.
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
