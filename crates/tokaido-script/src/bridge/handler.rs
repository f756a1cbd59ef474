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
use crate::{HttpResponse, Waiting};

/// Maximum depth of requests within requests.
const NESTED_MAX: usize = 20;

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

/// The minor number of the request's version of HTTP/1, as the reply's number, and when it began, in milliseconds since 1970, as its flags.
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

/// From here on the response cannot be another one: a failure breaks the connection off.
pub(super) fn response_sent(context: &mut Context, status: i32) -> Result<i32, Fault> {
    let response = context.exchange.response()?;
    response.status = status as u16;
    response.is_sent = true;
    Ok(YES)
}

/// The response is complete, whatever becomes of the handler.
pub(super) fn response_complete(context: &mut Context) -> Result<i32, Fault> {
    context.exchange.response()?.is_complete = true;
    Ok(YES)
}

/// There is to be no response, and no connection any more.
pub(super) fn response_drop(context: &mut Context) -> Result<i32, Fault> {
    context.exchange.response()?.is_dropped = true;
    Ok(YES)
}

/// How long the body is by now, as the reply's number.
pub(super) fn response_len(context: &mut Context) -> Result<i32, Fault> {
    context.reply.number = context.exchange.response()?.body.len() as f64;
    Ok(YES)
}

/// Drops what the body has.
pub(super) fn response_forget(context: &mut Context) -> Result<i32, Fault> {
    context.exchange.response()?.body.clear();
    Ok(YES)
}

/// Begins a response within the response.
pub(super) fn response_nest(context: &mut Context) -> Result<i32, Fault> {
    let response = context.exchange.outer_response()?;
    if response.nested.len() == NESTED_MAX {
        return Err(Fault::Refused(format!(
            "requests have called each other more than {NESTED_MAX} deep"
        )));
    }
    response.nested.push(HttpResponse::default());
    Ok(YES)
}

/// Ends the innermost response, whose body is the reply's data.
pub(super) fn response_unnest(context: &mut Context) -> Result<i32, Fault> {
    let response = context.exchange.outer_response()?;
    let nested = response.nested.pop().unwrap_or_default();
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
