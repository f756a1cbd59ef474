//! `play_script`: a call of a procedure, with a table of pairs in and out.

use tokaido_script::{CallError, ProcedureId, Transaction, Value};
use tokaido_wire::kyoto::Pairs;

use super::refusal::{Kind, Refusal};
use crate::{
    Procedures, Shared, access::Principal, placement::Called, procedures::CallFailure,
    program::Program, redis::ScriptCommands,
};

/// A call of a procedure by its name.
#[derive(Clone)]
pub(crate) struct Script {
    principal: Principal,
    name: Vec<u8>,
    arguments: Vec<Value>,
}

impl Script {
    pub(crate) fn new<'p>(
        principal: Principal,
        name: &[u8],
        pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>,
    ) -> Self {
        Self { principal, name: name.to_vec(), arguments: arguments(pairs) }
    }

    /// The procedure of that name, in this program.
    pub(crate) fn find(&self, shared: &Shared, program: &Program) -> Result<ProcedureId, Refusal> {
        let id = program.find(&self.name).ok_or_else(|| {
            let why = shared.program.loading().why_missing(&self.name);
            let why = why.unwrap_or_else(|| "no such scripting procedure".to_owned());
            Refusal::new(Kind::NotImplemented, why)
        })?;
        if program.get(id).route.is_some() {
            let message = "this procedure answers a route of HTTP, and is not called by name";
            return Err(Refusal::new(Kind::Invalid, message));
        }
        Ok(id)
    }

    /// Calls it. Returns nothing if it writes and the transaction does not; otherwise its outputs,
    /// or a refusal that undoes nothing, and what it has published.
    pub(crate) fn run(
        &self,
        shared: &Shared,
        procedures: &mut Procedures<'_>,
        transaction: Transaction<'_>,
    ) -> Result<Called<Result<Pairs, Refusal>>, Refusal> {
        let id = self.find(shared, procedures.program())?;
        if !procedures.fits(id, &transaction) {
            return Ok(None);
        }
        let mut commands = {
            let name = &procedures.get(id).name;
            ScriptCommands::for_call(shared, &self.principal, shared.main_selected(), name)?
        };
        let called = procedures.call(id, commands.in_transaction(transaction), &self.arguments);
        let outcome = match called {
            Err(failure) if failure.is_kept() => Err(failure.into()),
            called => Ok(outputs(called?).ok_or_else(|| {
                let message = "it returned no table of strings, numbers and booleans".to_owned();
                procedures.failed(id, CallError::Value { message })
            })?),
        };
        Ok(Some((outcome, commands.into_messages())))
    }
}

impl From<CallFailure> for Refusal {
    fn from(failure: CallFailure) -> Self {
        match (failure.error, failure.request_id) {
            (CallError::Refused { message, code, .. }, _) => {
                Self::new(kind(code.as_deref()), message)
            }
            (_, Some(id)) => {
                let message = format!("the scripting procedure failed; the log has it as {id}");
                Self::new(Kind::Internal, message)
            }
            (error, None) => Self::new(Kind::Internal, error.to_string()),
        }
    }
}

/// The kind of a procedure's refusal, by its code: one of those that Kyoto Tycoon's scripts return.
fn kind(code: Option<&str>) -> Kind {
    match code {
        Some("RVENOIMPL") => Kind::NotImplemented,
        Some("RVEINVALID") => Kind::Invalid,
        Some("RVETIMEOUT") => Kind::TimedOut,
        Some("RVEINTERNAL") => Kind::Internal,
        _ => Kind::Logic,
    }
}

/// The arguments of a procedure: one table with these fields.
fn arguments<'p>(pairs: impl Iterator<Item = (&'p [u8], &'p [u8])>) -> Vec<Value> {
    let text = |bytes: &[u8]| Value::String(bytes.to_vec());
    vec![Value::Map(pairs.map(|(name, value)| (text(name), text(value))).collect())]
}

/// The pairs of the table that a procedure has returned; nil means none.
fn outputs(result: Value) -> Option<Pairs> {
    let fields = match result {
        Value::Nil => Vec::new(),
        Value::Map(fields) => fields,
        Value::Array(items) => (1..).map(Value::Integer).zip(items).collect(),
        _ => return None,
    };
    let pairs = fields.into_iter().map(|(name, value)| Some((text(name)?, text(value)?)));
    pairs.collect()
}

fn text(value: Value) -> Option<Vec<u8>> {
    Some(match value {
        Value::String(bytes) => bytes,
        Value::Integer(number) => number.to_string().into(),
        Value::Number(number) => number.to_string().into(),
        Value::Boolean(truth) => truth.to_string().into(),
        _ => return None,
    })
}
