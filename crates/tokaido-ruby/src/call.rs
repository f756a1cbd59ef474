//! Calls from one procedure to another, in the same language or a different one.

use tokaido_script::{Fault, Value, check_arguments};

use crate::{
    context::{Context, text_of},
    items::Argument,
};

/// Calls a procedure of another language, whose name and arguments were gathered. Answers true and
/// the result, or false, a message, a code and a status.
pub(crate) fn elsewhere(context: &mut Context) -> Result<(), Fault> {
    let Value::Array(mut arguments) = context.gathering.take() else { return Ok(()) };
    if arguments.is_empty() {
        return Err(Fault::refused("a call takes the name of a procedure"));
    }
    let name = text_of(arguments.remove(0), "the name of a procedure")?;
    check_arguments(&arguments).map_err(Fault::refused)?;
    let (host, transaction) = context.host()?;
    let told = match host.call(transaction, &name, &arguments) {
        Ok(result) => vec![Value::Boolean(true), result],
        Err(error) => {
            let (code, status) = error.code_and_status();
            let message = error.to_string();
            let text = |text: &str| Value::String(text.as_bytes().to_vec());
            let status = status.map_or(Value::Nil, |status| Value::Integer(status.into()));
            let told = [text(&message), code.map_or(Value::Nil, text), status];
            if error.is_final() {
                context.poison(message);
            }
            [vec![Value::Boolean(false)], told.to_vec()].concat()
        }
    };
    context.answer_value(Value::Array(told));
    Ok(())
}

/// Notes that a writing procedure of this VM has failed, so that the transaction of its caller fails with it.
pub(crate) fn failed(context: &mut Context, arguments: &[Argument<'_>]) -> Result<(), Fault> {
    let message = arguments[0].text("a message")?;
    context.poison(String::from_utf8_lossy(&message).into_owned());
    Ok(())
}
