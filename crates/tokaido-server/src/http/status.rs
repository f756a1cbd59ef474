//! What operators look at: whether the server is well, its numbers, and its databases.

use std::{rc::Rc, sync::atomic::Ordering::Relaxed};

use hyper::{
    Response, StatusCode,
    header::{self, HeaderValue},
};
use serde_json::json;

use super::{body::Reply, error::HttpError};
use crate::{
    metrics::{DatabasesStatistics, database_statistics},
    worker::Worker,
};

/// 200 as long as reads and writes are served. Open to everyone, and so it says no more than that.
pub(super) fn health(worker: &Worker) -> Result<Response<Reply>, HttpError> {
    if worker.service.metrics.store_refuses_writes.load(Relaxed) {
        return Err(HttpError::unavailable(
            "the store takes no writes since an earlier failure, see the log; restart the server",
        ));
    }
    Ok(typed("text/plain", "ok\n".to_owned()))
}

/// Everything that is counted.
pub(super) async fn metrics(worker: &Rc<Worker>) -> Result<Response<Reply>, HttpError> {
    let databases = all_statistics(worker)?;
    let service = &worker.service;
    let usage = service.shared.store().usage();
    let text =
        service.metrics.encode(&service.shared.procedures, &databases, usage).map_err(|error| {
            HttpError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("cannot write metrics: {error}"),
            )
        })?;
    Ok(typed("application/openmetrics-text; version=1.0.0; charset=utf-8", text))
}

/// The databases with what each holds.
pub(super) async fn databases(worker: &Rc<Worker>) -> Result<Response<Reply>, HttpError> {
    let databases: Vec<_> = all_statistics(worker)?
        .into_iter()
        .map(|(name, engine, statistics)| {
            json!({
                "name": name,
                "engine": engine.name(),
                "records": statistics.records,
                "key_bytes": statistics.key_bytes,
                "value_bytes": statistics.value_bytes,
            })
        })
        .collect();
    Ok(typed("application/json", format!("{}\n", json!({ "databases": databases }))))
}

fn all_statistics(worker: &Worker) -> Result<DatabasesStatistics<'_>, HttpError> {
    let store = worker.service.shared.store();
    Ok(worker.read(|snapshot, _| database_statistics(&**store, snapshot))??)
}

fn typed(content_type: &'static str, body: String) -> Response<Reply> {
    let mut response = Response::new(Reply::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
