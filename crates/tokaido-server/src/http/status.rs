//! What operators look at and do: health, metrics, databases, reload.

use std::{
    rc::Rc,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use hyper::{
    Response, StatusCode,
    header::{self, HeaderValue},
};
use serde_json::json;

use super::{body::Reply, error::HttpError};
use crate::{
    metrics::{Holdings, holdings},
    placement::Placement,
    worker::Worker,
};

/// 200 as long as reads and writes are served. Open to everyone, so it says no more than that.
pub(super) fn health(worker: &Worker) -> Result<Response<Reply>, HttpError> {
    if worker.service.metrics.store_refuses_writes.load(Relaxed) {
        return Err(HttpError::unavailable(
            "the store takes no writes since an earlier failure, see the log; restart the server",
        ));
    }
    if let Some(stalled) = worker.service.watch.stalled() {
        return Err(HttpError::unavailable(format!("{stalled}; others wait behind it")));
    }
    Ok(typed("text/plain", "ok\n".to_owned()))
}

/// Whether the query of `/healthz` asks for [`state`].
pub(super) fn wants_state(query: Option<&str>) -> bool {
    query.is_some_and(|query| query.split('&').any(|part| matches!(part, "verbose" | "verbose=1")))
}

/// What [`health`] says, with the program, the outcome of the last reload, and the threads that are
/// stalled. For operators only.
pub(super) fn state(worker: &Worker) -> Response<Reply> {
    let service = &worker.service;
    let (program, loading) = (service.shared.program.get(), service.shared.program.loading());
    let error = health(worker).err();
    let files = loading.errors.iter().map(|error| {
        json!({ "file": error.path, "line": error.line, "procedure": error.procedure, "message": error.message })
    });
    let threads = service.watch.look();
    let stalled = threads.iter().filter(|thread| thread.has_stalled).map(|thread| {
        json!({
            "thread": thread.thread,
            "ms": thread.time.as_millis() as u64,
            "in_procedure": thread.is_in_procedure,
        })
    });
    let state = json!({
        "ok": error.is_none(),
        "error": error.as_ref().map(HttpError::message),
        "generation": program.generation(),
        "procedures": program.procedures().len(),
        "watch": service.config.watch,
        "last_load": {
            "at_ms": loading.at_ms,
            "ok": loading.error.is_none() && loading.errors.is_empty(),
            "error": loading.error,
            "not_loaded": files.collect::<Vec<_>>(),
        },
        "stalled_threads": stalled.collect::<Vec<_>>(),
    });
    let mut response = typed("application/json", format!("{state}\n"));
    if error.is_some() {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

/// Everything that is counted.
pub(super) async fn metrics(worker: &Rc<Worker>) -> Result<Response<Reply>, HttpError> {
    let databases = all_statistics(worker).await?;
    let service = &worker.service;
    let usage = service.shared.store().usage();
    let (program, threads) = (service.shared.program.get(), service.watch.look());
    let text = service.metrics.encode(program, &databases, usage, threads).map_err(|error| {
        HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot write metrics: {error}"))
    })?;
    Ok(typed("application/openmetrics-text; version=1.0.0; charset=utf-8", text))
}

/// The databases and what each of them holds.
pub(super) async fn databases(worker: &Rc<Worker>) -> Result<Response<Reply>, HttpError> {
    let databases: Vec<_> = all_statistics(worker)
        .await?
        .into_iter()
        .map(|Holdings { name, engine, statistics, .. }| {
            json!({
                "name": name,
                "engine": engine,
                "records": statistics.records,
                "key_bytes": statistics.key_bytes,
                "value_bytes": statistics.value_bytes,
            })
        })
        .collect();
    Ok(typed("application/json", format!("{}\n", json!({ "databases": databases }))))
}

/// Swaps the program. The files are loaded on a pool thread, so that no other request waits.
pub(super) async fn reload(worker: &Rc<Worker>) -> Result<Response<Reply>, HttpError> {
    let service = worker.service.clone();
    let program = Placement::http(worker).in_pool(move |_| service.reload()).await?;
    let program = program
        .map_err(|error| HttpError::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))?;
    let (generation, procedures) = (program.generation(), program.procedures().len());
    let answer = json!({ "generation": generation, "procedures": procedures });
    Ok(typed("application/json", format!("{answer}\n")))
}

async fn all_statistics(worker: &Worker) -> Result<Vec<Holdings>, HttpError> {
    let shared = &worker.service.shared;
    let store = Arc::clone(shared.store());
    let read = Placement::http(worker)
        .read(shared.main(), false, move |snapshot| holdings(&*store, snapshot));
    Ok(read.await??)
}

fn typed(content_type: &'static str, body: String) -> Response<Reply> {
    let mut response = Response::new(Reply::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
