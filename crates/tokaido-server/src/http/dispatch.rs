//! From a request to whoever answers it.

use std::rc::Rc;

use hyper::{Request, Response, body::Incoming, header, http::request::Parts};

use super::{
    auth,
    body::{self, Reply},
    call,
    error::HttpError,
    listing, records, route,
    router::Found,
    status,
};
use crate::{
    link::{Link, Phase},
    worker::Worker,
};

/// Answers a request. It never fails: an error is an answer, too.
pub(super) async fn answer(
    worker: &Rc<Worker>,
    link: &Link,
    request: Request<Incoming>,
) -> Response<Reply> {
    let (parts, incoming) = request.into_parts();
    let result = match find(worker, &parts) {
        Ok(place) => {
            let bytes_max = worker.service.config.limits.http_body_bytes_max;
            match body::read(incoming, bytes_max).await {
                Ok(body) => {
                    link.enter(Phase::Working);
                    place.answer(worker, &parts, body).await
                }
                Err(error) => Err(closing(error)),
            }
        }
        Err(error) => Err(error),
    };
    result.unwrap_or_else(HttpError::into_response)
}

/// After a body that was not read to its end the connection cannot go on.
fn closing(error: HttpError) -> HttpError {
    error.with_header(header::CONNECTION, "close")
}

/// What a path stands for.
enum Place<'p> {
    Health,
    Metrics,
    Databases,
    Listing { database: &'p str },
    Record { database: &'p str, key: &'p str },
    Call { procedure: &'p str },
    Route(route::Matched<'p>),
}

/// Finds the place and checks that the client may go there, before the body is read.
fn find<'p>(worker: &'p Worker, parts: &'p Parts) -> Result<Place<'p>, HttpError> {
    let path = parts.uri.path();
    if path == "/healthz" {
        return allow(parts, Place::Health, &["GET", "HEAD"]);
    }
    auth::check(&worker.service.shared, parts)?;
    if path == "/metrics" {
        return allow(parts, Place::Metrics, &["GET", "HEAD"]);
    }
    if let Some(path) = path.strip_prefix("/v1/") {
        auth::check_same_site(parts)?;
        return find_api(parts, path);
    }
    match worker.service.router.find(parts.method.as_str(), path) {
        Found::Procedure(procedure, parameters) => {
            Ok(Place::Route(route::Matched { procedure, parameters }))
        }
        Found::OtherMethods(methods) => Err(HttpError::method(&methods)),
        Found::BadPath => {
            Err(HttpError::bad_request("the path is not UTF-8 under its percent-encoding"))
        }
        Found::Nothing => Err(HttpError::not_found(
            "nothing answers this path; records are below /v1/db/, procedures below /v1/call/",
        )),
    }
}

/// What stands below `/v1/`.
fn find_api<'p>(parts: &Parts, path: &'p str) -> Result<Place<'p>, HttpError> {
    if let Some(procedure) = path.strip_prefix("call/") {
        return allow(parts, Place::Call { procedure }, &["POST"]);
    }
    if matches!(path, "db" | "db/") {
        return allow(parts, Place::Databases, &["GET", "HEAD"]);
    }
    match path.strip_prefix("db/").map(|below| below.split_once('/').unwrap_or((below, ""))) {
        Some((database, "")) => allow(parts, Place::Listing { database }, &["GET", "HEAD"]),
        Some((database, key)) => {
            allow(parts, Place::Record { database, key }, &["DELETE", "GET", "HEAD", "PUT"])
        }
        None => Err(HttpError::not_found(
            "there are /v1/db, /v1/db/DATABASE, /v1/db/DATABASE/KEY and /v1/call/PROCEDURE",
        )),
    }
}

fn allow<'p>(parts: &Parts, place: Place<'p>, methods: &[&str]) -> Result<Place<'p>, HttpError> {
    if methods.contains(&parts.method.as_str()) {
        Ok(place)
    } else {
        Err(HttpError::method(methods))
    }
}

impl Place<'_> {
    async fn answer(
        self,
        worker: &Rc<Worker>,
        parts: &Parts,
        body: hyper::body::Bytes,
    ) -> Result<Response<Reply>, HttpError> {
        match self {
            Self::Route(matched) => route::answer(worker, parts, matched, body).await,
            Self::Record { database, key } => {
                records::answer(worker, parts, database, key, body).await
            }
            Self::Call { procedure } => call::answer(worker, procedure, body).await,
            Self::Listing { database } => {
                listing::answer(worker, database, parts.uri.query()).await
            }
            Self::Databases => status::databases(worker).await,
            Self::Health => status::health(worker),
            Self::Metrics => status::metrics(worker).await,
        }
    }
}
