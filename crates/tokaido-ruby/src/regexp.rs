//! The operations behind the methods of `Regexp`.

use tokaido_script::{ExpressionError, Fault, Value};

use crate::{
    context::Context,
    items::{self, Argument},
    operation::Operation,
    pattern,
};

pub(crate) fn run(
    context: &mut Context,
    operation: Operation,
    arguments: &[Argument<'_>],
) -> Result<(), Fault> {
    if operation == Operation::RegexpCompile {
        return compile(context, &arguments[0].text("an expression")?, arguments[1]);
    }
    let number = arguments[0].integer("the number of an expression")?;
    let text = arguments[1].text("a text")?;
    let start = usize::try_from(arguments[2].integer("a place")?).unwrap_or(usize::MAX);
    search(context, number as u64, &text, start)
}

/// Answers with the number of the expression, its number of groups, and their names, each with its number.
fn compile(context: &mut Context, source: &[u8], flags: Argument<'_>) -> Result<(), Fault> {
    let flags = flags.text("flags")?;
    let wrong =
        |why: String| Fault::Refused(format!("{why}: /{}/", String::from_utf8_lossy(source)));
    let pattern = pattern::translate(source).map_err(wrong)?;
    let made = context.expressions.compile(&pattern, &flags);
    let made = made.map_err(|error| Fault::Refused(error.to_string()))?;
    let names = made.names.into_iter().map(|(number, name)| {
        Value::Array(vec![Value::String(name), Value::Integer(number.into())])
    });
    let names = Value::Array(names.collect());
    let number = Value::Integer(made.number as i64);
    context.answer_value(Value::Array(vec![number, Value::Integer(made.groups.into()), names]));
    Ok(())
}

/// Answers with the start and end of the match and its groups, -1 for a group that is not part of
/// it; nil if there is no match, and false if the expression must be compiled again.
fn search(context: &mut Context, number: u64, text: &[u8], start: usize) -> Result<(), Fault> {
    match context.expressions.search(number, text, start) {
        Ok(None) => Ok(()),
        Ok(Some(offsets)) => {
            context.answer.push(items::array(offsets.len()));
            let offset = |&offset: &usize| items::integer(i64::try_from(offset).unwrap_or(-1));
            context.answer.extend(offsets.iter().map(offset));
            Ok(())
        }
        Err(ExpressionError::Freed) => {
            context.answer.push(items::boolean(false));
            Ok(())
        }
        Err(error) => Err(Fault::refused(error)),
    }
}
