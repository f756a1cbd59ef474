//! `POST /v1/call/PROCEDURE`: a call by name, with JSON in and out.

use std::{rc::Rc, sync::Arc};

use hyper::{
    Response,
    body::Bytes,
    header::{self, HeaderValue},
};
use tokaido_script::{
    CallError, ProcedureId, Transaction, Value,
    json::{self, Rules},
    percent,
};

use super::{body::Reply, error::HttpError};
use crate::{
    Shared,
    access::Principal,
    placement::{Called, Place, Placement},
    procedures::Procedures,
    program::Program,
    redis::ScriptCommands,
    worker::Worker,
};

/// Calls a procedure and answers with its result.
pub(super) async fn answer(
    worker: &Rc<Worker>,
    principal: Principal,
    procedure: &str,
    body: Bytes,
) -> Result<Response<Reply>, HttpError> {
    let arguments = parse_arguments(&body)?;
    let name = percent::decode(procedure).unwrap_or_default().into_owned();
    let program = worker.program();
    let shared = Arc::clone(&worker.service.shared);
    let id = find(&shared, &program, &name)?;
    let place = Place::of_procedure(&shared, &program, id);
    // The result becomes JSON within the transaction, so that no write is committed whose answer
    // cannot be given.
    let call = move |procedures: &mut Procedures<'_>,
                     transaction: Transaction<'_>|
          -> Result<Called<Result<Vec<u8>, HttpError>>, HttpError> {
        let id = find(&shared, procedures.program(), &name)?;
        if !procedures.fits(id, &transaction) {
            return Ok(None);
        }
        let mut commands = ScriptCommands::for_call(
            &shared,
            &principal,
            shared.main_selected(),
            &procedures.get(id).name,
        )?;
        let result = match procedures.call(id, commands.in_transaction(transaction), &arguments) {
            Err(failure) if failure.is_kept() => {
                return Ok(Some((Err(failure.into()), commands.into_messages())));
            }
            called => called?,
        };
        let mut body = b"{\"result\":".to_vec();
        json::encode(&result, Rules::Api, &mut body).map_err(|error| {
            let message = format!("the result has no form in JSON: {error}");
            procedures.failed(id, CallError::Value { message })
        })?;
        body.extend_from_slice(b"}\n");
        Ok(Some((Ok(body), commands.into_messages())))
    };
    let body = Placement::http(worker).procedure(place, call).await.flatten();
    let body = body.map_err(|error| error.of_call(&program, id))?;
    let mut response = Response::new(Reply::from(body));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

fn find(shared: &Shared, program: &Program, name: &[u8]) -> Result<ProcedureId, HttpError> {
    let id = program.find(name).ok_or_else(|| {
        let why = shared.program.loading().why_missing(name);
        HttpError::not_found(why.unwrap_or_else(|| {
            format!("there is no procedure {:?}", String::from_utf8_lossy(name))
        }))
    })?;
    match &program.get(id).route {
        None => Ok(id),
        Some(route) => Err(HttpError::bad_request(format!(
            "it is not called by name, it answers {} {}",
            route.method, route.pattern
        ))),
    }
}

/// `[…]` or `{"arguments": […]}`; an empty body means no arguments.
fn parse_arguments(body: &[u8]) -> Result<Vec<Value>, HttpError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let bad = |why: &str| {
        let form = "send a JSON array of arguments, or {\"arguments\": […]}";
        HttpError::bad_request(format!("{why}; {form}"))
    };
    let parsed = json::decode(body, Rules::Api).map_err(|error| bad(&error.to_string()))?;
    match parsed {
        Value::Array(arguments) => Ok(arguments),
        Value::Map(mut fields) => match (fields.pop(), fields.is_empty()) {
            (Some((Value::String(name), Value::Array(arguments))), true)
                if name == b"arguments" =>
            {
                Ok(arguments)
            }
            _ => Err(bad("the object has not one field, arguments")),
        },
        _ => Err(bad("the arguments are no array")),
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
