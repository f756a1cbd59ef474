//! Kyoto Tycoon over HTTP: procedures under `/rpc/`; and, on a port of its own, records under all
//! other paths, `/KEY` or `/DATABASE/KEY`.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use hyper::{
    HeaderMap, Method, Response, StatusCode,
    body::Bytes,
    header::{self, HeaderName, HeaderValue},
    http::request::Parts,
};
use tokaido_script::Transaction;
use tokaido_store::{DatabaseId, ReadTransaction, WriteTransaction};
use tokaido_wire::kyoto::{ContentType, Pairs, Procedure, Verb, columns};

use super::{body::Reply, error::HttpError, tyrant::Memory};
use crate::{
    access::{self, Keys, Permission, Principal},
    connection::Connection,
    kyoto::{
        Cursor, Cursors, Figure, Inputs, Kind, Refusal, Script, Work, allow_call,
        check_synchronize, named, report, rest, work,
    },
    placement::{Place, Placement},
    procedures::Procedures,
    selected::Selected,
    worker::Worker,
};

/// The prefix of procedure calls.
pub(super) const RPC: &str = "/rpc/";

const ERROR: HeaderName = HeaderName::from_static("x-kt-error");
const MODE: HeaderName = HeaderName::from_static("x-kt-mode");
const XT: HeaderName = HeaderName::from_static("x-kt-xt");

/// Who makes a request, and from where.
pub(super) struct Caller<'c> {
    pub(super) worker: &'c Rc<Worker>,
    pub(super) connection: &'c Connection,
    pub(super) principal: Principal,
    pub(super) cursors: &'c RefCell<Cursors>,
    pub(super) tyrant: &'c Memory,
}

/// Answers a call of a procedure; `None` is an unknown one.
pub(super) async fn call(
    caller: &Caller<'_>,
    procedure: Option<&'static Procedure>,
    parts: &Parts,
    body: &[u8],
) -> Response<Reply> {
    let outcome = match (procedure, inputs(caller, parts, body)) {
        (Some(procedure), Ok(inputs)) => match allow_call(&caller.principal, procedure, &inputs) {
            Ok(()) => caller.answer(procedure, inputs).await,
            Err(denied) => (Err(denied.into()), None),
        },
        (None, _) => {
            let name = parts.uri.path().strip_prefix(RPC).unwrap_or_default();
            let refusal = Refusal::new(Kind::NotImplemented, format!("not implemented: {name}"));
            (Err(refusal), None)
        }
        (_, Err(refusal)) => (Err(refusal), None),
    };
    let (outcome, signaled) = outcome;
    let (status, mut outputs) = match outcome {
        Ok(outputs) => (StatusCode::OK, outputs),
        Err(refusal) => {
            (status(refusal.kind), Pairs::from([(b"ERROR".to_vec(), refusal.message.into())]))
        }
    };
    if let Some(woken) = signaled {
        outputs.insert(b"SIGNALED".to_vec(), woken.to_string().into());
    }
    let (content_type, body) = columns::write(&outputs);
    let mut response = Response::new(Reply::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The status of a call that failed.
fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::Invalid => StatusCode::BAD_REQUEST,
        Kind::Forbidden => StatusCode::FORBIDDEN,
        Kind::Logic | Kind::Missing => logic(),
        Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        Kind::NotImplemented => StatusCode::NOT_IMPLEMENTED,
        Kind::TimedOut => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Kyoto Tycoon's own status for data that does not meet a call's conditions.
fn logic() -> StatusCode {
    StatusCode::from_u16(450).unwrap_or(StatusCode::CONFLICT)
}

/// The inputs of a call, from its target and its body.
fn inputs(caller: &Caller<'_>, parts: &Parts, body: &[u8]) -> Result<Inputs, Refusal> {
    let mut pairs = Pairs::new();
    columns::read_form(parts.uri.query().unwrap_or_default().as_bytes(), &mut pairs);
    let content_type = parts.headers.get(header::CONTENT_TYPE);
    if let Some(content_type) = content_type.and_then(|value| value.to_str().ok()) {
        let read = ContentType::parse(content_type).read(body, &mut pairs);
        read.map_err(|error| Refusal::new(Kind::Invalid, error.to_string()))?;
    }
    Ok(Inputs::new(pairs, caller.worker.service.config.limits.kyoto_reply_bytes_max))
}

impl Caller<'_> {
    fn placement(&self) -> Placement<'_> {
        Placement::http(self.worker)
    }

    /// Waits for the call's condition, does the call, and returns how many calls its signal woke.
    async fn answer(
        &self,
        procedure: &'static Procedure,
        inputs: Inputs,
    ) -> (Result<Pairs, Refusal>, Option<usize>) {
        let verb = procedure.verb;
        let state = &self.worker.service.shared.kyoto;
        let inputs = Arc::new(inputs);
        if let Err(refusal) = state.signals.wait(&inputs, || self.connection.is_stopping()).await {
            return (Err(refusal), None);
        }
        // The rules may have changed in the meantime.
        if let Err(denied) = allow_call(&self.principal, procedure, &inputs) {
            return (Err(denied.into()), None);
        }
        let (work, figure) = work(verb);
        let outcome = self.run(work, &inputs).await;
        let count = match verb {
            Verb::SetBulk | Verb::RemoveBulk | Verb::GetBulk => inputs.records().len(),
            _ => 1,
        };
        state.figures.add(figure, count);
        let miss = match figure {
            Figure::Set => Some(Figure::SetMisses),
            Figure::Get => Some(Figure::GetMisses),
            Figure::Remove => Some(Figure::RemoveMisses),
            _ => None,
        };
        if let (Err(_), Some(miss)) = (&outcome, miss) {
            state.figures.add(miss, count);
        }
        (outcome, state.signals.signal(&inputs))
    }

    async fn run(&self, work: Work, inputs: &Arc<Inputs>) -> Result<Pairs, Refusal> {
        let shared = &self.worker.service.shared;
        let given = Arc::clone(inputs);
        match work {
            Work::Answer(answer) => answer(inputs),
            Work::Read(read) => {
                let id = inputs.database(shared)?.id();
                self.placement().read(id, false, move |tx| read(&given, tx, id)).await?
            }
            Work::Search(search) => {
                let id = inputs.database(shared)?.id();
                self.placement().read(id, true, move |tx| search(&given, tx, id)).await?
            }
            Work::Write(write) => {
                let database = inputs.database(shared)?;
                self.write(database, move |tx, id| write(&given, tx, id)).await
            }
            Work::ReadAt(read) => {
                let (number, cursor) = self.cursor(inputs)?;
                let id = cursor.database.id();
                let read = move |tx: &mut dyn ReadTransaction| {
                    let mut cursor = cursor;
                    (read(&given, &mut cursor, tx, id), cursor)
                };
                // Where keys have no order, a step may have to look through many pages.
                let is_long = !shared.capabilities(id).is_ordered;
                let moved = self.placement().read(id, is_long, move |tx| read(tx)).await?;
                self.moved(number, moved)
            }
            Work::WriteAt(write) => {
                let (number, cursor) = self.cursor(inputs)?;
                // Whatever the outcome, the cursor may have moved; nothing is written after a refusal.
                let moved = self
                    .write(cursor.database.clone(), move |tx, id| {
                        let mut cursor = cursor.clone();
                        Ok((write(&given, &mut cursor, tx, id), cursor))
                    })
                    .await?;
                self.moved(number, moved)
            }
            Work::Forget => self.cursors.borrow_mut().delete(cursor_number(inputs)),
            Work::Report => {
                let (shared, metrics) =
                    (Arc::clone(shared), Arc::clone(&self.worker.service.metrics));
                let read = move |tx: &mut dyn ReadTransaction| report(&shared, &metrics, tx);
                self.placement().read(self.main(), false, move |tx| read(tx)).await?
            }
            Work::Synchronize => {
                check_synchronize(inputs)?;
                let database = inputs.database(shared)?;
                self.write(database, |_, _| Ok(Pairs::new())).await
            }
            Work::Script => self.play_script(inputs).await,
        }
    }

    fn main(&self) -> DatabaseId {
        self.worker.service.shared.main()
    }

    /// Runs `body` in a transaction, with the database's id there. It may run more than once.
    async fn write<T: Send + 'static>(
        &self,
        database: Selected,
        mut body: impl FnMut(&mut dyn WriteTransaction, DatabaseId) -> Result<T, Refusal>
        + Send
        + 'static,
    ) -> Result<T, Refusal> {
        let shared = Arc::clone(&self.worker.service.shared);
        self.placement()
            .write(database.id(), move |tx| {
                let id = database.open_in(tx, &shared)?;
                body(tx, id)
            })
            .await
    }

    /// The cursor that a call names.
    fn cursor(&self, inputs: &Inputs) -> Result<(i64, Cursor), Refusal> {
        let service = &self.worker.service;
        let number = cursor_number(inputs).ok_or_else(Refusal::no_cursor)?;
        let cursors_max = service.config.limits.kyoto_cursors_max;
        let database = inputs.database(&service.shared);
        let mut cursor = self.cursors.borrow_mut().get(number, database, cursors_max)?;
        cursor.database.look(&**service.shared.store());
        Ok((number, cursor))
    }

    /// Stores the cursor's new position.
    fn moved(
        &self,
        number: i64,
        (outcome, cursor): (Result<Pairs, Refusal>, Cursor),
    ) -> Result<Pairs, Refusal> {
        self.cursors.borrow_mut().put(number, cursor);
        outcome
    }

    async fn play_script(&self, inputs: &Inputs) -> Result<Pairs, Refusal> {
        let shared = Arc::clone(&self.worker.service.shared);
        let script = Script::new(self.principal.clone(), inputs.need("name")?, inputs.records());
        let program = self.worker.program();
        let id = script.find(&shared, &program)?;
        let place = Place::of_procedure(&shared, &program, id);
        let call = move |procedures: &mut Procedures<'_>, transaction: Transaction<'_>| {
            script.run(&shared, procedures, transaction)
        };
        let outcome: Result<Pairs, Refusal> = self.placement().procedure(place, call).await?;
        let outputs = outcome?;
        let named = |(name, value): (Vec<u8>, Vec<u8>)| ([b"_", &name[..]].concat(), value);
        Ok(outputs.into_iter().map(named).collect())
    }
}

/// The number of the cursor that a call names.
fn cursor_number(inputs: &Inputs) -> Option<i64> {
    let is_number = inputs.get("CUR")?.first()?.is_ascii_digit();
    inputs.integer("CUR").filter(|_| is_number)
}

/// Answers a REST request for a record.
pub(super) async fn record(
    caller: &Caller<'_>,
    parts: &Parts,
    body: Bytes,
) -> Result<Response<Reply>, HttpError> {
    let answered = match parts.method {
        Method::GET | Method::HEAD => get(caller, parts).await,
        Method::PUT => put(caller, parts, body).await,
        Method::DELETE => remove(caller, parts).await,
        _ => return Err(HttpError::method(&["DELETE", "GET", "HEAD", "PUT"])),
    };
    Ok(answered.unwrap_or_else(|refusal| {
        let mut response = Response::new(Reply::default());
        *response.status_mut() = match refusal.kind {
            // Kyoto Tycoon answers 450 when there is nothing to replace, too.
            Kind::Missing if parts.method != Method::PUT => StatusCode::NOT_FOUND,
            kind => status(kind),
        };
        if let Ok(message) = HeaderValue::from_str(&refusal.message) {
            response.headers_mut().insert(ERROR, message);
        }
        response
    }))
}

/// The database and the key that a path names.
fn locate(caller: &Caller<'_>, parts: &Parts) -> Result<(Selected, Vec<u8>), Refusal> {
    let path = parts.uri.path();
    let path = path.strip_prefix('/').unwrap_or(path);
    let (database, key) = path.split_once('/').unwrap_or(("", path));
    let key = key.strip_prefix('/').unwrap_or(key);
    let database = columns::unescape(database.as_bytes());
    let database = named(&caller.worker.service.shared, &database)?;
    Ok((database, columns::unescape(key.as_bytes())))
}

async fn get(caller: &Caller<'_>, parts: &Parts) -> Result<Response<Reply>, Refusal> {
    let (database, key) = locate(caller, parts)?;
    access::allow(&caller.principal, Permission::Read(Keys::One(&key)))?;
    let id = database.id();
    let found = caller.placement().read(id, false, move |tx| rest::get(tx, id, &key)).await??;
    let mut response = Response::new(Reply::from(found.value));
    let octets = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, octets);
    if let Some(at) = found.expires_at
        && let Ok(date) = HeaderValue::from_str(&httpdate::fmt_http_date(at))
    {
        response.headers_mut().insert(XT, date);
    }
    Ok(response)
}

async fn put(caller: &Caller<'_>, parts: &Parts, value: Bytes) -> Result<Response<Reply>, Refusal> {
    let (database, key) = locate(caller, parts)?;
    access::allow(&caller.principal, Permission::Write(Keys::One(&key)))?;
    let mode = rest::Mode::read(text(&parts.headers, &MODE));
    let xt = text(&parts.headers, &XT).map(rest::parse_time).transpose()?;
    caller.write(database, move |tx, id| rest::put(tx, id, &key, &value, mode, xt)).await?;
    let mut response = Response::new(Reply::default());
    *response.status_mut() = StatusCode::CREATED;
    if let Ok(path) = HeaderValue::from_str(parts.uri.path()) {
        response.headers_mut().insert(header::LOCATION, path);
    }
    Ok(response)
}

async fn remove(caller: &Caller<'_>, parts: &Parts) -> Result<Response<Reply>, Refusal> {
    let (database, key) = locate(caller, parts)?;
    access::allow(&caller.principal, Permission::Write(Keys::One(&key)))?;
    caller.write(database, move |tx, id| rest::remove(tx, id, &key)).await?;
    let mut response = Response::new(Reply::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
