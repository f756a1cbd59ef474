//! The routes that procedures declare.

use std::{borrow::Cow, rc::Rc, sync::Arc};

use hyper::{
    Response, StatusCode,
    body::Bytes,
    header::{self, HeaderName, HeaderValue},
    http::request::Parts,
};
use tokaido_script::{CallError, HttpRequest, HttpResponse, Mode, ProcedureId, Transaction, Vm};
use tokaido_store::transact;

use super::{body::Reply, error::HttpError};
use crate::{metrics, procedures::Procedures, worker::Worker};

/// A route with what its `:name` and `*name` matched.
pub(super) struct Matched<'p> {
    pub(super) procedure: ProcedureId,
    pub(super) parameters: Vec<(&'p str, Cow<'p, str>)>,
}

/// Calls the procedure where its mode and its past say, and answers with what it gives.
pub(super) async fn answer(
    worker: &Rc<Worker>,
    parts: &Parts,
    matched: Matched<'_>,
    body: Bytes,
) -> Result<Response<Reply>, HttpError> {
    let procedures = &worker.service.shared.procedures;
    let Matched { procedure: id, parameters } = matched;
    let mode = procedures.get(id).map_or(Mode::Read, |p| p.mode);
    let result = if mode == Mode::Read && procedures.runs_inline(id) {
        metrics::add(&worker.counters.http.local, 1);
        worker.read(|snapshot, vm| {
            call(procedures, vm, id, Transaction::Read(snapshot), parts, &parameters, &body)
                .map_err(HttpError::from)
        })?
    } else {
        let call = Call::new(procedures.clone(), id, parts.clone(), parameters, body);
        if mode == Mode::Write {
            metrics::add(&worker.counters.http.writer, 1);
            let result = worker.writer.call(move |context| {
                let vm = &mut context.vm;
                transact(&mut context.writer, |tx| call.run(vm, Transaction::Write(tx)))
            });
            result.await?.map_err(HttpError::from)
        } else {
            metrics::add(&worker.counters.http.pool, 1);
            let result = worker.pool.call(move |context| {
                call.run(&mut context.vm, Transaction::Read(&mut *context.snapshot))
            });
            result.await?.map_err(HttpError::from)
        }
    };
    result.and_then(to_response).map_err(|error| {
        let name = procedures.get(id).map(|p| p.name.as_str());
        if error.is_of_server() {
            tracing::warn!(procedure = name, ?error, "a route failed");
        }
        error.of_route()
    })
}

/// A call that owns what it needs, for its way to another thread.
struct Call {
    procedures: Arc<Procedures>,
    id: ProcedureId,
    parts: Parts,
    parameters: Vec<(String, String)>,
    body: Bytes,
}

impl Call {
    fn new(
        procedures: Arc<Procedures>,
        id: ProcedureId,
        parts: Parts,
        parameters: Vec<(&str, Cow<'_, str>)>,
        body: Bytes,
    ) -> Self {
        let parameters = parameters
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into_owned()))
            .collect();
        Self { procedures, id, parts, parameters, body }
    }

    fn run(&self, vm: &mut Vm, transaction: Transaction<'_>) -> Result<HttpResponse, CallError> {
        let (parts, body) = (&self.parts, &self.body);
        call(&self.procedures, vm, self.id, transaction, parts, &self.parameters, body)
    }
}

fn call(
    procedures: &Procedures,
    vm: &mut Vm,
    id: ProcedureId,
    transaction: Transaction<'_>,
    parts: &Parts,
    parameters: &[(impl AsRef<str>, impl AsRef<str>)],
    body: &[u8],
) -> Result<HttpResponse, CallError> {
    let parameters: Vec<_> =
        parameters.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect();
    let headers: Vec<_> =
        parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let request = HttpRequest {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or_default(),
        parameters: &parameters,
        headers: &headers,
        body,
    };
    let mut response = HttpResponse::default();
    procedures.timed(id, || vm.call_http(id, transaction, &request, &mut response))?;
    Ok(response)
}

/// What the procedure gave, as hyper sends it. Lengths and framing are hyper's.
fn to_response(given: HttpResponse) -> Result<Response<Reply>, HttpError> {
    let wrong = |what: String| HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, what);
    let mut response = Response::new(Reply::from(given.body));
    *response.status_mut() = StatusCode::from_u16(given.status)
        .map_err(|_| wrong(format!("the procedure gave the status {}", given.status)))?;
    let headers = response.headers_mut();
    for (name, value) in given.headers {
        let (Ok(header), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_maybe_shared(Bytes::from(value)),
        ) else {
            return Err(wrong(format!("the procedure gave a header {name:?} that none can be")));
        };
        if header != header::CONTENT_LENGTH && header != header::TRANSFER_ENCODING {
            headers.append(header, value);
        }
    }
    Ok(response)
}
