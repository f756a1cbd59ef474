//! The request and the response of the running HTTP call.

use super::context::{Context, Fault, NO, YES};
pub(super) use crate::http::header_name;
use crate::{HttpRequest, HttpResponse, percent};

/// Kinds of body; `lua/http.lua` has the same.
const JSON: i32 = 2;
/// A body whose type only the handler sets, if at all.
const BARE: i32 = 3;

/// Borrowed from `call_http` while it runs.
#[derive(Default)]
pub(crate) struct Exchange {
    request: Option<*const HttpRequest<'static>>,
    response: Option<*mut HttpResponse>,
    /// The pairs that Lua is about to fetch.
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Exchange {
    /// Lends request and response to native functions.
    ///
    /// # Safety
    /// Both must live, and the response must not be used otherwise, until [`end`](Self::end).
    pub(crate) unsafe fn begin(&mut self, request: &HttpRequest<'_>, response: &mut HttpResponse) {
        self.request = Some(std::ptr::from_ref(request).cast());
        self.response = Some(response);
    }

    /// Takes both back.
    pub(crate) fn end(&mut self) {
        self.request = None;
        self.response = None;
    }

    /// Prepares pairs for Lua to fetch; gives how many there are.
    pub(super) fn set_pairs(&mut self, pairs: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> usize {
        self.pairs.clear();
        self.pairs.extend(pairs);
        self.pairs.len()
    }

    /// Whether code runs for a request or a timer.
    pub(super) fn is_running(&self) -> bool {
        self.request.is_some()
    }

    pub(super) fn request<'r>(&self) -> Result<&'r HttpRequest<'r>, Fault> {
        let request = self.request.ok_or_else(over)?;
        // SAFETY: `begin` was promised that it lives until `end`, and each native function drops the
        // reference before it returns.
        Ok(unsafe { &*request.cast() })
    }

    /// The response being written: that of the request itself, or of one within it.
    pub(super) fn response<'r>(&self) -> Result<&'r mut HttpResponse, Fault> {
        let response = self.outer_response()?;
        if !response.nested.is_current() {
            return Ok(response);
        }
        response.nested.current().ok_or_else(over)
    }

    /// The response to the request itself.
    pub(super) fn outer_response<'r>(&self) -> Result<&'r mut HttpResponse, Fault> {
        let response = self.response.ok_or_else(over)?;
        // SAFETY: as in `request`; nothing else uses it until `end`.
        Ok(unsafe { &mut *response })
    }
}

fn over() -> Fault {
    Fault::Refused("this request is over; read it while its handler runs".to_owned())
}

/// Method, path, query string, body, target, protocol or the client's address, as the reply's data; the port
/// as its number.
pub(super) fn request_field(context: &mut Context, field: i32) -> Result<i32, Fault> {
    let request = context.exchange.request()?;
    context.reply.number = request.server.map_or(0.0, |end| f64::from(end.port()));
    let text = match field {
        0 => request.method.as_bytes(),
        1 => request.path.as_bytes(),
        2 => request.query.as_bytes(),
        3 => request.body,
        4 => request.target.as_bytes(),
        5 if request.is_1_1 => b"HTTP/1.1",
        5 => b"HTTP/1.0",
        _ => {
            let peer = request.client.map(|end| end.ip().to_string()).unwrap_or_default();
            return Ok(context.answer(|out| out.extend_from_slice(peer.as_bytes())));
        }
    };
    context.reply.data(text);
    Ok(YES)
}

/// Prepares the parameters, the query, the headers or those of the response; gives how many there are.
pub(super) fn request_pairs(context: &mut Context, kind: i32) -> Result<i32, Fault> {
    let query_pairs_max = context.limits.query_pairs_max;
    let request = context.exchange.request()?;
    let response = context.exchange.response()?;
    let pairs = &mut context.exchange.pairs;
    pairs.clear();
    match kind {
        0 => {
            let parameters = request.parameters.iter();
            pairs.extend(parameters.map(|(name, value)| (owned(name), owned(value))));
        }
        1 => pairs.extend(percent::query_pairs(request.query).take(query_pairs_max)),
        2 => {
            let headers = request.headers.iter();
            pairs.extend(headers.map(|(name, value)| (owned(name), value.to_vec())));
        }
        _ => {
            let headers = response.headers.iter();
            pairs.extend(headers.map(|(name, value)| (owned(name), value.clone())));
        }
    }
    context.reply.number = pairs.len() as f64;
    Ok(YES)
}

fn owned(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// One of the pairs, as the reply's key and data.
pub(super) fn request_pair(context: &mut Context, place: i32) -> Result<i32, Fault> {
    let place = usize::try_from(place).unwrap_or(usize::MAX);
    let Some((name, value)) = context.exchange.pairs.get(place) else { return Ok(NO) };
    context.reply.key(name);
    context.reply.data(value);
    Ok(YES)
}

/// Sets a header, or adds another of the same name.
pub(super) fn response_header(
    context: &mut Context,
    name: &[u8],
    value: &[u8],
    add: i32,
) -> Result<i32, Fault> {
    let response = context.exchange.response()?;
    response.set_header(name, value, add != 0, &context.limits)?;
    Ok(YES)
}

/// The value of a header that was set before.
pub(super) fn response_header_get(context: &mut Context, name: &[u8]) -> Result<i32, Fault> {
    let response = context.exchange.response()?;
    match response.header(name)? {
        None => Ok(NO),
        Some(value) => {
            context.reply.data(value);
            Ok(YES)
        }
    }
}

/// Appends to the body.
pub(super) fn response_write(context: &mut Context, data: &[u8]) -> Result<i32, Fault> {
    write(context, &[data])
}

/// Appends to the body, followed by a line break.
pub(super) fn response_write_line(context: &mut Context, data: &[u8]) -> Result<i32, Fault> {
    write(context, &[data, b"\n"])
}

fn write(context: &mut Context, pieces: &[&[u8]]) -> Result<i32, Fault> {
    let len_max = context.limits.response_len_max;
    let nested = &mut context.exchange.outer_response()?.nested;
    if nested.is_current() && !nested.make_room(len_of(pieces), len_max) {
        return Err(Fault::Refused(format!(
            "the responses to requests within a request have at most {len_max} bytes together"
        )));
    }
    context.exchange.response()?.append(pieces, &context.limits)?;
    Ok(YES)
}

fn len_of(pieces: &[&[u8]]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

/// Drops the headers and the body of the response so far.
pub(super) fn response_clear(context: &mut Context) -> Result<i32, Fault> {
    context.exchange.response()?.clear();
    Ok(YES)
}

/// Ends the response: status, the rest of the body, and the content type if none was set.
pub(super) fn respond(
    context: &mut Context,
    status: i32,
    kind: i32,
    data: &[u8],
) -> Result<i32, Fault> {
    let response = context.exchange.response()?;
    response.append(&[data], &context.limits)?;
    response.status = status as u16;
    match kind {
        BARE => {}
        JSON => response.set_type("application/json"),
        _ => response.set_type("text/plain; charset=utf-8"),
    }
    Ok(YES)
}
