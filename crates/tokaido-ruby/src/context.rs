//! What the operations of Ruby's methods know about the running call, and how C reaches them.

use std::{
    cell::RefCell,
    ffi::{c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::Arc,
};

use tokaido_mruby_sys::{Calls, Item};
use tokaido_script::{
    CommandError, CommandReply, DocumentRoot, Expressions, Fault, Host, HostFunction, Limits,
    Procedure, Scope, Sources, Transaction, Value,
    json::{self, Rules},
};
use tokaido_store::{DatabaseId, ReadTransaction, Snapshot, Store, WriteTransaction, Writer};

use crate::{
    call, collections, database, exchange,
    items::{self, Argument, Gathering},
    load, machine,
    operation::Operation,
    regexp, scan, script,
    setup::Setup,
};

/// A function of the host program, which is kept when the virtual machine is replaced.
pub(crate) type SharedCommand = Rc<RefCell<HostFunction>>;

/// The functions that C calls.
pub(crate) static CALLS: Calls = Calls { native, gather_begin, gather };

/// Maximum number of arguments of an operation; `c/methods.c` has the same.
const ARGUMENTS_MAX: usize = 10;

/// Capacity for items of an answer that is kept between calls.
const ANSWER_ITEMS_KEPT: usize = 64;

/// What was lent to the running call. Both transactions are the same object.
#[derive(Clone, Copy)]
struct Running {
    read: *mut dyn ReadTransaction,
    write: Option<*mut dyn WriteTransaction>,
    host: Option<*mut dyn Host>,
}

/// The context that C passes to every operation. Each VM has one, at a fixed address.
pub(crate) struct Context {
    pub(crate) limits: Limits,
    store: Option<Arc<dyn Store>>,
    pub(crate) sources: Sources,
    /// The procedures that files have declared while being loaded.
    pub(crate) declared: Vec<Procedure>,
    /// The name of the running procedure, for messages and the log.
    pub(crate) procedure: String,
    /// Number of writes since the VM was created, so that a scan notices writes.
    pub(crate) writes: i64,
    pub(crate) exchange: exchange::Exchange,
    pub(crate) gathering: Gathering,
    /// The answer of an operation, which stays valid until the next one.
    pub(crate) answer: Vec<Item>,
    /// Owns what the answer points to, unless the store does.
    pub(crate) scratch: Vec<u8>,
    /// The regular expressions of the VM.
    pub(crate) expressions: Expressions,
    /// The directory below which files may be accessed; `None`: no files.
    pub(crate) document_root: Option<DocumentRoot>,
    /// Begins the transactions of a script while it runs.
    pub(crate) writer: Option<*mut dyn Writer>,
    /// Runs the commands of lines and scripts outside of transactions.
    pub(crate) command: Option<SharedCommand>,
    /// The snapshot that a script reads from.
    pub(crate) snapshot: Option<Box<dyn Snapshot>>,
    value: Value,
    running: Option<Running>,
    poison: Option<String>,
}

impl Context {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self {
            limits: setup.limits,
            store: setup.store.clone(),
            sources: setup.sources.clone(),
            declared: Vec::new(),
            procedure: String::new(),
            writes: 0,
            exchange: exchange::Exchange::default(),
            gathering: Gathering::default(),
            answer: Vec::new(),
            scratch: Vec::new(),
            expressions: Expressions::default(),
            document_root: setup.document_root.as_deref().map(DocumentRoot::new),
            writer: None,
            command: None,
            snapshot: None,
            value: Value::Nil,
            running: None,
            poison: None,
        }
    }

    /// The store in which scripts begin transactions.
    pub(crate) fn store(&self) -> Result<&Arc<dyn Store>, Fault> {
        self.store.as_ref().ok_or_else(no_store)
    }

    /// Lends a transaction and the host to the operations.
    ///
    /// # Safety
    /// Both must live, and not be used in any other way, until [`end`](Self::end).
    pub(crate) unsafe fn begin(&mut self, scope: Scope<'_>) {
        self.poison = None;
        // SAFETY: only lifetimes are extended, and the caller promises to call `end` before they are over.
        let Scope { transaction, host } =
            unsafe { std::mem::transmute::<Scope<'_>, Scope<'static>>(scope) };
        let host = host.map(std::ptr::from_mut);
        self.running = Some(match transaction {
            Transaction::Read(read) => Running { read, write: None, host },
            Transaction::Write(write) => {
                let write: *mut dyn WriteTransaction = write;
                Running { read: write, write: Some(write), host }
            }
        });
    }

    /// Takes the transaction back. Returns the message of the fault that forbids committing it, if there was one.
    pub(crate) fn end(&mut self) -> Option<String> {
        self.running = None;
        self.answer.clear();
        if self.answer.capacity() > ANSWER_ITEMS_KEPT {
            self.answer = Vec::new();
        }
        self.scratch = Vec::new();
        self.value = Value::Nil;
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
    /// The reference is independent of `self`, so that a record borrowed from it can be put into
    /// the answer. Each operation takes it at most once, and drops it when it returns.
    pub(crate) fn read<'t>(&self) -> Result<&'t mut (dyn ReadTransaction + 'static), Fault> {
        let running = self.running.ok_or_else(ended)?;
        // SAFETY: the caller of `begin` promised that the transaction lives and is used only here
        // until `end`, which clears `running`; VM and context belong to one thread.
        Ok(unsafe { &mut *running.read })
    }

    /// The running transaction, for writing. See [`read`](Self::read).
    pub(crate) fn write<'t>(&mut self) -> Result<&'t mut (dyn WriteTransaction + 'static), Fault> {
        let running = self.running.ok_or_else(ended)?;
        let write = running.write.ok_or_else(|| {
            Fault::Refused(match self.snapshot {
                Some(_) => "a snapshot is only read; Tokaido.transact writes".to_owned(),
                None => format!(
                    "{} is a read procedure; declare it with write to write",
                    self.procedure
                ),
            })
        })?;
        self.writes += 1;
        // SAFETY: as in `read`.
        Ok(unsafe { &mut *write })
    }

    /// The running transaction, and the host that runs commands in it. See [`read`](Self::read).
    pub(crate) fn host<'t>(
        &mut self,
    ) -> Result<(&'t mut (dyn Host + 'static), Transaction<'t>), Fault> {
        let running = self.running.ok_or_else(ended)?;
        let host = running.host.ok_or_else(|| {
            Fault::Refused(
                "tx.command, tx.call and Apache::Scoreboard need a server around them".to_owned(),
            )
        })?;
        self.writes += 1;
        // SAFETY: as in `read`.
        Ok(unsafe {
            let transaction = match running.write {
                Some(write) => Transaction::Write(&mut *write),
                None => Transaction::Read(&mut *running.read),
            };
            (&mut *host, transaction)
        })
    }

    /// Answers with a whole value.
    pub(crate) fn answer_value(&mut self, value: Value) {
        self.value = value;
        items::flatten(&self.value, &mut self.answer);
    }

    /// Answers with bytes that are kept here.
    pub(crate) fn answer_bytes(&mut self, bytes: Vec<u8>) {
        self.scratch = bytes;
        self.answer.push(items::bytes(&self.scratch));
    }

    /// Forbids committing the transaction.
    pub(crate) fn poison(&mut self, why: String) {
        self.poison.get_or_insert(why);
    }

    fn fail(&mut self, fault: Fault) {
        let message = match fault {
            Fault::Refused(message) => message,
            Fault::Poisoned(message) => {
                self.poison(message.clone());
                message
            }
        };
        self.answer.clear();
        self.answer_bytes(message.into_bytes());
    }

    /// Runs an operation, which pushes its answer.
    fn run(
        &mut self,
        operation: Operation,
        this: i64,
        arguments: &[Argument<'_>],
    ) -> Result<(), Fault> {
        use Operation as O;
        match operation {
            O::Get | O::Has | O::Record | O::GetAll | O::GetMany | O::Statistics => {
                database::read(self, operation, this, arguments)
            }
            O::Put | O::PutWith | O::Swap | O::Delete | O::Increment | O::IncrementFloat => {
                database::write(self, operation, this, arguments)
            }
            O::Append | O::Expire | O::Clear => database::write(self, operation, this, arguments),
            O::Hash | O::List | O::Set | O::SortedSet => {
                collections::run(self, operation, this, arguments)
            }
            O::Stream => collections::run_stream(self, this),
            O::Page => scan::page(self, this, arguments),
            O::Open | O::Drop | O::Now | O::Writable | O::Writes | O::Log => {
                database::other(self, operation, arguments)
            }
            O::Source | O::Add => load::run(self, operation, arguments),
            O::Command => self.command(),
            O::Call => call::elsewhere(self),
            O::CallFailed => call::failed(self, arguments),
            O::JsonParse | O::JsonGenerate => self.json(operation, arguments),
            O::BeginTransaction | O::Commit | O::RollBack | O::Print => {
                script::run(self, operation, arguments)
            }
            O::RegexpCompile | O::RegexpSearch => regexp::run(self, operation, arguments),
            O::DocumentRoot | O::Stat | O::Figures => machine::run(self, operation, arguments),
            _ => exchange::run(self, operation, arguments),
        }
    }

    fn command(&mut self) -> Result<(), Fault> {
        let Value::Array(arguments) = self.gathering.take() else { return Ok(()) };
        if let Some(command) = self.command.clone().filter(|_| !self.is_running()) {
            let reply = (*command.borrow_mut())(&arguments).map_err(Fault::Refused)?;
            self.answer_value(reply);
            return Ok(());
        }
        if !self.is_running() {
            return Err(Fault::refused(
                "`command` is for a shell that talks to a server; a transaction has tx.command",
            ));
        }
        let mut texts = Vec::with_capacity(arguments.len());
        for argument in arguments {
            texts.push(text_of(argument, "an argument of a command")?);
        }
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let (host, transaction) = self.host()?;
        let reply = host.command(transaction, &texts).map_err(|error| match error {
            CommandError::Refused(message) => Fault::Refused(message),
            CommandError::Failed(message) => Fault::Poisoned(message),
        })?;
        match reply {
            CommandReply::Bytes(bytes) | CommandReply::Status(bytes) => {
                self.answer.push(items::bytes(bytes));
            }
            CommandReply::Value(value) if !value.is_passable() => {
                return Err(Fault::refused("the reply is nested too deeply to be passed on"));
            }
            CommandReply::Value(value) => self.answer_value(value),
        }
        Ok(())
    }

    fn json(&mut self, operation: Operation, arguments: &[Argument<'_>]) -> Result<(), Fault> {
        if operation == Operation::JsonParse {
            let text = arguments[0].text("JSON")?;
            let value = json::decode(&text, Rules::Lua).map_err(Fault::refused)?;
            self.answer_value(value);
            return Ok(());
        }
        let text = self.gathered_json()?;
        self.answer_bytes(text);
        Ok(())
    }

    /// The gathered value as JSON.
    fn gathered_json(&mut self) -> Result<Vec<u8>, Fault> {
        encode(&self.gathering.take())
    }
}

pub(crate) fn encode(value: &Value) -> Result<Vec<u8>, Fault> {
    let mut text = Vec::new();
    json::encode(value, Rules::Lua, &mut text).map_err(Fault::refused)?;
    Ok(text)
}

/// The bytes of a gathered string or number.
pub(crate) fn text_of(value: Value, what: &str) -> Result<Vec<u8>, Fault> {
    match value {
        Value::String(bytes) => Ok(bytes),
        Value::Integer(integer) => Argument::Integer(integer).text(what).map(Into::into),
        Value::Number(number) => Argument::Number(number).text(what).map(Into::into),
        _ => Err(Fault::Refused(format!("{what} is a string, a symbol or a number"))),
    }
}

pub(crate) fn no_store() -> Fault {
    Fault::refused(
        "there is no store here that a transaction could be of; commands reach the server",
    )
}

fn ended() -> Fault {
    Fault::refused(
        "this transaction has ended; a database can only be used while the procedure that got it runs",
    )
}

/// The database whose number a Ruby object holds. `None` stands for one that does not exist yet.
/// Only a read transaction has such a database, and it reads as empty.
pub(crate) fn database_of(this: i64) -> Result<Option<DatabaseId>, Fault> {
    if this == -1 {
        return Ok(None);
    }
    let id = usize::try_from(this).ok().and_then(DatabaseId::from_number);
    id.map(Some).ok_or_else(|| Fault::refused("this is not a database; take one from tx"))
}

/// # Safety
/// C calls it with the context of the running VM, and with arguments that live until it returns.
unsafe extern "C" fn native(
    context: *mut c_void,
    operation: i32,
    this: i64,
    arguments: *const Item,
    count: usize,
    answer: *mut *const Item,
) -> c_int {
    // SAFETY: nothing else uses the context while Ruby runs.
    let context = unsafe { &mut *context.cast::<Context>() };
    context.answer.clear();
    let run = || {
        let operation = usize::try_from(operation).ok().and_then(|at| Operation::ALL.get(at));
        let operation = *operation.ok_or_else(|| Fault::refused("there is no such operation"))?;
        // SAFETY: there are `count` items, whose bytes live until this returns.
        let argument = |place| unsafe { Argument::of(&*arguments.add(place)) };
        match count {
            0 => context.run(operation, this, &[]),
            1 => context.run(operation, this, &[argument(0)]),
            _ => {
                let mut taken = [Argument::Nil; ARGUMENTS_MAX];
                let count = count.min(ARGUMENTS_MAX);
                for (place, taken) in taken.iter_mut().enumerate().take(count) {
                    *taken = argument(place);
                }
                context.run(operation, this, &taken[..count])
            }
        }
    };
    let ran = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Err(Fault::Poisoned("the operation has failed within the server".to_owned()))
    });
    let code = match ran {
        Ok(()) => 0,
        Err(fault) => {
            context.fail(fault);
            1
        }
    };
    if context.answer.is_empty() {
        context.answer.push(items::of_kind(tokaido_mruby_sys::NIL));
    }
    // SAFETY: C provides a place for it.
    unsafe { *answer = context.answer.as_ptr() };
    code
}

/// # Safety
/// As [`native`].
unsafe extern "C" fn gather_begin(context: *mut c_void) {
    // SAFETY: as in `native`.
    let context = unsafe { &mut *context.cast::<Context>() };
    context.gathering.begin(context.limits.memory_bytes);
}

/// # Safety
/// As [`native`].
unsafe extern "C" fn gather(context: *mut c_void, item: *const Item) -> c_int {
    // SAFETY: as in `native`; the item and its bytes live until this returns.
    let is_taken = unsafe { (*context.cast::<Context>()).gathering.add(&*item) };
    c_int::from(!is_taken)
}
