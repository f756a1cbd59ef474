//! `POST /v1/call/PROCEDURE`: a call by name, with JSON in and out.

use std::rc::Rc;

use hyper::{
    Response,
    body::Bytes,
    header::{self, HeaderValue},
};
use serde_json::Value as Json;
use tokaido_script::{CallError, Mode, ProcedureId, Transaction, Value, Vm};
use tokaido_store::transact;

use super::{body::Reply, error::HttpError, json, percent};
use crate::{metrics, worker::Worker};

/// Calls a procedure and answers with its result.
pub(super) async fn answer(
    worker: &Rc<Worker>,
    procedure: &str,
    body: Bytes,
) -> Result<Response<Reply>, HttpError> {
    let arguments = parse_arguments(&body)?;
    let name = percent::decode(procedure).unwrap_or_default();
    let id = worker.find_procedure(&name).ok_or_else(|| {
        let name = String::from_utf8_lossy(&name);
        HttpError::not_found(format!("there is no procedure {name:?}"))
    })?;
    let procedure = worker.service.shared.procedures.get(id);
    if let Some(route) = procedure.and_then(|p| p.route.as_ref()) {
        let message =
            format!("it is not called by name, it answers {} {}", route.method, route.pattern);
        return Err(HttpError::bad_request(message));
    }
    let mode = procedure.map_or(Mode::Read, |p| p.mode);
    let result = call(worker, id, mode, arguments).await?;
    let mut body =
        Json::Object(serde_json::Map::from_iter([("result".to_owned(), result)])).to_string();
    body.push('\n');
    let mut response = Response::new(Reply::from(body));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

/// `[…]` or `{"arguments": […]}`; no body is no arguments.
fn parse_arguments(body: &[u8]) -> Result<Vec<Value>, HttpError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let bad = |why: &str| {
        let form = "send a JSON array of arguments, or {\"arguments\": […]}";
        HttpError::bad_request(format!("{why}; {form}"))
    };
    let mut parsed: Json =
        serde_json::from_slice(body).map_err(|e| bad(&format!("the body is not JSON: {e}")))?;
    if let Some(fields) = parsed.as_object_mut() {
        let arguments = fields.remove("arguments");
        match (arguments, fields.is_empty()) {
            (Some(arguments), true) => parsed = arguments,
            _ => return Err(bad("the object has other fields than arguments")),
        }
    }
    let Json::Array(arguments) = parsed else { return Err(bad("the arguments are no array")) };
    arguments
        .into_iter()
        .map(|argument| json::to_value(argument).map_err(|e| bad(&e.to_string())))
        .collect()
}

/// Runs the procedure where its mode and its past say. The result becomes JSON within the
/// transaction, so that a write is not done when its answer cannot be given.
async fn call(
    worker: &Rc<Worker>,
    id: ProcedureId,
    mode: Mode,
    arguments: Vec<Value>,
) -> Result<Json, HttpError> {
    let procedures = worker.service.shared.procedures.clone();
    let run_here = procedures.runs_inline(id);
    let run = move |vm: &mut Vm, transaction: Transaction<'_>| {
        let result = procedures.timed(id, || vm.call(id, transaction, &arguments))?;
        json::from_value(&result).map_err(|error| CallError::Value {
            message: format!("the result has no form in JSON: {error}"),
        })
    };
    if mode == Mode::Write {
        metrics::add(&worker.counters.http.writer, 1);
        let result = worker.writer.call(move |context| {
            let vm = &mut context.vm;
            transact(&mut context.writer, |tx| run(vm, Transaction::Write(tx)))
        });
        Ok(result.await??)
    } else if run_here {
        metrics::add(&worker.counters.http.local, 1);
        Ok(worker.read(|snapshot, vm| run(vm, Transaction::Read(snapshot)))??)
    } else {
        metrics::add(&worker.counters.http.pool, 1);
        let result = worker
            .pool
            .call(move |context| run(&mut context.vm, Transaction::Read(&mut *context.snapshot)));
        Ok(result.await??)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_as_an_array_or_in_an_object() {
        let expected = vec![Value::Integer(1), Value::String(b"a".to_vec())];
        assert_eq!(parse_arguments(b"[1, \"a\"]").expect("an array"), expected);
        let object = br#"{"arguments": [1, "a"]}"#;
        assert_eq!(parse_arguments(object).expect("an object"), expected);
        assert_eq!(parse_arguments(b" \n").expect("nothing"), []);
        for broken in
            ["{", "1", "{}", "{\"arguments\": 1}", "{\"arguments\": [], \"x\": 1}", "\u{0}"]
        {
            assert!(parse_arguments(broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
