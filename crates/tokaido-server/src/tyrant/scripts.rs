//! `ext`: a call of a procedure with a key and a value.

use tokaido_script::{CallError, ProcedureId, Transaction, Value};

use super::refusal::{ErrorCode, Refusal};
use crate::{
    Procedures, Shared, access::Principal, placement::Called, program::Program,
    redis::ScriptCommands,
};

/// A call of a procedure by its name.
#[derive(Clone)]
pub(crate) struct Script {
    principal: Principal,
    name: Vec<u8>,
    arguments: [Value; 2],
}

impl Script {
    pub(crate) fn new(principal: Principal, name: &[u8], key: &[u8], value: &[u8]) -> Self {
        let arguments = [key, value].map(|bytes| Value::String(bytes.to_vec()));
        Self { principal, name: name.to_vec(), arguments }
    }

    /// The procedure of that name, in this program.
    pub(crate) fn find(&self, shared: &Shared, program: &Program) -> Result<ProcedureId, Refusal> {
        let id = program.find(&self.name).ok_or_else(|| {
            let why = shared.program.loading().why_missing(&self.name);
            Refusal::invalid(why.unwrap_or_else(|| "there is no such procedure".to_owned()))
        })?;
        if program.get(id).route.is_some() {
            let reason = "this procedure answers a route of HTTP, and is not called by name";
            return Err(Refusal::invalid(reason));
        }
        Ok(id)
    }

    /// As [`call`](Self::call), but a missing result is a refusal, and undoes nothing.
    pub(crate) fn run(
        &self,
        shared: &Shared,
        procedures: &mut Procedures<'_>,
        transaction: Transaction<'_>,
    ) -> Result<Called<Result<Vec<u8>, Refusal>>, Refusal> {
        let called = self.call(shared, procedures, transaction)?;
        Ok(called.map(|(result, messages)| {
            let bytes = |result: Option<Vec<u8>>| {
                result.ok_or_else(|| Refusal::new(ErrorCode::Other, "the procedure gave no result"))
            };
            (result.and_then(bytes), messages)
        }))
    }

    /// Calls it. Returns nothing if it writes and the transaction does not; otherwise its result,
    /// or a refusal that undoes nothing, and what it has published.
    #[expect(clippy::type_complexity, reason = "each part may be missing for a reason of its own")]
    pub(super) fn call(
        &self,
        shared: &Shared,
        procedures: &mut Procedures<'_>,
        transaction: Transaction<'_>,
    ) -> Result<Called<Result<Option<Vec<u8>>, Refusal>>, Refusal> {
        let id = self.find(shared, procedures.program())?;
        if !procedures.fits(id, &transaction) {
            return Ok(None);
        }
        let mut commands = {
            let name = &procedures.get(id).name;
            ScriptCommands::for_call(shared, &self.principal, shared.main_selected(), name)?
        };
        let result =
            match procedures.call(id, commands.in_transaction(transaction), &self.arguments) {
                Err(failure) if failure.is_kept() => {
                    return Ok(Some((Err(failure.into()), commands.into_messages())));
                }
                called => called?,
            };
        let result = match result {
            Value::String(bytes) => bytes,
            Value::Integer(number) => number.to_string().into(),
            Value::Number(number) => number.to_string().into(),
            Value::Boolean(truth) => truth.to_string().into(),
            Value::Nil => return Ok(Some((Ok(None), commands.into_messages()))),
            _ => {
                let message = "it returned no string, number or boolean".to_owned();
                return Err(procedures.failed(id, CallError::Value { message }).into());
            }
        };
        Ok(Some((Ok(Some(result)), commands.into_messages())))
    }
}
