//! Runs clients' scripts, each in the transaction that it is given.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokaido_script::{CallError, Mode, RedisCall, Scope, Transaction, Value};
use tokaido_wire::resp::Version;

use super::{cache::Script, host::EvalHost, result, thread::ThreadScripts};
use crate::{
    Procedures,
    call_statistics::CallStatistics,
    metrics,
    redis::{call::Call, failure::Failure, session::Session},
};

/// The arguments of EVAL before the keys: the name, the script, and the number of keys.
const HEAD_LEN: usize = 3;

/// A script, and how it is called, without the arguments themselves.
pub(crate) struct ScriptCall {
    pub(super) script: Arc<Script>,
    pub(super) mode: Mode,
    pub(super) keys: usize,
}

impl ScriptCall {
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether a worker may run it itself if it only reads.
    pub(crate) fn runs_inline(&self) -> bool {
        self.script.statistics.is_short()
    }
}

/// Runs a client's Lua code in an open transaction. Also returns the protocol version that the code has chosen.
/// `run` gets the keys, which are the first arguments after the head, and the other arguments.
pub(in crate::redis) fn run_lua(
    call: &mut Call<'_>,
    session: &Session,
    procedures: &mut Procedures<'_>,
    transaction: Transaction<'_>,
    (mode, keys, statistics): (Mode, usize, &CallStatistics),
    run: impl FnOnce(
        &mut ThreadScripts,
        (&[&[u8]], &[&[u8]]),
        Scope<'_>,
    ) -> Result<Result<Value, CallError>, Failure>,
) -> Result<(Version, Result<Value, CallError>), Failure> {
    metrics::add(&session.client().done.procedure_calls, 1);
    let shared = call.shared;
    let arguments: Vec<&[u8]> = call.request.arguments_from(HEAD_LEN).collect();
    let (keys, arguments) = arguments.split_at(keys.min(arguments.len()));
    let mut host = EvalHost::new(shared, session, mode, call.reader.clone());
    let transaction = match (transaction, mode) {
        (Transaction::Write(tx), Mode::Read) => Transaction::Read(tx),
        (Transaction::Write(tx), Mode::Write) => Transaction::Write(tx),
        (Transaction::Read(tx), _) => Transaction::Read(tx),
    };
    let scope = Scope { transaction, host: Some(&mut host) };
    let started = Instant::now();
    let called = procedures.with_scripts(|scripts| run(scripts, (keys, arguments), scope))?;
    let took = started.elapsed();
    let short_max = Duration::from_micros(shared.limits().script_short_us);
    statistics.called(took, took <= short_max);
    let version = host.version();
    call.messages.append(&mut host.into_messages());
    Ok((version, called))
}

/// Runs a script in an open transaction, and writes its result.
pub(in crate::redis) fn call_in(
    call: &mut Call<'_>,
    session: &Session,
    procedures: &mut Procedures<'_>,
    transaction: Transaction<'_>,
    script_call: &ScriptCall,
) -> Result<(), Failure> {
    let ScriptCall { script, mode, keys } = script_call;
    let shared = call.shared;
    let how = (*mode, *keys, &script.statistics);
    let (version, called) = run_lua(
        call,
        session,
        procedures,
        transaction,
        how,
        |scripts, (keys, arguments), scope| {
            scripts.compile(shared, script)?;
            let call = RedisCall { script: script.as_redis(), keys, arguments };
            scripts.call(shared, call, scope)
        },
    )?;
    match called {
        Ok(value) => result::write(call.reply, version, &value),
        // The error is a reply like any other, and the transaction is committed.
        Err(CallError::Raised { message, .. }) if shared.keeps_failed_scripts() => {
            call.reply.error(&message);
        }
        Err(error) => return Err(failure(script, error)),
    }
    call.check_reply()
}

/// The error that the client gets for a failed script.
fn failure(script: &Script, error: CallError) -> Failure {
    match error {
        CallError::Raised { message, .. } => Failure::Script(message),
        CallError::Interrupted => Failure::Script(format!(
            "ERR Script killed by user with SCRIPT KILL. script: {}",
            script.as_redis().name
        )),
        other => Failure::other(format!("script {other}")),
    }
}

/// Compiles and caches a script, and replies with its name.
pub(in crate::redis) fn load(
    call: &mut Call<'_>,
    procedures: &mut Procedures<'_>,
    script: &Arc<Script>,
) -> Result<(), Failure> {
    procedures.with_scripts(|scripts| scripts.compile(call.shared, script))?;
    call.reply.bulk(script.as_redis().name.as_bytes());
    Ok(())
}
