//! The routes that procedures declare.

use std::{borrow::Cow, net::SocketAddr, rc::Rc, sync::Arc, time::SystemTime};

use hyper::{
    Method, Response, StatusCode, Version,
    body::Bytes,
    header::{self, HeaderName, HeaderValue},
    http::{request::Parts, uri::PathAndQuery},
};
use tokaido_script::{CallError, HttpRequest, HttpResponse, ProcedureId, Sockets, Transaction};

use super::{
    body::{Reply, Unanswered},
    error::{HttpError, allowed},
    exchange::Exchange,
    kyoto::Caller,
    router::Found,
    suspended::Suspended,
    wait::Wait,
};
use crate::{
    Shared,
    access::Principal,
    connection::Connection,
    placement::{Place, Placement},
    procedures::Procedures,
    program::Program,
    read_context::ReadContext,
    redis::{Message, ScriptCommands},
    sockets::RequestSockets,
    timers,
    worker::Worker,
};

/// What `:name` and `*name` of a route matched.
type Parameters<'p> = Vec<(&'p str, Cow<'p, str>)>;

/// Where a request comes from, and when it arrived.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    client: Option<SocketAddr>,
    server: Option<SocketAddr>,
    began_ms: f64,
}

impl Arrival {
    fn of(connection: &Connection) -> Self {
        let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            client: connection.peer.tcp(),
            server: connection.local_tcp(),
            began_ms: began.map_or(0.0, |began| began.as_secs_f64() * 1000.0),
        }
    }
}

/// Finds the procedure that answers a request.
pub(super) fn find<'p>(
    shared: &Shared,
    program: &'p Program,
    parts: &'p Parts,
) -> Result<(ProcedureId, Parameters<'p>), HttpError> {
    match program.router().find(parts.method.as_str(), parts.uri.path()) {
        Found::Procedure(procedure, parameters) => Ok((procedure, parameters)),
        Found::OtherMethods(methods) => Err(HttpError::method(&methods)),
        Found::BadPath => {
            Err(HttpError::bad_request("the path is not UTF-8 under its percent-encoding"))
        }
        Found::Nothing => {
            Err(HttpError::not_found(match shared.program.loading().unknown_routes() {
                None => {
                    let hint = "records are below /v1/db/, procedures below /v1/call/";
                    format!("nothing answers this path; {hint}")
                }
                Some(unknown) => format!("nothing answers this path; {unknown}"),
            }))
        }
    }
}

/// The methods that a path is known for, if the requested one is not among them.
pub(super) fn methods(program: &Program, parts: &Parts) -> Option<String> {
    match program.router().find(parts.method.as_str(), parts.uri.path()) {
        Found::OtherMethods(methods) => Some(allowed(&methods)),
        _ => None,
    }
}

/// Calls the procedure where its mode and its history say, and answers with its response.
pub(super) async fn answer(
    caller: &Caller<'_>,
    exchange: &Rc<Exchange>,
    parts: &Parts,
    body: Bytes,
) -> Result<Response<Reply>, HttpError> {
    let (worker, principal) = (caller.worker, caller.principal.clone());
    let arrival = Arrival::of(caller.connection);
    let program = worker.program();
    let (id, parameters) = find(&worker.service.shared, &program, parts)?;
    let placement = Placement::http(worker);
    let place = Place::of_procedure(&worker.service.shared, &program, id);
    let shared = &worker.service.shared;
    let result = if place == Place::Worker {
        let asked = Asked { shared, principal: &principal, parts, body: &body, arrival };
        match on_worker(worker, &program, (id, &parameters), asked) {
            Ok((given, sockets)) => match given.waiting {
                Some(waiting) => {
                    let owned = |(name, value): &(&str, Cow<'_, str>)| {
                        ((*name).to_owned(), value.to_string())
                    };
                    let suspended = Suspended {
                        worker: worker.clone(),
                        wait: Wait::new(worker, program.generation(), id, waiting),
                        program: program.clone(),
                        id,
                        parameters: parameters.iter().map(owned).collect(),
                        principal,
                        parts: parts.clone(),
                        body,
                        arrival,
                        sockets,
                    };
                    suspended.answer(given, exchange).await
                }
                None => to_response(given)
                    .map_err(|message| failed_response(worker, &program, id, message)),
            },
            Err(error) => Err(error),
        }
    } else {
        let (shared, parts) = (Arc::clone(shared), parts.clone());
        let find_and_call = move |procedures: &mut Procedures<'_>, transaction: Transaction<'_>| {
            let found = find(&shared, procedures.program(), &parts)?;
            if !procedures.fits(found.0, &transaction) {
                return Ok(None);
            }
            let (shared, principal, parts) = (&*shared, &principal, &parts);
            let asked = Asked { shared, principal, parts, body: &body, arrival };
            call(asked, procedures, found, transaction).map(Some)
        };
        placement.procedure(place, find_and_call).await
    };
    result.map_err(|error| {
        let error = error.of_call(&program, id).of_route();
        if program.get(id).is_of_worker { error.of_handler() } else { error }
    })
}

/// A request, for as long as it takes to answer it.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) shared: &'a Shared,
    pub(super) principal: &'a Principal,
    pub(super) parts: &'a Parts,
    pub(super) body: &'a [u8],
    pub(super) arrival: Arrival,
}

/// Whether to call a handler or to resume it.
pub(super) enum Step {
    Begin,
    Resume { slot: u64, so_far: HttpResponse },
}

/// Calls the procedure on the worker, until it is done or waits.
fn on_worker(
    worker: &Rc<Worker>,
    program: &Program,
    found: (ProcedureId, &Parameters<'_>),
    asked: Asked<'_>,
) -> Result<(HttpResponse, RequestSockets), HttpError> {
    let mut sockets = RequestSockets::new(&worker.sockets);
    let given = Placement::http(worker).here(|context| {
        // Nothing has come in between: the worker still has the program that the id belongs to.
        let transaction = Transaction::Read(&mut *context.snapshot);
        let procedures = &mut context.program.procedures();
        let (given, messages) =
            asked.run(procedures, found, transaction, Step::Begin, Some(&mut sockets))?;
        asked.shared.channels.publish_all(&messages);
        if given.waiting.is_some() {
            context.program.begin_wait();
        }
        Ok::<_, HttpError>(given)
    });
    timers::start(worker, program.generation(), asked.principal);
    Ok((given??, sockets))
}

/// The error to answer with in place of an invalid response.
pub(super) fn failed_response(
    worker: &Worker,
    program: &Program,
    id: ProcedureId,
    message: String,
) -> HttpError {
    let failed = |context: &mut ReadContext| {
        let procedures = context.program.waiting_procedures(program.generation());
        procedures.failed(id, CallError::Value { message })
    };
    Placement::http(worker).here(failed).map_or_else(HttpError::from, HttpError::from)
}

/// Calls the procedure, and makes a response of its result: within the transaction, so that
/// no write is committed whose answer cannot be given.
fn call(
    asked: Asked<'_>,
    procedures: &mut Procedures<'_>,
    (id, parameters): (ProcedureId, Parameters<'_>),
    transaction: Transaction<'_>,
) -> Result<(Response<Reply>, Vec<Message>), HttpError> {
    let found = (id, &parameters);
    let (given, messages) = asked.run(procedures, found, transaction, Step::Begin, None)?;
    let response = to_response(given);
    let failed = |message| procedures.failed(id, CallError::Value { message });
    Ok((response.map_err(failed)?, messages))
}

impl Asked<'_> {
    /// Runs the handler until it is done or waits, which it may only do if it has sockets.
    pub(super) fn run(
        &self,
        procedures: &mut Procedures<'_>,
        (id, parameters): (ProcedureId, &Parameters<'_>),
        transaction: Transaction<'_>,
        step: Step,
        sockets: Option<&mut RequestSockets>,
    ) -> Result<(HttpResponse, Vec<Message>), HttpError> {
        let Self { shared, principal, parts, body, arrival } = *self;
        let name = &procedures.get(id).name;
        let commands = ScriptCommands::for_call(shared, principal, shared.main_selected(), name)?;
        let may_wait = sockets.is_some();
        let mut commands =
            commands.with_sockets(sockets.map(|sockets| sockets as &mut dyn Sockets));
        let parameters: Vec<_> =
            parameters.iter().map(|(name, value)| (*name, value.as_ref())).collect();
        let headers: Vec<_> =
            parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let request = HttpRequest {
            method: parts.method.as_str(),
            path: parts.uri.path(),
            query: parts.uri.query().unwrap_or_default(),
            parameters: &parameters,
            headers: &headers,
            body,
            is_1_1: parts.version == Version::HTTP_11,
            client: arrival.client,
            server: arrival.server,
            began_ms: arrival.began_ms,
            may_wait,
            may_stream: may_wait && parts.method != Method::HEAD,
            target: parts.uri.path_and_query().map_or("/", PathAndQuery::as_str),
        };
        let scope = commands.in_transaction(transaction);
        let called = match step {
            Step::Begin => procedures.call_http(id, scope, &request),
            Step::Resume { slot, so_far } => {
                procedures.resume_http(id, slot, scope, &request, so_far)
            }
        };
        let given = match called {
            Ok(given) => given,
            // A failure after the end of an answer is only logged; in a transaction, it undoes all.
            Err((_, Some(complete))) if complete.is_complete && may_wait => *complete,
            Err((failure, unfinished)) => {
                let error = HttpError::from(failure);
                let is_whole = unfinished.as_ref().is_some_and(|given| given.tells_failure);
                return Err(match unfinished.map(|given| to_response(*given)) {
                    Some(Ok(response)) if is_whole => error.after(response),
                    Some(Ok(response)) => error.after(response.map(Reply::broken_off)),
                    _ => error,
                });
            }
        };
        Ok((given, commands.into_messages()))
    }
}

/// The procedure's response for hyper, or why it cannot be sent. Lengths and framing are left to
/// hyper.
pub(super) fn to_response(given: HttpResponse) -> Result<Response<Reply>, String> {
    if given.is_dropped {
        let mut response = Response::new(Reply::default());
        response.extensions_mut().insert(Unanswered);
        return Ok(response);
    }
    let mut response = Response::new(Reply::from(given.body));
    *response.status_mut() = StatusCode::from_u16(given.status)
        .map_err(|_| format!("the procedure gave the status {}", given.status))?;
    let headers = response.headers_mut();
    for (name, value) in given.headers {
        let (Ok(header), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_maybe_shared(Bytes::from(value)),
        ) else {
            return Err(format!("the procedure gave a header {name:?} that none can be"));
        };
        if header != header::CONTENT_LENGTH && header != header::TRANSFER_ENCODING {
            headers.append(header, value);
        }
    }
    Ok(response)
}
