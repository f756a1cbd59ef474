//! `/v1/db/DATABASE`: records ordered by key, as JSON lines.
//!
//! A page that does not reach the end closes with a line `{"next": KEY}`; the same request with
//! `after=KEY` continues after that key. Caches and constant databases, whose keys have no order,
//! close a page with `{"next_cursor": NUMBER}`, and continue with `cursor=NUMBER`. What is not
//! UTF-8 is written as `key_base64`, `value_base64`, `next_base64`, and accepted as `after_base64`.

use std::{
    ops::{Bound, ControlFlow, RangeBounds},
    rc::Rc,
};

use hyper::{
    Response,
    header::{self, HeaderValue},
};
use tokaido_store::{
    DatabaseId, Direction, Entry, Kind, ReadError, ReadTransaction, ScanRange, Scanner,
};
use tokaido_wire::base64;

use super::{body::Reply, error::HttpError, query};
use crate::{Limits, placement::Placement, worker::Worker};

/// Entries per page, unless the client says otherwise.
const LIMIT_DEFAULT: usize = 1_000;

/// Entries of an unordered database that are looked at in one step.
const UNORDERED_STEP: usize = 1_000;

/// What a client asked for.
#[derive(Debug, PartialEq, Eq)]
struct Listing {
    range: ScanRange,
    after: Option<Vec<u8>>,
    cursor: Option<u64>,
    limit: usize,
    values: bool,
    /// The page ends early once it has this many bytes.
    bytes_max: usize,
}

/// Answers with one page. This may take long.
pub(super) async fn answer(
    worker: &Rc<Worker>,
    database: &str,
    query: Option<&str>,
) -> Result<Response<Reply>, HttpError> {
    let listing = Listing::parse(query, &worker.service.config.limits)?;
    let store = worker.service.shared.store();
    let database = store.find_database(database).ok_or_else(|| {
        HttpError::not_found("there is no such database; the first write to one makes it")
    })?;
    let is_ordered = store.capabilities(database).is_ordered;
    listing.check(is_ordered)?;
    let page = Placement::http(worker).read(database, true, move |snapshot| {
        if is_ordered {
            listing.page(snapshot, database)
        } else {
            listing.unordered_page(snapshot, database)
        }
    });
    let page = page.await??;
    let mut response = Response::new(Reply::from(page));
    let lines = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, lines);
    Ok(response)
}

impl Listing {
    fn parse(query: Option<&str>, limits: &Limits) -> Result<Self, HttpError> {
        let mut listing = Self {
            range: ScanRange::all(),
            after: None,
            cursor: None,
            limit: LIMIT_DEFAULT.min(limits.http_page_records_max),
            values: true,
            bytes_max: limits.http_page_bytes_max,
        };
        let (mut from, mut high, mut reverse) = (None, None, false);
        for (name, value) in query::parse(query)? {
            match name.as_str() {
                "prefix" => listing.range = ScanRange::prefix(&value),
                "from" => from = Some(value),
                "to" => high = tightest(high, Bound::Included(value)),
                "before" => high = tightest(high, Bound::Excluded(value)),
                "after" => listing.after = Some(value),
                "after_base64" => {
                    let text = String::from_utf8_lossy(&value);
                    listing.after = Some(
                        base64::decode(text.as_bytes())
                            .ok_or_else(|| bad(&name, "takes base64"))?,
                    );
                }
                "cursor" => listing.cursor = Some(parse_cursor(&value)?),
                "limit" => listing.limit = parse_limit(&value, limits)?,
                "values" => listing.values = parse_bool(&name, &value)?,
                "reverse" => reverse = parse_bool(&name, &value)?,
                _ => {
                    return Err(HttpError::bad_request(format!(
                        "unknown parameter {name:?}; there are prefix, from, to, before, after, after_base64, cursor, reverse, limit, values"
                    )));
                }
            }
        }
        listing.range = narrowed(listing.range, from, high);
        if reverse {
            listing.range.direction = Direction::Backward;
        }
        Ok(listing)
    }

    /// Refuses what the database does not support.
    fn check(&self, is_ordered: bool) -> Result<(), HttpError> {
        if is_ordered {
            return match self.cursor {
                None => Ok(()),
                Some(_) => Err(HttpError::bad_request(
                    "this database has an order: go on with after=KEY, not with a cursor",
                )),
            };
        }
        if self.after.is_some() || self.range.direction == Direction::Backward {
            return Err(ReadError::Unordered.into());
        }
        Ok(())
    }

    fn page(
        &self,
        transaction: &mut dyn ReadTransaction,
        database: DatabaseId,
    ) -> Result<Vec<u8>, ReadError> {
        let mut scanner = Scanner::new(database, self.range.clone(), self.limit + 1);
        if let Some(after) = &self.after {
            scanner = scanner.after(after);
        }
        let mut page = Vec::new();
        let mut last = Vec::new();
        let mut entries = 0;
        scanner.visit(transaction, |entry| {
            if entries == self.limit || page.len() >= self.bytes_max {
                page.push(b'{');
                push_field(&mut page, "next", &last);
                page.extend_from_slice(b"}\n");
                return ControlFlow::Break(());
            }
            self.push_entry(&mut page, &entry);
            last.clear();
            last.extend_from_slice(entry.key);
            entries += 1;
            ControlFlow::Continue(())
        })?;
        Ok(page)
    }

    /// As [`page`](Self::page), for a database without an order: it looks at everything, and shows
    /// what is in the range. The store's pages are taken whole, so there may be some more entries
    /// than the limit.
    fn unordered_page(
        &self,
        transaction: &mut dyn ReadTransaction,
        database: DatabaseId,
    ) -> Result<Vec<u8>, ReadError> {
        let (mut page, mut entries, mut from) = (Vec::new(), 0, self.cursor.unwrap_or(0));
        loop {
            let wanted = (self.limit - entries).min(UNORDERED_STEP);
            let next = transaction.page(database, from, wanted, &mut |entry| {
                if contains(&self.range, entry.key) {
                    self.push_entry(&mut page, &entry);
                    entries += 1;
                }
            })?;
            let Some(next) = next else { return Ok(page) };
            if entries >= self.limit || page.len() >= self.bytes_max {
                page.extend_from_slice(format!("{{\"next_cursor\":{next}}}\n").as_bytes());
                return Ok(page);
            }
            from = next;
        }
    }

    fn push_entry(&self, page: &mut Vec<u8>, entry: &Entry<'_>) {
        page.push(b'{');
        push_field(page, "key", entry.key);
        match entry.record.kind {
            _ if !self.values => {}
            Kind::Bytes => {
                page.push(b',');
                push_field(page, "value", entry.record.value);
            }
            kind => page.extend_from_slice(format!(",\"kind\":\"{kind}\"").as_bytes()),
        }
        page.extend_from_slice(b"}\n");
    }
}

/// The bound that lets fewer keys through.
fn tightest(one: Option<Bound<Vec<u8>>>, other: Bound<Vec<u8>>) -> Option<Bound<Vec<u8>>> {
    let order = |bound: &Bound<Vec<u8>>| match bound {
        Bound::Excluded(key) => (false, key.clone(), false),
        Bound::Included(key) => (false, key.clone(), true),
        Bound::Unbounded => (true, Vec::new(), false),
    };
    one.into_iter().chain([other]).min_by_key(order)
}

/// The part of `range` from `from` on and up to `high`.
fn narrowed(range: ScanRange, from: Option<Vec<u8>>, high: Option<Bound<Vec<u8>>>) -> ScanRange {
    let low = match (range.low, from) {
        (Bound::Included(low), Some(from)) => Bound::Included(low.max(from)),
        (_, Some(from)) => Bound::Included(from),
        (low, None) => low,
    };
    let high = tightest(high, range.high).unwrap_or(Bound::Unbounded);
    ScanRange { low, high, direction: range.direction }
}

fn contains(range: &ScanRange, key: &[u8]) -> bool {
    fn slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
        bound.as_ref().map(Vec::as_slice)
    }
    RangeBounds::<[u8]>::contains(&(slice(&range.low), slice(&range.high)), key)
}

fn parse_cursor(value: &[u8]) -> Result<u64, HttpError> {
    let cursor = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    cursor.ok_or_else(|| bad("cursor", "takes the number that next_cursor gave"))
}

fn bad(name: &str, takes: &str) -> HttpError {
    HttpError::bad_request(format!("parameter {name} {takes}"))
}

fn parse_limit(value: &[u8], limits: &Limits) -> Result<usize, HttpError> {
    let max = limits.http_page_records_max;
    let limit = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    limit
        .filter(|limit| (1..=max).contains(limit))
        .ok_or_else(|| bad("limit", &format!("takes a number from 1 to {max}")))
}

fn parse_bool(name: &str, value: &[u8]) -> Result<bool, HttpError> {
    match value {
        b"true" | b"1" | b"" => Ok(true),
        b"false" | b"0" => Ok(false),
        _ => Err(bad(name, "takes true or false")),
    }
}

/// `"name":"text"`, or `"name_base64":"…"` for bytes that are not text.
fn push_field(page: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    page.push(b'"');
    page.extend_from_slice(name.as_bytes());
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            page.extend_from_slice(b"\":");
            // Writing a string to a vector cannot fail.
            let _ = serde_json::to_writer(page, text);
        }
        Err(_) => {
            page.extend_from_slice(b"_base64\":\"");
            page.extend_from_slice(base64::encode(bytes).as_bytes());
            page.push(b'"');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Listing {
        Listing::parse(Some(query), &Limits::default()).expect("it is a query")
    }

    #[test]
    fn the_parameters_narrow_each_other_in_any_order() {
        let listing = parse("from=b&reverse=true&prefix=a&to=ax&limit=7&values=false");
        assert_eq!(listing.range.low, Bound::Included(b"b".to_vec()));
        assert_eq!(listing.range.high, Bound::Included(b"ax".to_vec()));
        for (query, high) in [
            ("to=c&before=c", Bound::Excluded(b"c".to_vec())),
            ("before=d&to=c", Bound::Included(b"c".to_vec())),
            ("before=c&to=d", Bound::Excluded(b"c".to_vec())),
            ("prefix=a&to=b", Bound::Excluded(b"b".to_vec())),
            ("before=b", Bound::Excluded(b"b".to_vec())),
        ] {
            assert_eq!(parse(query).range.high, high, "{query}");
        }
        assert_eq!((listing.limit, listing.values), (7, false));
        assert_eq!(parse("").range, ScanRange::all());
        assert_eq!(parse("after_base64=/w").after.as_deref(), Some(&b"\xff"[..]));
    }

    #[test]
    fn the_direction_does_not_depend_on_the_order_of_parameters() {
        for query in ["reverse=1&prefix=a", "prefix=a&reverse=1"] {
            assert_eq!(parse(query).range, ScanRange::prefix(b"a").reversed(), "{query}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for query in ["limit=0", "limit=100001", "limit=x", "values=maybe", "colour=red", "to=%z"] {
            assert!(Listing::parse(Some(query), &Limits::default()).is_err(), "{query}");
        }
    }
}
