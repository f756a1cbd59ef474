//! `/v1/db/DATABASE/KEY`: one record. The body is the raw value.

use std::rc::Rc;

use hyper::{
    HeaderMap, Method, Response, StatusCode,
    body::Bytes,
    header::{self, HeaderName, HeaderValue},
    http::request::Parts,
};
use tokaido_script::percent;
use tokaido_store::{
    CommitNumber, DatabaseId, Kind, NewRecord, ReadTransaction, Record, WriteError,
    WriteTransaction, limits,
};

use super::{
    body::Reply,
    error::HttpError,
    preconditions::{Preconditions, etag},
};
use crate::{placement::Placement, selected::Selected, worker::Worker};

const EXPIRES_AT_MS: HeaderName = HeaderName::from_static("tokaido-expires-at-ms");
const TTL_MS: HeaderName = HeaderName::from_static("tokaido-ttl-ms");
const FLAGS: HeaderName = HeaderName::from_static("tokaido-flags");

/// Answers a request for one record.
pub(super) async fn answer(
    worker: &Rc<Worker>,
    parts: &Parts,
    database: &str,
    key: &str,
    body: Bytes,
) -> Result<Response<Reply>, HttpError> {
    let key = percent::decode(key)
        .ok_or_else(|| HttpError::bad_request("the key has broken percent-encoding"))?;
    if key.len() > limits::KEY_LEN_MAX {
        let message = format!("a key has at most {} bytes", limits::KEY_LEN_MAX);
        return Err(HttpError::bad_request(message));
    }
    let store = worker.service.shared.store();
    match parts.method {
        Method::PUT => put(worker, &parts.headers, database, key.into_owned(), body).await,
        Method::DELETE => {
            let Some(database) = store.find_database(database) else { return Err(no_record()) };
            delete(worker, &parts.headers, database, key.into_owned()).await
        }
        _ => {
            let Some(database) = store.find_database(database) else { return Err(no_record()) };
            let preconditions = Preconditions::read(&parts.headers)?;
            let key = key.into_owned();
            Placement::http(worker)
                .read(database, false, move |snapshot| {
                    get(snapshot, database, &key, &preconditions)
                })
                .await?
        }
    }
}

fn no_record() -> HttpError {
    HttpError::not_found("there is no record under this key")
}

fn get(
    transaction: &mut dyn ReadTransaction,
    database: DatabaseId,
    key: &[u8],
    preconditions: &Preconditions,
) -> Result<Response<Reply>, HttpError> {
    let record = transaction.get(database, key)?;
    let version = record.map(|r| r.version);
    if !preconditions.matches(version) {
        return Err(precondition_failed());
    }
    let record = record.ok_or_else(no_record)?;
    if record.kind != Kind::Bytes {
        return Err(wrong_kind(record.kind));
    }
    let unchanged = !preconditions.differs(version);
    let mut response = Response::new(Reply::default());
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        *response.body_mut() = Reply::from(Bytes::copy_from_slice(record.value));
    }
    put_record_headers(response.headers_mut(), &record);
    Ok(response)
}

/// A collection has no value to send as a body.
fn wrong_kind(kind: Kind) -> HttpError {
    let message = format!("a {kind} is under this key, not bytes; Redis commands read it");
    HttpError::new(StatusCode::CONFLICT, message)
}

fn put_record_headers(headers: &mut HeaderMap, record: &Record<'_>) {
    let octets = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, octets);
    headers.insert(header::ETAG, etag(record.version));
    if record.flags != 0 {
        headers.insert(FLAGS, record.flags.into());
    }
    if let Some(at_ms) = record.expires_at_ms {
        headers.insert(EXPIRES_AT_MS, at_ms.into());
    }
}

async fn put(
    worker: &Rc<Worker>,
    headers: &HeaderMap,
    database: &str,
    key: Vec<u8>,
    value: Bytes,
) -> Result<Response<Reply>, HttpError> {
    let preconditions = Preconditions::read(headers)?;
    let flags = number(headers, &FLAGS)?.unwrap_or(0);
    let expiry = Expiry::read(headers)?;
    let shared = worker.service.shared.clone();
    let mut selected = Selected::new(&**shared.store(), database)?;
    let (number, created) = Placement::http(worker)
        .write(selected.id(), move |tx| {
            selected.look(&**shared.store());
            let database = selected.open_in(tx, &shared)?;
            let found = check(tx, database, &key, &preconditions)?;
            let expires_at_ms = expiry.at_ms(tx.now_ms());
            tx.put(database, &key, NewRecord { flags, expires_at_ms, ..NewRecord::of(&value) })?;
            Ok::<_, HttpError>((tx.number(), found.is_none()))
        })
        .await?;
    let mut response = Response::new(Reply::default());
    *response.status_mut() = if created { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
    response.headers_mut().insert(header::ETAG, etag(number));
    Ok(response)
}

/// Answers a request to delete a database.
pub(super) async fn drop_database(
    worker: &Rc<Worker>,
    database: &str,
) -> Result<Response<Reply>, HttpError> {
    let store = worker.service.shared.store();
    let found = store.find_database(database);
    let none = || HttpError::not_found("there is no such database");
    let database = found.ok_or_else(none)?;
    if database.mount().is_some() {
        return Err(WriteError::Mounted.into());
    }
    let dropped = Placement::http(worker)
        .write(database, move |tx| Ok::<_, HttpError>(tx.drop_database(database)?))
        .await?;
    if !dropped {
        return Err(none());
    }
    let mut response = Response::new(Reply::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

async fn delete(
    worker: &Rc<Worker>,
    headers: &HeaderMap,
    database: DatabaseId,
    key: Vec<u8>,
) -> Result<Response<Reply>, HttpError> {
    let preconditions = Preconditions::read(headers)?;
    let existed = Placement::http(worker)
        .write(database, move |tx| {
            if preconditions.are_given() {
                check(tx, database, &key, &preconditions)?;
            }
            Ok::<_, HttpError>(tx.delete(database, &key)?)
        })
        .await?;
    if !existed {
        return Err(no_record());
    }
    let mut response = Response::new(Reply::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// The current version under the key, if the preconditions hold for it.
fn check(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    preconditions: &Preconditions,
) -> Result<Option<CommitNumber>, HttpError> {
    let found = tx.get(database, key).map_err(WriteError::from)?.map(|r| r.version);
    let holds = preconditions.matches(found) && preconditions.differs(found);
    if holds { Ok(found) } else { Err(precondition_failed()) }
}

fn precondition_failed() -> HttpError {
    let message = "the record is not as the request demands; read it again";
    HttpError::new(StatusCode::PRECONDITION_FAILED, message)
}

/// When the record expires.
#[derive(Clone, Copy)]
enum Expiry {
    Never,
    AtMs(u64),
    InMs(u64),
}

impl Expiry {
    fn read(headers: &HeaderMap) -> Result<Self, HttpError> {
        match (number(headers, &EXPIRES_AT_MS)?, number(headers, &TTL_MS)?) {
            (None, None) => Ok(Self::Never),
            (Some(at_ms), None) => Ok(Self::AtMs(at_ms)),
            (None, Some(ttl_ms)) => Ok(Self::InMs(ttl_ms)),
            (Some(_), Some(_)) => {
                let message = format!("give {EXPIRES_AT_MS} or {TTL_MS}, not both");
                Err(HttpError::bad_request(message))
            }
        }
    }

    fn at_ms(self, now_ms: u64) -> Option<u64> {
        match self {
            Self::Never => None,
            Self::AtMs(at_ms) => Some(at_ms),
            Self::InMs(ttl_ms) => Some(now_ms.saturating_add(ttl_ms)),
        }
    }
}

fn number<T: std::str::FromStr>(
    headers: &HeaderMap,
    name: &HeaderName,
) -> Result<Option<T>, HttpError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| {
        HttpError::bad_request(format!("{name} takes a whole number that is not negative"))
    })
}
