//! A Lua virtual machine and the calls into it.

use std::{sync::Arc, time::Duration};

use tokaido_store::{ReadTransaction, Store, WriteTransaction, Writer};

use crate::{HttpRequest, HttpResponse, LoadError, Procedure, ProcedureId, Sources, Value};

/// What one call may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Wall-clock time of one call.
    pub time: Duration,
    /// Memory of the VM, in bytes.
    pub memory_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(1), memory_bytes: 256 << 20 }
    }
}

/// A VM could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a Lua VM: {0}")]
pub struct VmError(pub(crate) String);

/// A call failed. The caller rolls the transaction back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The procedure raised, or did something that is not allowed.
    #[error("{message}")]
    Raised {
        /// `file:line: message`.
        message: String,
        /// Lua's stack, a line a level.
        traceback: String,
    },
    /// It ran past [`Limits::time`] and was stopped.
    #[error("{name} was stopped after {limit_ms} ms, its time limit; nothing of it remains")]
    TimeLimit {
        /// The procedure.
        name: String,
        /// The limit in ms.
        limit_ms: u64,
    },
    /// It needed more than [`Limits::memory_bytes`].
    #[error("{name} needed more than {limit_bytes} bytes, its memory limit; nothing of it remains")]
    MemoryLimit {
        /// The procedure.
        name: String,
        /// The limit in bytes.
        limit_bytes: usize,
    },
    /// An argument or a result has no form on the other side.
    #[error("{message}")]
    Value {
        /// Which one and why.
        message: String,
    },
}

/// The transaction that a call runs in.
pub enum Transaction<'t> {
    /// For [`Mode::Read`](crate::Mode::Read).
    Read(&'t mut dyn ReadTransaction),
    /// For [`Mode::Write`](crate::Mode::Write); a read procedure may run in it, too.
    Write(&'t mut dyn WriteTransaction),
}

/// A Lua virtual machine with every procedure loaded. It belongs to one thread.
pub struct Vm {
    _not_send: std::marker::PhantomData<*mut ()>,
}

impl Vm {
    /// Starts a VM and loads `sources`. Files with errors are left out and reported; the others
    /// serve.
    ///
    /// # Errors
    /// If LuaJIT cannot start.
    pub fn new(
        _store: &Arc<dyn Store>,
        _sources: &Sources,
        _limits: Limits,
    ) -> Result<(Self, Vec<LoadError>), VmError> {
        unimplemented!()
    }

    /// Every procedure, in the order of module and name.
    #[must_use]
    pub fn procedures(&self) -> &[Procedure] {
        unimplemented!()
    }

    /// The procedure of that name.
    #[must_use]
    pub fn find(&self, _name: &[u8]) -> Option<ProcedureId> {
        unimplemented!()
    }

    /// Calls a procedure. On `Err` the transaction must be rolled back.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call(
        &mut self,
        _procedure: ProcedureId,
        _transaction: Transaction<'_>,
        _arguments: &[Value],
    ) -> Result<Value, CallError> {
        unimplemented!()
    }

    /// Calls a procedure that has a route, and fills `response`.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call_http(
        &mut self,
        _procedure: ProcedureId,
        _transaction: Transaction<'_>,
        _request: &HttpRequest<'_>,
        _response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        unimplemented!()
    }

    /// Runs a chunk outside of any transaction, without limits, for `tokaido run` and the shell.
    /// In it, `tokaido.transact(f, …)` calls `f(tx, …)` in a transaction that is durable when it
    /// returns, `tokaido.snapshot(f, …)` calls it on a snapshot, and `print` writes to stdout.
    /// Globals may be set, and stay between calls, so that a session can build on them.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn run_script(
        &mut self,
        _chunk_name: &str,
        _text: &[u8],
        _arguments: &[Value],
        _writer: &mut dyn Writer,
    ) -> Result<Vec<Value>, CallError> {
        unimplemented!()
    }
}
