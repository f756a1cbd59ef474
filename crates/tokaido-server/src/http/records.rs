//! `/v1/db/DATABASE/KEY`: one record. The body is the value, as it is.

use std::rc::Rc;

use hyper::{
    HeaderMap, Method, Response, StatusCode,
    body::Bytes,
    header::{self, HeaderName, HeaderValue},
    http::request::Parts,
};
use tokaido_store::{
    CommitNumber, DatabaseId, Engine, NewRecord, ReadTransaction, Record, WriteError,
    WriteTransaction, limits, transact,
};

use super::{body::Reply, error::HttpError, percent};
use crate::{metrics, worker::Worker};

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
        Method::PUT => {
            let database = store.database(database)?;
            put(worker, &parts.headers, database, key.into_owned(), body).await
        }
        Method::DELETE => {
            let Some(database) = store.find_database(database) else { return Err(no_record()) };
            delete(worker, &parts.headers, database, key.into_owned()).await
        }
        _ => {
            metrics::add(&worker.counters.http.local, 1);
            let Some(database) = store.find_database(database) else { return Err(no_record()) };
            let preconditions = Preconditions::read(&parts.headers)?;
            worker.read(|snapshot, _| get(snapshot, database, &key, preconditions))?
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
    preconditions: Preconditions,
) -> Result<Response<Reply>, HttpError> {
    let record = transaction.get(database, key)?;
    let version = record.map(|r| r.version);
    if preconditions.if_match.is_some_and(|tag| !tag.is_met_by(version)) {
        return Err(precondition_failed());
    }
    let record = record.ok_or_else(no_record)?;
    let unchanged = preconditions.if_none_match.is_some_and(|tag| tag.is_met_by(version));
    let mut response = Response::new(Reply::default());
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        *response.body_mut() = Reply::new(Bytes::copy_from_slice(record.value));
    }
    put_record_headers(response.headers_mut(), &record);
    Ok(response)
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
    database: DatabaseId,
    key: Vec<u8>,
    value: Bytes,
) -> Result<Response<Reply>, HttpError> {
    let preconditions = Preconditions::read(headers)?;
    let flags = number(headers, &FLAGS)?.unwrap_or(0);
    let expiry = Expiry::read(headers)?;
    let (number, created) = write(worker, database, move |tx| {
        let found = check(tx, database, &key, preconditions)?;
        let expires_at_ms = expiry.at_ms(tx.now_ms());
        tx.put(database, &key, NewRecord { value: &value, flags, expires_at_ms })?;
        Ok((tx.number(), found.is_none()))
    })
    .await?;
    let mut response = Response::new(Reply::default());
    *response.status_mut() = if created { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
    response.headers_mut().insert(header::ETAG, etag(number));
    Ok(response)
}

async fn delete(
    worker: &Rc<Worker>,
    headers: &HeaderMap,
    database: DatabaseId,
    key: Vec<u8>,
) -> Result<Response<Reply>, HttpError> {
    let preconditions = Preconditions::read(headers)?;
    let existed = write(worker, database, move |tx| {
        check(tx, database, &key, preconditions)?;
        Ok(tx.delete(database, &key)?)
    })
    .await?;
    if !existed {
        return Err(no_record());
    }
    let mut response = Response::new(Reply::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// Runs `body` where writes to the database run: as a transaction on the writer or, on a cache, here
/// and at once.
async fn write<T: Send + 'static>(
    worker: &Rc<Worker>,
    database: DatabaseId,
    mut body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, HttpError> + Send + 'static,
) -> Result<T, HttpError> {
    match worker.service.shared.store().engine(database) {
        Engine::Transactional => {
            metrics::add(&worker.counters.http.writer, 1);
            let work = worker.writer.call(move |context| transact(&mut context.writer, body));
            Ok(work.await??)
        }
        Engine::Cache(cache) => {
            metrics::add(&worker.counters.http.local, 1);
            cache.transact(database, |tx| body(tx))
        }
        Engine::Cdb => Err(WriteError::ReadOnly.into()),
    }
}

/// The version that stands under the key, if the preconditions hold for it.
fn check(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    preconditions: Preconditions,
) -> Result<Option<CommitNumber>, HttpError> {
    let found = tx.get(database, key).map_err(WriteError::from)?.map(|r| r.version);
    let refused = preconditions.if_match.is_some_and(|tag| !tag.is_met_by(found))
        || preconditions.if_none_match.is_some_and(|tag| tag.is_met_by(found));
    if refused { Err(precondition_failed()) } else { Ok(found) }
}

fn precondition_failed() -> HttpError {
    let message = "the record is not as the request demands; read it again";
    HttpError::new(StatusCode::PRECONDITION_FAILED, message)
}

/// The version of a record as an entity tag.
fn etag(version: CommitNumber) -> HeaderValue {
    let mut digits = itoa::Buffer::new();
    let text = ["\"", digits.format(version), "\""].concat();
    // Digits and quotes are a header value.
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// What `if-match` and `if-none-match` ask for.
#[derive(Clone, Copy)]
struct Preconditions {
    if_match: Option<Tag>,
    if_none_match: Option<Tag>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    /// `*`: any record.
    Any,
    Version(CommitNumber),
}

impl Preconditions {
    fn read(headers: &HeaderMap) -> Result<Self, HttpError> {
        let tag = |name: HeaderName| match headers.get(&name) {
            None => Ok(None),
            Some(value) => Tag::parse(value.as_bytes()).map(Some).ok_or_else(|| {
                HttpError::bad_request(format!("{name} takes \"*\" or one etag of this server"))
            }),
        };
        Ok(Self { if_match: tag(header::IF_MATCH)?, if_none_match: tag(header::IF_NONE_MATCH)? })
    }
}

impl Tag {
    fn parse(text: &[u8]) -> Option<Self> {
        if text == b"*" {
            return Some(Self::Any);
        }
        let digits = text.strip_prefix(b"W/").unwrap_or(text);
        let digits = digits.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        std::str::from_utf8(digits).ok()?.parse().ok().map(Self::Version)
    }

    fn is_met_by(self, found: Option<CommitNumber>) -> bool {
        match self {
            Self::Any => found.is_some(),
            Self::Version(version) => found == Some(version),
        }
    }
}

/// When the record is to expire.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_what_etag_wrote() {
        let written = etag(42);
        assert_eq!(Tag::parse(written.as_bytes()), Some(Tag::Version(42)));
        assert_eq!(Tag::parse(b"W/\"42\""), Some(Tag::Version(42)));
        assert_eq!(Tag::parse(b"*"), Some(Tag::Any));
        for broken in [&b""[..], b"42", b"\"\"", b"\"x\"", b"\"1\", \"2\"", b"\"-1\"", b"\""] {
            assert_eq!(Tag::parse(broken), None, "{broken:?}");
        }
    }
}
