//! The request and the response of the running HTTP call.

use tokaido_script::{Fault, HttpRequest, HttpResponse, Value, percent};

use crate::{
    context::{Context, encode},
    items::{self, Argument},
    operation::Operation,
};

/// Borrowed from `call_http` while it runs.
#[derive(Default)]
pub(crate) struct Exchange {
    request: Option<*const HttpRequest<'static>>,
    response: Option<*mut HttpResponse>,
}

impl Exchange {
    /// Lends request and response to the operations.
    ///
    /// # Safety
    /// Both must live, and the response must not be used in any other way, until [`end`](Self::end).
    pub(crate) unsafe fn begin(&mut self, request: &HttpRequest<'_>, response: &mut HttpResponse) {
        self.request = Some(std::ptr::from_ref(request).cast());
        self.response = Some(response);
    }

    /// Takes both back.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }

    fn request<'r>(&self) -> Result<&'r HttpRequest<'r>, Fault> {
        let request = self.request.ok_or_else(over)?;
        // SAFETY: `begin` was promised that it lives until `end`, and each operation drops it when it returns.
        Ok(unsafe { &*request.cast() })
    }

    fn response<'r>(&self) -> Result<&'r mut HttpResponse, Fault> {
        let response = self.response.ok_or_else(over)?;
        // SAFETY: as in `request`; nothing else uses it until `end`.
        Ok(unsafe { &mut *response })
    }
}

fn over() -> Fault {
    Fault::refused("this request is over; read it while its handler runs")
}

/// Operations on the request and the response.
pub(crate) fn run(
    context: &mut Context,
    operation: Operation,
    arguments: &[Argument<'_>],
) -> Result<(), Fault> {
    let (request, response) = (context.exchange.request()?, context.exchange.response()?);
    match operation {
        Operation::RequestField => {
            let field = arguments[0].integer("a field")?;
            match plain_field(request, field) {
                Some(text) => context.answer.push(items::bytes(text)),
                None => made_field(context, request, field),
            }
        }
        Operation::RequestPairs => {
            let kind = arguments[0].integer("a kind")?;
            let pairs = pairs_of(request, kind, context.limits.query_pairs_max);
            context.answer_value(Value::Array(pairs));
        }
        Operation::HeaderSet => {
            let name = arguments[0].text("the name of a header")?;
            let value = arguments[1].text("the value of a header")?;
            response.set_header(&name, &value, arguments[2].is_true(), &context.limits)?;
        }
        Operation::HeaderGet => {
            if let Some(value) = response.header(&arguments[0].text("the name of a header")?)? {
                context.answer.push(items::bytes(value));
            }
        }
        Operation::Write => response.append(&[&arguments[0].text("a text")?], &context.limits)?,
        Operation::Respond => {
            response.append(&[&arguments[1].text("a body")?], &context.limits)?;
            response.set_type("text/plain; charset=utf-8");
            response.status = status_of(arguments[0].integer("a status")?)?;
        }
        Operation::RespondBare => {
            response.append(&[&arguments[1].text("a body")?], &context.limits)?;
            response.status = status_of(arguments[0].integer("a status")?)?;
        }
        _ => {
            let Value::Array(given) = context.gathering.take() else { return Ok(()) };
            let [Value::Integer(status), body] = &given[..] else { return Ok(()) };
            response.append(&[&encode(body)?], &context.limits)?;
            response.set_type("application/json");
            response.status = status_of(*status)?;
        }
    }
    Ok(())
}

/// A field of a request, unchanged.
fn plain_field<'r>(request: &HttpRequest<'r>, field: i64) -> Option<&'r [u8]> {
    Some(match field {
        0 => request.method.as_bytes(),
        1 => request.path.as_bytes(),
        2 => request.query.as_bytes(),
        3 => request.body,
        4 => request.target.as_bytes(),
        _ => return None,
    })
}

/// A field that is derived from a request: the protocol, the addresses and ports of client and
/// server, the time when it arrived in ms, and the path, decoded if possible.
fn made_field(context: &mut Context, request: &HttpRequest<'_>, field: i64) {
    let address = if field < 8 { request.client } else { request.server };
    match field {
        5 => {
            let protocol = if request.is_1_1 { "HTTP/1.1" } else { "HTTP/1.0" };
            context.answer_bytes(protocol.into());
        }
        6 | 8 => {
            let ip = address.map(|address| address.ip().to_string());
            context.answer_bytes(ip.unwrap_or_default().into_bytes());
        }
        7 | 9 => {
            context.answer.push(items::integer(address.map_or(0, |a| i64::from(a.port()))));
        }
        10 => context.answer.push(items::number(request.began_ms)),
        _ => {
            let decoded = percent::decode(request.path);
            let path = decoded.map_or_else(|| request.path.into(), std::borrow::Cow::into_owned);
            context.answer_bytes(path);
        }
    }
}

fn status_of(status: i64) -> Result<u16, Fault> {
    u16::try_from(status).map_err(|_| Fault::refused("a status is an integer from 200 to 599"))
}

fn pairs_of(request: &HttpRequest<'_>, kind: i64, query_pairs_max: usize) -> Vec<Value> {
    let pair = |name: &[u8], value: &[u8]| {
        Value::Array(vec![Value::String(name.to_vec()), Value::String(value.to_vec())])
    };
    match kind {
        0 => request.parameters.iter().map(|(n, v)| pair(n.as_bytes(), v.as_bytes())).collect(),
        1 => percent::query_pairs(request.query)
            .take(query_pairs_max)
            .map(|(name, value)| pair(&name, &value))
            .collect(),
        _ => request.headers.iter().map(|(name, value)| pair(name.as_bytes(), value)).collect(),
    }
}
