//! Hashes, lists, sets, sorted sets and streams, as Ruby's handles use them: what Redis commands do to the same values,
//! without a command. The calls of each kind are numbered as in `ruby/collections.rb`.

mod hash;
mod list;
mod set;
mod sorted_set;
mod stream;
mod stream_group;

pub(crate) use stream::run as run_stream;

use std::{
    hash::{BuildHasher, RandomState},
    ops::ControlFlow,
};

use tokaido_script::{Fault, Value};
use tokaido_store::{DatabaseId, ReadTransaction, WriteTransaction};

use crate::{
    context::{Context, database_of},
    items::{self, Argument},
    operation::Operation,
};

/// A page ends after this many bytes. The first entry is read whatever its size.
const PAGE_BYTES_MAX: usize = 16 << 10;

/// Runs a call of a collection. The arguments are its number, the key and the call's own arguments.
pub(crate) fn run(
    context: &mut Context,
    operation: Operation,
    this: i64,
    arguments: &[Argument<'_>],
) -> Result<(), Fault> {
    let number = arguments[0].integer("a call")?;
    let key = arguments[1].text("a key")?;
    let call = Call { database: database_of(this)?, key: &key, arguments: &arguments[2..] };
    match operation {
        Operation::Hash => hash::run(context, number, &call),
        Operation::List => list::run(context, number, &call),
        Operation::Set => set::run(context, number, &call),
        _ => sorted_set::run(context, number, &call),
    }
}

/// A call of a collection.
struct Call<'a> {
    /// `None` stands for a database that does not exist yet.
    database: Option<DatabaseId>,
    key: &'a [u8],
    arguments: &'a [Argument<'a>],
}

impl Call<'_> {
    /// The transaction to read from, and the database; `None` if it does not exist.
    fn to_read<'t>(
        &self,
        context: &Context,
    ) -> Result<Option<(&'t mut (dyn ReadTransaction + 'static), DatabaseId)>, Fault> {
        let transaction = context.read()?;
        Ok(self.database.map(|id| (transaction, id)))
    }

    /// The transaction to write to, and the database.
    fn to_write<'t>(
        &self,
        context: &mut Context,
    ) -> Result<(&'t mut (dyn WriteTransaction + 'static), DatabaseId), Fault> {
        let transaction = context.write()?;
        let id = self.database.ok_or_else(|| Fault::refused("this database is not there"))?;
        Ok((transaction, id))
    }

    /// An argument that is text.
    fn text(&self, place: usize, what: &str) -> Result<std::borrow::Cow<'_, [u8]>, Fault> {
        self.argument(place).text(what)
    }

    fn argument(&self, place: usize) -> Argument<'_> {
        self.arguments.get(place).copied().unwrap_or(Argument::Nil)
    }

    fn integer(&self, place: usize, what: &str) -> Result<i64, Fault> {
        self.argument(place).integer(what)
    }

    /// A score, or an increment of one; infinities are allowed.
    fn number(&self, place: usize, what: &str) -> Result<f64, Fault> {
        match self.argument(place) {
            Argument::Number(number) if number.is_infinite() => Ok(number),
            other => other.number(what),
        }
    }

    /// The maximum number of entries of a page.
    fn entries(&self, place: usize) -> Result<usize, Fault> {
        Ok(usize::try_from(self.integer(place, "a number of entries")?).unwrap_or(1).max(1))
    }
}

fn answer_boolean(context: &mut Context, is_true: bool) {
    context.answer.push(items::boolean(is_true));
}

fn answer_count(context: &mut Context, count: u64) {
    context.answer.push(items::integer(i64::try_from(count).unwrap_or(i64::MAX)));
}

/// Answers with bytes, or with nil.
fn answer_text(context: &mut Context, text: Option<Vec<u8>>) {
    if let Some(text) = text {
        context.answer_bytes(text);
    }
}

fn text(bytes: &[u8]) -> Value {
    Value::String(bytes.to_vec())
}

fn pair(first: &[u8], second: Value) -> Value {
    Value::Array(vec![text(first), second])
}

/// A random number.
fn random() -> u64 {
    RandomState::new().hash_one(0u8)
}

/// A page that is being filled: up to `left` more entries, and about [`PAGE_BYTES_MAX`].
struct Page {
    entries: Vec<Value>,
    left: usize,
    bytes: usize,
}

impl Page {
    fn begin(left: usize) -> Self {
        Self { entries: Vec::new(), left, bytes: 0 }
    }

    /// Adds an entry of `bytes` bytes; breaks if it is the last one.
    fn push(&mut self, entry: Value, bytes: usize) -> ControlFlow<()> {
        self.entries.push(entry);
        self.left -= 1;
        self.bytes += bytes;
        if self.left > 0 && self.bytes < PAGE_BYTES_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    fn answer(self, context: &mut Context) {
        context.answer_value(Value::Array(self.entries));
    }
}
