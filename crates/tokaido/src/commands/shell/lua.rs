//! Runs a chunk of Lua that was typed into the shell.

use tokaido_script::{CallError, Value, Vm};
use tokaido_store::Writer;

use super::language::{Outcome, Shown};
use crate::value;

/// The name of a line of the shell in errors and tracebacks.
const CHUNK_NAME: &str = "shell";

/// Runs a chunk, which begins transactions of `writer` if there is one.
pub(super) fn run(vm: &mut Vm, writer: Option<&mut dyn Writer>, text: &str) -> Outcome {
    let expression = text.strip_prefix('=');
    let as_expression = format!("return {}", expression.unwrap_or(text));
    // A line is tried as an expression first, so that its value is shown. It is only
    // compiled, not run: its effects must happen only once.
    let chunk = match compile_error(vm, &as_expression) {
        Ok(None) => as_expression,
        Ok(Some(error)) if expression.is_some() => return not_lua(error),
        Ok(Some(expression_error)) => match compile_error(vm, text) {
            Ok(None) => text.to_owned(),
            Ok(Some(_)) if is_unfinished(&expression_error) => return Outcome::Unfinished,
            Ok(Some(error)) => return not_lua(error),
            Err(error) => return Outcome::Failed(error),
        },
        Err(error) => return Outcome::Failed(error),
    };
    match vm.run_script(CHUNK_NAME, chunk.as_bytes(), &[], writer) {
        Ok(values) => Outcome::Shown(values.iter().map(shown).collect()),
        Err(error) => Outcome::Failed(error),
    }
}

fn shown(value: &Value) -> Shown {
    Shown { notation: value::notation(value).into_bytes(), plain: Some(value::print(value)) }
}

/// Whether there is a global variable of this name, which must be an identifier.
pub(super) fn has_variable(vm: &mut Vm, name: &str) -> bool {
    let chunk = format!("return {name} ~= nil");
    let values = vm.run_script(CHUNK_NAME, chunk.as_bytes(), &[], None);
    matches!(values.as_deref(), Ok([Value::Boolean(true)]))
}

/// Why a chunk does not compile; `None` if it does.
fn compile_error(vm: &mut Vm, chunk: &str) -> Result<Option<String>, CallError> {
    const COMPILE: &[u8] = b"local _, message = loadstring(..., '=shell') return message";
    let argument = Value::String(chunk.as_bytes().to_vec());
    let results = vm.run_script(CHUNK_NAME, COMPILE, &[argument], None)?;
    Ok(match results.into_iter().next() {
        Some(Value::String(message)) => Some(String::from_utf8_lossy(&message).into_owned()),
        _ => None,
    })
}

fn is_unfinished(message: &str) -> bool {
    message.ends_with("near '<eof>'")
}

fn not_lua(message: String) -> Outcome {
    if is_unfinished(&message) { Outcome::Unfinished } else { Outcome::NotUnderstood(message) }
}
