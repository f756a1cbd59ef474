//! Tokyo Tyrant over HTTP, on a port of its own: a record under each path; by POST, its
//! functions and the operator's procedures; and by OPTIONS, information about the server.

use std::{cell::RefCell, sync::Arc};

use hyper::{
    Method, Response, StatusCode,
    body::Bytes,
    header::{self, HeaderName, HeaderValue},
    http::request::Parts,
};
use tokaido_script::Transaction;
use tokaido_store::{DatabaseId, KeyIterator, ReadTransaction, WriteTransaction};
use tokaido_wire::{
    kyoto::columns::unescape,
    lenient::integer,
    tyrant::{COMMANDS, Verb},
};

use super::{body::Reply, error::HttpError, kyoto::Caller};
use crate::{
    access::{self, Permission},
    placement::{Place, Placement},
    procedures::Procedures,
    selected::Selected,
    tyrant::{
        self, Arguments, Door, ErrorCode, Figure, Misc, Refusal, Results, Script, Work, allow_misc,
        allow_verb,
    },
};

const MODE: HeaderName = HeaderName::from_static("x-tt-pdmode");
const PROCEDURE: HeaderName = HeaderName::from_static("x-tt-xname");
const FUNCTION: HeaderName = HeaderName::from_static("x-tt-mname");

/// The methods that are supported.
pub(super) const METHODS: [&str; 6] = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];

/// What is remembered about one connection.
#[derive(Default)]
pub(super) struct Memory {
    iterator: RefCell<KeyIterator>,
    /// The last error.
    error: RefCell<ErrorCode>,
}

/// The command of the binary protocol that a request stands for.
fn verb(parts: &Parts) -> Option<Verb> {
    Some(match parts.method {
        Method::GET => Verb::Get,
        Method::HEAD => Verb::Vsiz,
        Method::PUT => Verb::Put,
        Method::DELETE => Verb::Out,
        Method::OPTIONS => Verb::Stat,
        _ if parts.headers.contains_key(PROCEDURE) => Verb::Ext,
        _ if parts.headers.contains_key(FUNCTION) => Verb::Misc,
        _ => return None,
    })
}

/// A reply with one line of text.
fn text(status: StatusCode) -> Response<Reply> {
    let reason = status.canonical_reason().unwrap_or_default();
    let mut response = Response::new(Reply::from(format!("{reason}\n").into_bytes()));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

fn typed(content_type: &'static str, body: Vec<u8>) -> Response<Reply> {
    let mut response = Response::new(Reply::from(body));
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// Answers a request.
pub(super) async fn answer(
    caller: &Caller<'_>,
    parts: &Parts,
    body: Bytes,
) -> Result<Response<Reply>, HttpError> {
    let state = &caller.worker.service.shared.tyrant;
    let Some(verb) = verb(parts) else { return Ok(text(StatusCode::BAD_REQUEST)) };
    state.figures.count(Figure::Command(verb));
    if state.rights.forbid(verb, Door::Http) {
        return Ok(text(StatusCode::FORBIDDEN));
    }
    let given = Given { caller, parts, key: key(parts) };
    if let Some(command) = COMMANDS.get(verb as usize) {
        allow_verb(&caller.principal, (verb, command.effect), [&given.key[..]])?;
    }
    let answered = match verb {
        Verb::Get | Verb::Vsiz => given.get().await,
        Verb::Put => given.put(body).await,
        Verb::Out => given.out().await,
        Verb::Stat => given.stat().await,
        Verb::Ext => given.ext(&body).await,
        _ => given.misc(&body).await,
    };
    Ok(answered.unwrap_or_else(|refusal| {
        tracing::debug!(reason = refusal.reason, "a request over HTTP was refused");
        if let Some(miss) = Figure::miss(verb) {
            state.figures.count(miss);
        }
        *caller.tyrant.error.borrow_mut() = refusal.code;
        text(match (refusal.code, verb) {
            (ErrorCode::Missing, Verb::Get | Verb::Vsiz | Verb::Out) => StatusCode::NOT_FOUND,
            (ErrorCode::Exists, Verb::Put) => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        })
    }))
}

/// The key that a target names: everything after the slash.
fn key(parts: &Parts) -> Vec<u8> {
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    unescape(target.strip_prefix('/').unwrap_or(target).as_bytes())
}

/// A request, with its caller.
struct Given<'g> {
    caller: &'g Caller<'g>,
    parts: &'g Parts,
    key: Vec<u8>,
}

impl Given<'_> {
    fn placement(&self) -> Placement<'_> {
        Placement::http(self.caller.worker)
    }

    fn database(&self) -> Result<Selected, Refusal> {
        let shared = &self.caller.worker.service.shared;
        let selected = Selected::new(&**shared.store(), shared.tyrant.database());
        selected.map_err(|error| Refusal::invalid(error.to_string()))
    }

    fn has_table(&self) -> Result<bool, Refusal> {
        let id = self.database()?.id();
        Ok(self.caller.worker.service.shared.tables().has(id))
    }

    /// Runs `work` on a view of the database.
    async fn read<T: Send + 'static>(
        &self,
        is_long: bool,
        work: impl FnOnce(&mut dyn ReadTransaction, DatabaseId) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let id = self.database()?.id();
        self.placement().read(id, is_long, move |tx| work(tx, id)).await?
    }

    /// Runs `work` in a transaction. It may run more than once.
    async fn write<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut dyn WriteTransaction, DatabaseId) -> Result<T, Refusal>
        + Send
        + 'static,
    ) -> Result<T, Refusal> {
        let (shared, database) = (Arc::clone(&self.caller.worker.service.shared), self.database()?);
        self.placement()
            .write(database.id(), move |tx| {
                let id = database.open_in(tx, &shared)?;
                work(tx, id)
            })
            .await
    }

    async fn get(&self) -> Result<Response<Reply>, Refusal> {
        let key = self.key.clone();
        let get =
            move |tx: &mut dyn ReadTransaction, id| tyrant::get(tx, id, &key).map(<[u8]>::to_vec);
        Ok(typed("application/octet-stream", self.read(false, get).await?))
    }

    async fn put(&self, value: Bytes) -> Result<Response<Reply>, Refusal> {
        let key = self.key.clone();
        let mode = self.parts.headers.get(MODE).map_or(0, |mode| integer(mode.as_bytes()));
        let put = match mode {
            1 => tyrant::putkeep,
            2 if self.has_table()? => tyrant::putcat_row,
            2 => tyrant::putcat,
            _ => tyrant::put,
        };
        self.write(move |tx, id| put(tx, id, &key, &value)).await?;
        Ok(text(StatusCode::CREATED))
    }

    async fn out(&self) -> Result<Response<Reply>, Refusal> {
        let key = self.key.clone();
        self.write(move |tx, id| tyrant::out(tx, id, &key)).await?;
        Ok(text(StatusCode::OK))
    }

    async fn stat(&self) -> Result<Response<Reply>, Refusal> {
        let shared = Arc::clone(&self.caller.worker.service.shared);
        let rights = shared.tyrant.rights;
        let described = self.read(false, move |tx, id| tyrant::describe(&shared, tx, id)).await?;
        let mut response = Response::new(Reply::default());
        let methods = [
            ("GET", Verb::Get),
            ("HEAD", Verb::Vsiz),
            ("PUT", Verb::Put),
            ("POST", Verb::Ext),
            ("DELETE", Verb::Out),
        ];
        let allowed = methods.iter().filter(|(_, verb)| !rights.forbid(*verb, Door::Http));
        let allowed: Vec<_> =
            ["OPTIONS"].into_iter().chain(allowed.map(|(name, _)| *name)).collect();
        let headers = response.headers_mut();
        headers.extend(HeaderValue::from_str(&allowed.join(", ")).ok().map(|v| (header::ALLOW, v)));
        for (name, value) in described {
            let name = HeaderName::from_bytes(format!("x-tt-{name}").as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
                headers.insert(name, value);
            }
        }
        Ok(response)
    }

    async fn ext(&self, value: &[u8]) -> Result<Response<Reply>, Refusal> {
        let worker = self.caller.worker;
        let shared = Arc::clone(&worker.service.shared);
        let name = self.parts.headers.get(PROCEDURE).map_or(&b""[..], HeaderValue::as_bytes);
        if let Err(denied) = access::allow(&self.caller.principal, Permission::Call(name)) {
            tracing::debug!(reason = denied.message(), "a request over HTTP was refused");
            return Ok(text(StatusCode::FORBIDDEN));
        }
        let script = Script::new(self.caller.principal.clone(), name, &self.key, value);
        let program = worker.program();
        let id = script.find(&shared, &program)?;
        let place = Place::of_procedure(&shared, &program, id);
        let call = move |procedures: &mut Procedures<'_>, transaction: Transaction<'_>| {
            script.run(&shared, procedures, transaction)
        };
        let result: Result<Vec<u8>, Refusal> = self.placement().procedure(place, call).await?;
        Ok(typed("application/octet-stream", result?))
    }

    async fn misc(&self, body: &[u8]) -> Result<Response<Reply>, Refusal> {
        let rights = self.caller.worker.service.shared.tyrant.rights;
        let name = self.parts.headers.get(FUNCTION).map_or(&b""[..], HeaderValue::as_bytes);
        let values = values(body);
        let function = tyrant::find_misc(name, &arguments(&values), self.has_table()?)?;
        if let Err(denied) = allow_misc(&self.caller.principal, function, &arguments(&values)) {
            tracing::debug!(reason = denied.message(), "a request over HTTP was refused");
            return Ok(text(StatusCode::FORBIDDEN));
        }
        if rights.forbid(function.like, Door::Http) {
            return Ok(text(StatusCode::FORBIDDEN));
        }
        let results = self.call(function, values).await?;
        let mut reply = Vec::new();
        for (place, item) in (1..).zip(&results.items) {
            let separator = if place > 1 { "&" } else { "" };
            reply.extend_from_slice(format!("{separator}res{place}=").as_bytes());
            escape(item, &mut reply);
        }
        Ok(typed("application/x-www-form-urlencoded", reply))
    }

    /// Calls a function of `misc`.
    async fn call(&self, function: &Misc, values: Vec<Vec<u8>>) -> Result<Results, Refusal> {
        let bytes_max = self.caller.worker.service.config.limits.tyrant_reply_bytes_max;
        let fresh = move || Results::new(bytes_max);
        match function.work {
            Work::Read(read) | Work::Search(read) => {
                let is_long = matches!(function.work, Work::Search(_));
                let work = move |tx: &mut dyn ReadTransaction, id| {
                    let mut results = fresh();
                    read(&arguments(&values), tx, id, &mut results).map(|()| results)
                };
                self.read(is_long, work).await
            }
            Work::Write(write) => {
                let work = move |tx: &mut dyn WriteTransaction, id| {
                    let mut results = fresh();
                    write(&arguments(&values), tx, id, &mut results).map(|()| results)
                };
                self.write(work).await
            }
            Work::Iterate(iterate) => {
                let memory = &self.caller.tyrant.iterator;
                let mut iterator = memory.borrow().clone();
                let work = move |tx: &mut dyn ReadTransaction, id| {
                    let mut results = fresh();
                    let moved = iterate(&arguments(&values), &mut iterator, tx, id, &mut results);
                    Ok((moved.map(|()| results), iterator))
                };
                let (outcome, iterator) = self.read(false, work).await?;
                *memory.borrow_mut() = iterator;
                outcome
            }
            Work::Sync => self.write(move |_, _| Ok(fresh())).await,
            Work::Error => {
                let mut results = fresh();
                results.error(*self.caller.tyrant.error.borrow())?;
                Ok(results)
            }
            Work::Refuse(reason) => Err(Refusal::invalid(reason)),
        }
    }
}

/// Percent-encodes with upper-case digits, as Tokyo Tyrant does.
fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"_-.!~*'()".contains(&byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
}

fn arguments(values: &[Vec<u8>]) -> Arguments<'_> {
    Arguments::new(values.iter().map(Vec::as_slice))
}

/// The values of a form, in order; their names have no meaning.
fn values(body: &[u8]) -> Vec<Vec<u8>> {
    let fields = body.split(|&byte| byte == b'&').filter(|field| !field.is_empty());
    let value = |field: &[u8]| {
        let start = field.iter().position(|&byte| byte == b'=').map(|place| place + 1);
        unescape(start.map_or(&b""[..], |start| &field[start..]))
    };
    fields.map(value).collect()
}
