//! Dispatches a request to its endpoint.

use std::{borrow::Cow, rc::Rc};

use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body as _, Bytes, Incoming},
    header::{self, HeaderValue},
    http::request::Parts,
};

use tokaido_script::percent;
use tokaido_wire::kyoto::{Procedure, columns, find as find_procedure};

use super::{
    auth,
    body::{self, Reply},
    call,
    connection::too_late,
    error::{HttpError, allowed},
    exchange::{Exchange, Paths},
    kyoto::{self, Caller},
    listing, records, route, site, status, tyrant,
};
use crate::{
    access::{self, Denied, Keys, Permission, Principal},
    connection::{Connection, Phase},
    pause::Paused,
    transport::SocketAddress,
    worker::Worker,
};

/// Answers a request. It never fails: errors are answers, too.
pub(super) async fn answer(
    worker: &Rc<Worker>,
    connection: &Connection,
    exchange: &Rc<Exchange>,
    request: Request<Incoming>,
) -> Response<Reply> {
    let (parts, incoming) = request.into_parts();
    let has_body = !incoming.is_end_stream();
    let principal = auth::principal(worker.service.shared.users(), &parts);
    exchange.came_from(&principal, &worker.service.config.limits);
    let result = async {
        let endpoint = find(worker, connection, exchange, &principal, &parts, has_body)?;
        let body = read_body(worker, connection, exchange, &principal, incoming).await?;
        connection.enter(Phase::Working);
        if !endpoint.tells_of_the_server() {
            worker.service.shared.pause.until_over(Paused::All).await;
        }
        // The rules may have changed while the body arrived, or while requests were paused.
        endpoint.admit(&principal, &parts.method)?;
        let (cursors, tyrant) = (exchange.cursors(), exchange.tyrant());
        let caller = Caller { worker, connection, principal, cursors, tyrant };
        endpoint.answer(&caller, exchange, &parts, body).await
    };
    result.await.unwrap_or_else(HttpError::into_response)
}

/// Reads the whole body, as far as this client may send one. If the body is not read to its end,
/// the connection cannot go on.
async fn read_body(
    worker: &Worker,
    connection: &Connection,
    exchange: &Exchange,
    principal: &Principal,
    incoming: Incoming,
) -> Result<Bytes, HttpError> {
    let limits = &worker.service.config.limits;
    let bytes_max = match principal.is_anonymous() {
        false => limits.http_body_bytes_max,
        true => limits.http_body_bytes_max.min(limits.anonymous_request_bytes_max),
    };
    let read = body::read(incoming, bytes_max, exchange).await;
    read.map_err(|error| {
        let error = if connection.expired() == Some(Phase::Request) {
            exchange.tell_of_timeout();
            HttpError::new(StatusCode::REQUEST_TIMEOUT, too_late(limits.request_ms))
        } else {
            error
        };
        error.with_header(header::CONNECTION, "close")
    })
}

/// The prefix of the server's own API.
const API: &str = "/v1/";

/// The target of a request that is about the server as a whole.
const SERVER: &str = "*";

/// What a path stands for.
enum Endpoint<'p> {
    Health,
    /// Health with what it is made of.
    State,
    Metrics,
    Databases,
    Reload,
    Listing {
        database: &'p str,
    },
    /// The same path, for deletion.
    Database {
        database: &'p str,
    },
    Record {
        database: &'p str,
        key: &'p str,
    },
    Call {
        procedure: &'p str,
    },
    /// The answer lists what may be asked there.
    Options {
        allowed: String,
    },
    /// A procedure of Kyoto Tycoon, if there is one of that name.
    Rpc {
        procedure: Option<&'static Procedure>,
    },
    /// A Kyoto Tycoon record.
    KyotoRecord,
    /// A Tokyo Tyrant record or function.
    Tyrant,
    /// Whatever the program does with it.
    Route,
}

/// Finds the endpoint and checks that the client may go there, before the body is read.
fn find<'p>(
    worker: &Worker,
    connection: &Connection,
    exchange: &Exchange,
    principal: &Principal,
    parts: &'p Parts,
    has_body: bool,
) -> Result<Endpoint<'p>, HttpError> {
    let authority = site::authority(parts)?;
    if exchange.paths() != Paths::Own || is_own(parts.uri.path()) {
        // Browsers do not reach UNIX sockets by name.
        let is_named = matches!(connection.peer, SocketAddress::Tcp(_));
        site::check_own(is_named.then_some(&worker.service.hosts), authority, parts)?;
    }
    let found = match exchange.paths() {
        Paths::Own => locate(worker, parts, has_body),
        Paths::KyotoTycoon => locate_kyoto(parts),
        Paths::TokyoTyrant => only(parts, Endpoint::Tyrant, &tyrant::METHODS),
    };
    // An anonymous client must not learn which paths exist, either.
    match &found {
        Ok(found) => found.admit(principal, &parts.method)?,
        Err(_) => access::allow(principal, Permission::Session)?,
    }
    found
}

/// Whether the server answers a path itself. All others belong to the procedures, which also decide
/// who may call them.
fn is_own(path: &str) -> bool {
    path.starts_with(API)
        || path.starts_with(kyoto::RPC)
        || matches!(path, "/healthz" | "/metrics" | SERVER)
}

fn locate<'p>(
    worker: &Worker,
    parts: &'p Parts,
    has_body: bool,
) -> Result<Endpoint<'p>, HttpError> {
    let path = parts.uri.path();
    if path == SERVER {
        let methods = ["DELETE", "GET", "HEAD", "POST", "PUT"];
        return Ok(Endpoint::Options { allowed: allowed(&methods) });
    }
    if path == "/healthz" {
        let endpoint = match status::wants_state(parts.uri.query()) {
            true => Endpoint::State,
            false => Endpoint::Health,
        };
        return only(parts, endpoint, &["GET", "HEAD"]);
    }
    if path == "/metrics" {
        return only(parts, Endpoint::Metrics, &["GET", "HEAD"]);
    }
    if let Some(path) = path.strip_prefix(API) {
        return locate_api(parts, path);
    }
    if path.starts_with(kyoto::RPC) {
        return locate_kyoto(parts);
    }
    if parts.method == Method::OPTIONS
        && let Some(allowed) = route::methods(&worker.program(), parts)
    {
        return Ok(Endpoint::Options { allowed });
    }
    if has_body {
        route::find(&worker.service.shared, &worker.program(), parts)?;
    }
    Ok(Endpoint::Route)
}

/// What paths stand for on a port for Kyoto Tycoon alone.
fn locate_kyoto<'p>(parts: &Parts) -> Result<Endpoint<'p>, HttpError> {
    match parts.uri.path().strip_prefix(kyoto::RPC) {
        Some(name) => {
            let procedure = find_procedure(&columns::unescape(name.as_bytes()));
            only(parts, Endpoint::Rpc { procedure }, &["GET", "POST"])
        }
        None => only(parts, Endpoint::KyotoRecord, &["DELETE", "GET", "HEAD", "PUT"]),
    }
}

/// The endpoints below [`API`].
fn locate_api<'p>(parts: &Parts, path: &'p str) -> Result<Endpoint<'p>, HttpError> {
    if let Some(procedure) = path.strip_prefix("call/") {
        return only(parts, Endpoint::Call { procedure }, &["POST"]);
    }
    if path == "reload" {
        return only(parts, Endpoint::Reload, &["POST"]);
    }
    if matches!(path, "db" | "db/") {
        return only(parts, Endpoint::Databases, &["GET", "HEAD"]);
    }
    let Some(below) = path.strip_prefix("db/") else {
        return Err(HttpError::not_found(
            "there are /v1/db, /v1/db/DATABASE, /v1/db/DATABASE/KEY, /v1/call/PROCEDURE and /v1/reload",
        ));
    };
    let (database, key) = below.split_once('/').map_or((below, None), |(d, k)| (d, Some(k)));
    match key {
        // A client that forgot the key does not mean the database.
        Some("") if matches!(parts.method, Method::DELETE | Method::PUT) => Err(
            HttpError::bad_request("a key has at least one byte, and none is behind the database"),
        ),
        None | Some("") => {
            let endpoint = match parts.method {
                Method::DELETE => Endpoint::Database { database },
                _ => Endpoint::Listing { database },
            };
            only(parts, endpoint, &["DELETE", "GET", "HEAD"])
        }
        Some(key) => {
            only(parts, Endpoint::Record { database, key }, &["DELETE", "GET", "HEAD", "PUT"])
        }
    }
}

/// Refuses all other methods.
fn only<'p>(
    parts: &Parts,
    endpoint: Endpoint<'p>,
    methods: &[&str],
) -> Result<Endpoint<'p>, HttpError> {
    if methods.contains(&parts.method.as_str()) {
        Ok(endpoint)
    } else if parts.method == Method::OPTIONS {
        Ok(Endpoint::Options { allowed: allowed(methods) })
    } else {
        Err(HttpError::method(methods))
    }
}

impl Endpoint<'_> {
    /// The key of a record; `None` if its encoding is broken.
    fn key(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Record { key, .. } => percent::decode(key),
            _ => None,
        }
    }

    /// Decides whether a client may use the endpoint with this method.
    fn admit(&self, principal: &Principal, method: &Method) -> Result<(), Denied> {
        let key = self.key();
        access::allow(principal, self.permission(method, key.as_deref()))
    }

    /// What a client needs to use the endpoint with this method. Requests of other protocols, and
    /// procedures, are checked once it is known what they ask for.
    fn permission<'k>(&self, method: &Method, key: Option<&'k [u8]>) -> Permission<'k> {
        let keys = key.map_or(Keys::All, Keys::One);
        match *self {
            Self::Health => Permission::None,
            Self::Options { .. }
            | Self::Rpc { .. }
            | Self::KyotoRecord
            | Self::Tyrant
            | Self::Call { .. }
            | Self::Route => Permission::Session,
            Self::State | Self::Metrics | Self::Databases => Permission::Inspect,
            Self::Reload => Permission::Administer,
            Self::Listing { .. } => Permission::Read(Keys::All),
            Self::Record { .. } if matches!(*method, Method::GET | Method::HEAD) => {
                Permission::Read(keys)
            }
            Self::Record { .. } => Permission::Write(keys),
            Self::Database { .. } => Permission::Clear,
        }
    }

    /// Whether it is answered while all requests are paused: whoever monitors the server must not
    /// take it for dead.
    fn tells_of_the_server(&self) -> bool {
        matches!(self, Self::Health | Self::State | Self::Metrics | Self::Options { .. })
    }

    async fn answer(
        self,
        caller: &Caller<'_>,
        exchange: &Rc<Exchange>,
        parts: &Parts,
        body: Bytes,
    ) -> Result<Response<Reply>, HttpError> {
        let (worker, principal) = (caller.worker, caller.principal.clone());
        match self {
            Self::Rpc { procedure } => Ok(kyoto::call(caller, procedure, parts, &body).await),
            Self::KyotoRecord => kyoto::record(caller, parts, body).await,
            Self::Tyrant => tyrant::answer(caller, parts, body).await,
            Self::Route => route::answer(caller, exchange, parts, body).await,
            Self::Record { database, key } => {
                records::answer(worker, parts, database, key, body).await
            }
            Self::Call { procedure } => call::answer(worker, principal, procedure, body).await,
            Self::Listing { database } => {
                listing::answer(worker, database, parts.uri.query()).await
            }
            Self::Database { database } => records::drop_database(worker, database).await,
            Self::Databases => status::databases(worker).await,
            Self::Options { allowed } => Ok(options(&allowed)),
            Self::Reload => status::reload(worker).await,
            Self::Health => status::health(worker),
            Self::State => Ok(status::state(worker)),
            Self::Metrics => status::metrics(worker).await,
        }
    }
}

/// The answer to OPTIONS.
fn options(allowed: &str) -> Response<Reply> {
    let mut response = Response::new(Reply::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    // Methods come from files; one that is not a header value was refused at loading.
    let allow = HeaderValue::from_str(allowed).ok().map(|value| (header::ALLOW, value));
    response.headers_mut().extend(allow);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Users;

    /// The endpoint to try after another one. Every variant must be here.
    fn next(endpoint: Option<&Endpoint<'_>>) -> Option<Endpoint<'static>> {
        let database = "main";
        match endpoint {
            None => Some(Endpoint::Health),
            Some(Endpoint::Health) => Some(Endpoint::State),
            Some(Endpoint::State) => Some(Endpoint::Metrics),
            Some(Endpoint::Metrics) => Some(Endpoint::Databases),
            Some(Endpoint::Databases) => Some(Endpoint::Listing { database }),
            Some(Endpoint::Listing { .. }) => Some(Endpoint::Database { database }),
            Some(Endpoint::Database { .. }) => Some(Endpoint::Record { database, key: "k" }),
            Some(Endpoint::Record { .. }) => Some(Endpoint::Call { procedure: "p" }),
            Some(Endpoint::Call { .. }) => Some(Endpoint::Route),
            Some(Endpoint::Route) => Some(Endpoint::Rpc { procedure: find_procedure(b"set") }),
            Some(Endpoint::Rpc { .. }) => Some(Endpoint::KyotoRecord),
            Some(Endpoint::KyotoRecord) => Some(Endpoint::Tyrant),
            Some(Endpoint::Tyrant) => Some(Endpoint::Reload),
            Some(Endpoint::Reload) => Some(Endpoint::Options { allowed: String::new() }),
            Some(Endpoint::Options { .. }) => None,
        }
    }

    #[test]
    fn nothing_but_health_is_open_to_anonymous_clients() {
        let users = Users::default();
        let mut endpoint = next(None);
        while let Some(tried) = &endpoint {
            for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::POST] {
                let permission = tried.permission(&method, None);
                assert_eq!(access::allow(&users.newcomer(), permission), Ok(()));
                let is_open = matches!(tried, Endpoint::Health);
                let expected = if is_open { Ok(()) } else { Err(Denied::Unauthenticated) };
                assert_eq!(access::allow(&Principal::Anonymous, permission), expected);
            }
            endpoint = next(Some(tried));
        }
    }

    #[test]
    fn an_endpoint_and_its_method_say_what_is_needed() {
        let record = Endpoint::Record { database: "main", key: "a%2Fb" };
        let key = record.key();
        let permission = |method| record.permission(&method, key.as_deref());
        for method in [Method::GET, Method::HEAD] {
            assert!(matches!(permission(method), Permission::Read(Keys::One(b"a/b"))));
        }
        for method in [Method::PUT, Method::DELETE] {
            assert!(matches!(permission(method), Permission::Write(Keys::One(b"a/b"))));
        }
        let broken = Endpoint::Record { database: "main", key: "%zz" };
        let key = broken.key();
        let permission = broken.permission(&Method::GET, key.as_deref());
        assert!(matches!(permission, Permission::Read(Keys::All)));
        let listing = Endpoint::Listing { database: "main" };
        let permission = listing.permission(&Method::GET, None);
        assert!(matches!(permission, Permission::Read(Keys::All)));
        let permission = Endpoint::Metrics.permission(&Method::GET, None);
        assert!(matches!(permission, Permission::Inspect));
    }
}
