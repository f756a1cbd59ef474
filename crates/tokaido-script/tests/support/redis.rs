//! VMs for Redis scripts and functions, on an in-memory store, with a host that knows SET.

use std::time::Duration;

use tokaido_script::{
    CallError, CommandError, CommandReply, FunctionCall, FunctionVm, Host, LibraryError, Limits,
    RedisCall, RedisScript, RedisVm, Scope, Transaction, Value, sha1_hex,
};
use tokaido_store::{NewRecord, Store as _};

use super::MemoryStore;

pub struct RedisBed {
    pub store: MemoryStore,
    pub vm: RedisVm,
    pub functions: FunctionVm,
}

/// The commands that a script can run here.
struct TwoCommands;

impl Host for TwoCommands {
    fn command(
        &mut self,
        transaction: Transaction<'_>,
        arguments: &[&[u8]],
    ) -> Result<CommandReply<'_>, CommandError> {
        let failed = |why: &dyn std::fmt::Display| CommandError::Refused(format!("ERR {why}"));
        match (arguments, transaction) {
            ([b"SET", key, value], Transaction::Write(tx)) => {
                let database =
                    tx.open_database("main", usize::MAX).map_err(|error| failed(&error))?;
                tx.put(database, key, NewRecord::of(value)).map_err(|error| failed(&error))?;
                Ok(CommandReply::Status(b"OK"))
            }
            _ => Err(failed(&"unknown")),
        }
    }
}

impl RedisBed {
    pub fn new(limits: Limits) -> Self {
        let vm = RedisVm::new(limits, (7, 2, 0)).unwrap();
        let functions = FunctionVm::new(limits, (7, 2, 0)).unwrap();
        Self { store: MemoryStore::new(), vm, functions }
    }

    pub fn short() -> Self {
        Self::new(Limits {
            time: Duration::from_millis(100),
            memory_bytes: 32 << 20,
            pattern_steps_max: 200_000,
            ..Limits::default()
        })
    }

    /// Runs a script with the key `k` and the argument `a`, and commits it unless it fails.
    pub fn run(&mut self, text: &str) -> Result<Value, CallError> {
        let (name, text) = (sha1_hex(text.as_bytes()), text.as_bytes());
        let script = RedisScript { name: &name, text };
        let call = RedisCall { script, keys: &[b"k"], arguments: &[b"a"] };
        self.transact(|vm, _, scope| vm.call(call, scope))
    }

    /// Loads a library with this code after its first line.
    pub fn load(&mut self, body: &str) -> Result<(), LibraryError> {
        let code = format!("#!lua name=lib\n{body}");
        self.functions.load("lib", code.as_bytes()).map(drop)
    }

    /// Does the same as [`run`](Self::run), as a library's function.
    pub fn run_function(&mut self, body: &str) -> Result<Value, CallError> {
        let function = format!("function(keys, argv) local KEYS, ARGV = keys, argv {body} end");
        self.load(&format!("redis.register_function('f', {function})")).map_err(|error| {
            CallError::Raised { message: error.to_string(), traceback: String::new() }
        })?;
        let call = FunctionCall { library: "lib", name: "f", keys: &[b"k"], arguments: &[b"a"] };
        self.transact(|_, functions, scope| functions.call(call, scope))
    }

    fn transact(
        &mut self,
        run: impl FnOnce(&mut RedisVm, &mut FunctionVm, Scope<'_>) -> Result<Value, CallError>,
    ) -> Result<Value, CallError> {
        let mut writer = self.store.writer().unwrap();
        let transaction = Transaction::Write(writer.begin().unwrap());
        let scope = Scope { transaction, host: Some(&mut TwoCommands) };
        let result = run(&mut self.vm, &mut self.functions, scope);
        match &result {
            Ok(_) => {
                writer.commit().unwrap();
                writer.flush().unwrap();
            }
            Err(_) => writer.rollback().unwrap(),
        }
        result
    }

    /// The value under a key of `main`, as committed.
    pub fn stored(&self, key: &str) -> Option<Vec<u8>> {
        let database = self.store.find_database("main")?;
        let mut snapshot = self.store.snapshot().unwrap();
        let record = snapshot.get(database, key.as_bytes()).unwrap()?;
        Some(record.value.to_vec())
    }
}
