//! What native functions know about the running call.

use std::{ffi::c_int, ptr, sync::Arc};

use tokaido_store::{
    DatabaseId, ReadTransaction, Record, Snapshot, Store, WriteTransaction, Writer, cache::Cache,
};

use super::{
    Exchange, apache::Apache, cabinet::Expressions, functions::SharedFunction, many::Many,
    openresty::Regexes, pages::LoadedPage, texts::Texts, timers::Timers,
};
pub(crate) use crate::Fault;
use crate::{Dialect, Host, Limits, Scope, Transaction, TyrantCommons, Value, convert::Converter};

/// No, nothing, not there.
pub(crate) const NO: i32 = 0;
/// Yes, there it is.
pub(crate) const YES: i32 = 1;
/// Yes, and the reply's integer is beyond what a double holds exactly.
pub(crate) const WIDE: i32 = 2;
/// The transaction conflicted with another one and is to be run again.
pub(crate) const CONFLICT: i32 = 3;
/// It failed; the reply's data is the message.
pub(crate) const FAILED: i32 = -1;

/// The largest integer up to which a double represents every integer exactly.
pub(crate) const EXACT_MAX: i64 = 1 << 53;

/// A buffer up to this capacity, in bytes, is kept for the next call.
pub(super) const BUFFER_KEPT_MAX: usize = 1 << 20;

/// Where a native function leaves its results. Lua reads it at a constant address, so the layout is
/// repeated in `lua/native.lua`.
#[repr(C)]
pub(crate) struct Reply {
    pub(crate) data: *const u8,
    pub(crate) key: *const u8,
    pub(crate) data_len: u32,
    pub(crate) key_len: u32,
    pub(crate) number: f64,
    pub(crate) integer: i64,
    pub(crate) flags: f64,
    pub(crate) expires_at_ms: f64,
    /// What was read ahead for a scan; see `scan.rs`.
    pub(crate) ahead: *const u8,
    /// Changes whenever that is replaced, or may be out of date with the database.
    pub(crate) ahead_number: f64,
    /// Its length, in bytes.
    pub(crate) ahead_len: f64,
    /// Changes whenever the expressions of `ngx.re` were freed, and Lua's references to them are stale.
    pub(crate) regexes_number: f64,
}

impl Reply {
    pub(crate) fn data(&mut self, data: &[u8]) {
        self.data = data.as_ptr();
        self.data_len = data.len() as u32;
    }

    pub(crate) fn key(&mut self, key: &[u8]) {
        self.key = key.as_ptr();
        self.key_len = key.len() as u32;
    }

    /// Sets number and integer, and gives the code that tells which one to use.
    pub(crate) fn integer(&mut self, integer: i64) -> i32 {
        self.integer = integer;
        self.number = integer as f64;
        if (-EXACT_MAX..=EXACT_MAX).contains(&integer) { YES } else { WIDE }
    }

    /// From here on, scans do not continue with what was read ahead for them.
    pub(crate) fn outdate_ahead(&mut self) {
        self.ahead_number += 1.0;
    }

    pub(crate) fn record(&mut self, record: &Record<'_>) -> i32 {
        self.data(record.value);
        self.flags = f64::from(record.flags);
        self.expires_at_ms = record.expires_at_ms.map_or(-1.0, |at| at as f64);
        self.integer(i64::try_from(record.version).unwrap_or(i64::MAX))
    }
}

/// What the running call was lent. The two transactions are the same object.
#[derive(Clone, Copy)]
struct Running {
    read: *mut dyn ReadTransaction,
    write: Option<*mut dyn WriteTransaction>,
    host: Option<*mut dyn Host>,
}

/// The store that scripts and procedures work on, or why there is none.
pub(crate) type StoreOrReason = Result<Arc<dyn Store>, Arc<str>>;

/// What native functions get as their first argument. One per VM, at a fixed address.
pub(crate) struct Context {
    pub(crate) reply: Reply,
    pub(crate) limits: Limits,
    store: StoreOrReason,
    running: Option<Running>,
    poison: Option<String>,
    /// Holds what `reply.data` points to if that is not the store's.
    pub(crate) scratch: Vec<u8>,
    /// What `reply.key` points to if that says why something failed.
    pub(crate) message: Vec<u8>,
    pub(crate) many: Many,
    pub(crate) page: LoadedPage,
    pub(crate) ahead: Vec<u8>,
    /// The caches that Lua has handles to, by their mount. None is ever removed.
    caches: Vec<Option<Arc<Cache>>>,
    pub(crate) exchange: Exchange,
    pub(crate) apache: Apache,
    /// How a procedure is declared as one that writes, for a message.
    pub(crate) how_to_write: &'static str,
    /// The running procedure, for messages and the log.
    pub(crate) procedure: String,
    /// How many databases had been dropped when Lua last dropped its handles.
    pub(crate) dropped: u64,
    /// Whether a seed was set for `math.random` since the last call began.
    pub(crate) is_seeded: bool,
    /// The reply of the last command, if Lua has to fetch it from here.
    pub(crate) replied: Value,
    /// Compiled regular expressions.
    pub(super) expressions: Expressions,
    /// What Tokyo Tyrant's scripts share.
    pub(crate) tyrant: Arc<TyrantCommons>,
    /// Their locks that the call has taken and not released.
    pub(super) locks_taken: Vec<Box<[u8]>>,
    pub(super) regexes: Regexes,
    pub(crate) timers: Timers,
    /// Only within `run_script`.
    pub(crate) writer: Option<*mut dyn Writer>,
    pub(crate) snapshot: Option<Box<dyn Snapshot>>,
    pub(crate) lua_side: LuaSide,
    /// A value being pushed, kept here because a raise would not drop it.
    pub(crate) parsed: Option<Value>,
    /// What the next call from Rust runs.
    pub(crate) entering: Option<Entering>,
    /// The functions of `Vm::set_function`, by the index that Lua knows them by.
    pub(crate) functions: Vec<SharedFunction>,
}

/// Registry references to what Rust code called from Lua needs from the prelude.
#[derive(Clone, Copy)]
pub(crate) struct LuaSide {
    pub(crate) converter: Converter,
    /// The list of the procedures' functions.
    pub(crate) runs: c_int,
    /// The transaction that procedures get.
    pub(crate) transaction: c_int,
    /// The globals of Redis scripts.
    pub(crate) redis_globals: c_int,
}

impl LuaSide {
    /// Before the prelude has run.
    fn unset() -> Self {
        let none = mlua::ffi::LUA_NOREF;
        Self { converter: Converter::unset(), runs: none, transaction: none, redis_globals: none }
    }
}

/// A function about to be called, with its arguments. The pointers are to data that the caller holds.
#[derive(Clone, Copy)]
pub(crate) struct Entering {
    pub(crate) target: Target,
    pub(crate) arguments: *const [Value],
}

/// What is called.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// A procedure, by its index in the prelude's list; it gets the transaction first.
    Procedure(i64),
    /// A compiled chunk, by its registry reference.
    Chunk(c_int),
    /// A compiled Redis script, with what becomes the globals KEYS and ARGV.
    Script { chunk: c_int, keys: Texts, arguments: Texts },
    /// A function of a library, with its two arguments.
    Function { function: c_int, keys: Texts, arguments: Texts },
}

impl Context {
    pub(crate) fn new(store: StoreOrReason, limits: Limits) -> Self {
        Self {
            reply: Reply {
                data: ptr::null(),
                key: ptr::null(),
                data_len: 0,
                key_len: 0,
                number: 0.0,
                integer: 0,
                flags: 0.0,
                expires_at_ms: 0.0,
                ahead: ptr::null(),
                ahead_number: 0.0,
                ahead_len: 0.0,
                regexes_number: 0.0,
            },
            limits,
            store,
            running: None,
            poison: None,
            scratch: Vec::new(),
            message: Vec::new(),
            many: Many::default(),
            page: LoadedPage::default(),
            ahead: Vec::new(),
            caches: Vec::new(),
            exchange: Exchange::default(),
            apache: Apache::default(),
            how_to_write: Dialect::NATIVE.how_to_write(),
            procedure: String::new(),
            dropped: 0,
            is_seeded: false,
            replied: Value::Nil,
            expressions: Expressions::default(),
            tyrant: Arc::default(),
            locks_taken: Vec::new(),
            regexes: Regexes::default(),
            timers: Timers::default(),
            writer: None,
            snapshot: None,
            lua_side: LuaSide::unset(),
            parsed: None,
            entering: None,
            functions: Vec::new(),
        }
    }

    /// The store; if there is none, the script is told the reason.
    pub(crate) fn store(&self) -> Result<&Arc<dyn Store>, Fault> {
        self.store.as_ref().map_err(Fault::refused)
    }

    /// Lends a transaction, and the host, to native functions.
    ///
    /// # Safety
    /// Neither may be used otherwise, and both must live, until [`end`](Self::end).
    pub(crate) unsafe fn begin(&mut self, scope: Scope<'_>) {
        self.poison = None;
        self.locks_taken.clear();
        self.reply.outdate_ahead();
        // SAFETY: only lifetimes are extended, and the caller promises to call `end` before they
        // are over.
        let Scope { transaction, host } =
            unsafe { std::mem::transmute::<Scope<'_>, Scope<'static>>(scope) };
        let host = host.map(ptr::from_mut);
        self.running = Some(match transaction {
            Transaction::Read(read) => Running { read, write: None, host },
            Transaction::Write(write) => {
                let write: *mut dyn WriteTransaction = write;
                Running { read: write, write: Some(write), host }
            }
        });
    }

    /// Frees the expressions of `ngx.re` if there are too many. Only while no Lua code runs.
    pub(crate) fn free_regexes(&mut self) {
        if self.regexes.free_if_many() {
            self.reply.regexes_number += 1.0;
        }
    }

    /// Releases the locks that a failed call has taken.
    pub(crate) fn free_locks(&mut self) {
        for key in self.locks_taken.drain(..) {
            self.tyrant.unlock(&key);
        }
    }

    /// Takes the transaction back; from here on native functions refuse. Gives the message of the fault
    /// that forbids committing it, if there was one.
    pub(crate) fn end(&mut self) -> Option<String> {
        self.running = None;
        self.reply.outdate_ahead();
        self.parsed = None;
        if self.scratch.capacity() > BUFFER_KEPT_MAX {
            self.scratch = Vec::new();
        }
        self.many.give_back();
        self.poison.take()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.running.is_some_and(|running| running.write.is_some())
    }

    /// The running transaction, for reading.
    ///
    /// The reference has its own lifetime, so that a record borrowed from it can be put into the reply.
    /// Each native function takes it at most once, and drops it before it returns.
    pub(crate) fn read<'t>(&self) -> Result<&'t mut (dyn ReadTransaction + 'static), Fault> {
        let running = self.running.ok_or_else(ended)?;
        // SAFETY: `begin` was promised that the transaction lives and is used only here until
        // `end`, which clears `running`; VM and context belong to one thread.
        Ok(unsafe { &mut *running.read })
    }

    /// The running transaction, for writing. As [`read`](Self::read). Makes what was read ahead out of
    /// date.
    pub(crate) fn write<'t>(&mut self) -> Result<&'t mut (dyn WriteTransaction + 'static), Fault> {
        let running = self.running.ok_or_else(ended)?;
        let write = running.write.ok_or_else(|| {
            Fault::Refused(format!(
                "{} is a read procedure; {} to write",
                self.procedure, self.how_to_write
            ))
        })?;
        self.reply.outdate_ahead();
        // SAFETY: as in `read`.
        Ok(unsafe { &mut *write })
    }

    /// Whether there is a host to run commands.
    pub(super) fn has_host(&self) -> bool {
        self.running.is_some_and(|running| running.host.is_some())
    }

    /// The running transaction with the host that runs commands in it. As [`read`](Self::read).
    pub(crate) fn host<'t>(
        &mut self,
    ) -> Result<(&'t mut (dyn Host + 'static), Transaction<'t>), Fault> {
        let running = self.running.ok_or_else(ended)?;
        let host = running.host.ok_or_else(|| {
            Fault::Refused(
                "tx:command needs a server around it; without one, use the methods of databases, as tx.main:get(key)"
                    .to_owned(),
            )
        })?;
        self.reply.outdate_ahead();
        // SAFETY: as in `read`.
        Ok(unsafe {
            let transaction = match running.write {
                Some(write) => Transaction::Write(&mut *write),
                None => Transaction::Read(&mut *running.read),
            };
            (&mut *host, transaction)
        })
    }

    /// The writer that `run_script` lends while it runs.
    pub(crate) fn writer<'t>(&self) -> Option<&'t mut (dyn Writer + 'static)> {
        // SAFETY: `run_script` sets and removes it, and meanwhile only native functions use it, each
        // of which drops the reference before it returns.
        self.writer.map(|writer| unsafe { &mut *writer })
    }

    /// Makes a cache known to the native functions that work on caches.
    pub(crate) fn keep_cache(&mut self, database: DatabaseId, cache: &Arc<Cache>) {
        let Some(place) = database.mount() else { return };
        if self.caches.len() <= place {
            self.caches.resize(place + 1, None);
        }
        self.caches[place].get_or_insert_with(|| Arc::clone(cache));
    }

    /// The cache that Lua names by its index. Any transaction may write to it, and the cache knows
    /// nothing of the transaction; but one must be running, as for every other database.
    #[inline]
    pub(crate) fn cache<'t>(&self, index: i32) -> Result<&'t Cache, Fault> {
        if self.running.is_none() {
            return Err(ended());
        }
        self.dictionary(index)
    }

    /// As [`cache`](Self::cache), for shared dictionaries, which are also used outside transactions.
    #[inline]
    pub(crate) fn dictionary<'t>(&self, index: i32) -> Result<&'t Cache, Fault> {
        let place = database(index)?.and_then(DatabaseId::mount);
        let cache = place.and_then(|place| self.caches.get(place)?.as_ref());
        let cache = Arc::as_ptr(cache.ok_or_else(other_kind)?);
        // SAFETY: the context shares ownership of it as long as the context lives. The reference has
        // its own lifetime for the reason that `read` gives.
        Ok(unsafe { &*cache })
    }

    /// From here on the transaction can no longer be committed.
    pub(crate) fn poison(&mut self, why: String) {
        self.poison.get_or_insert(why);
    }

    pub(crate) fn fail(&mut self, fault: Fault) -> i32 {
        let message = match fault {
            Fault::Refused(message) => message,
            Fault::Poisoned(message) => {
                self.poison(message.clone());
                message
            }
        };
        self.scratch.clear();
        self.scratch.extend_from_slice(message.as_bytes());
        self.reply.data(&self.scratch);
        FAILED
    }

    /// Answers with bytes of the context's own, which stay until the next native call.
    pub(crate) fn answer(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> i32 {
        self.scratch.clear();
        write(&mut self.scratch);
        self.reply.data(&self.scratch);
        YES
    }
}

fn ended() -> Fault {
    Fault::Refused(
        "this transaction has ended; a database can only be used while the procedure that got it runs"
            .to_owned(),
    )
}

/// The database that Lua names by its index. `None` stands for one that does not exist yet, which
/// only a read transaction has, and which reads as empty.
pub(crate) fn database(index: i32) -> Result<Option<DatabaseId>, Fault> {
    let Ok(index) = usize::try_from(index) else { return Ok(None) };
    DatabaseId::from_number(index).map(Some).ok_or_else(no_database)
}

#[cold]
pub(crate) fn other_kind() -> Fault {
    Fault::Refused(
        "this function is of another kind of database; call the database's own, as in tx.main:put(key, value)"
            .to_owned(),
    )
}

fn no_database() -> Fault {
    Fault::Refused("this is not a database; take one from tx".to_owned())
}

/// As [`database`], for a write.
pub(crate) fn existing_database(index: i32) -> Result<DatabaseId, Fault> {
    database(index)?.ok_or_else(|| {
        Fault::Refused(
            "this database was taken from a read transaction, where it did not exist; take it from tx again"
                .to_owned(),
        )
    })
}
