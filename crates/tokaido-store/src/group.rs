//! Group commit: jobs run one after another on one writer, one flush makes all of them durable, and
//! only then is each answered. Both [`Embedded`](crate::Embedded) and the server do this.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{CommitError, CommitNumber, Store, WriteError, WriteTransaction, Writer};

/// The error message for transactions that a panicking engine did not finish.
const ENGINE_PANICKED: &str = "the engine has panicked, see the log";

/// A writer as the jobs of a group see it. It defers `flush` to the end of the group, and remembers
/// a failure that lost the whole group, so that no job in it is told that it succeeded.
pub struct GroupWriter {
    /// The writer, or why the store gave none.
    inner: Result<Box<dyn Writer>, WriteError>,
    /// Whether a transaction has begun and not ended.
    is_open: bool,
    /// Whether something was committed since the last flush.
    is_dirty: bool,
    /// Why every transaction of this group is lost, if it is.
    lost: Option<CommitError>,
    /// Whether the engine has panicked, so that its state is unknown.
    is_broken: bool,
}

impl GroupWriter {
    /// Groups the transactions on `inner`.
    #[must_use]
    pub fn new(inner: Box<dyn Writer>) -> Self {
        Self::with(Ok(inner))
    }

    /// Groups the transactions on the writer of `store`. If there is none, each job gets the error
    /// when it begins a transaction.
    pub(crate) fn of(store: &dyn Store) -> Self {
        let opened = catch_unwind(AssertUnwindSafe(|| store.writer()));
        Self::with(
            opened.unwrap_or_else(|_| {
                Err(WriteError::Engine { message: ENGINE_PANICKED.to_owned() })
            }),
        )
    }

    fn with(inner: Result<Box<dyn Writer>, WriteError>) -> Self {
        Self { inner, is_open: false, is_dirty: false, lost: None, is_broken: false }
    }

    /// Only called while a transaction is open or a flush is due, so that there is a writer.
    fn inner(&mut self) -> &mut dyn Writer {
        match &mut self.inner {
            Ok(writer) => &mut **writer,
            Err(error) => panic!("no transaction is open: {error}"),
        }
    }

    /// Whether the group is lost, so that it should end here.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Flushes and starts a new group.
    ///
    /// # Errors
    /// None of the group's transactions happened, or with [`CommitError::Undetermined`] it is
    /// unknown.
    pub fn end_group(&mut self) -> Result<(), CommitError> {
        let is_dirty = std::mem::take(&mut self.is_dirty);
        if !self.is_lost() && is_dirty {
            let flushed = self.guard(|writer| writer.flush());
            self.lost = flushed.err();
        }
        match &self.lost {
            Some(error) if self.is_broken => Err(error.clone()),
            _ => self.lost.take().map_or(Ok(()), Err),
        }
    }

    /// Calls the engine outside of any job. If it panics, the jobs must still be told.
    fn guard<T>(
        &mut self,
        call: impl FnOnce(&mut dyn Writer) -> Result<T, CommitError>,
    ) -> Result<T, CommitError> {
        let called = catch_unwind(AssertUnwindSafe(|| call(self.inner())));
        called.unwrap_or_else(|_| {
            self.is_broken = true;
            Err(CommitError::Undetermined { message: ENGINE_PANICKED.to_owned() })
        })
    }
}

impl Writer for GroupWriter {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        if let Some(error) = &self.lost {
            return Err(WriteError::Engine { message: error.to_string() });
        }
        let inner = self.inner.as_mut().map_err(|error| error.clone())?;
        let transaction = inner.begin()?;
        self.is_open = true;
        Ok(transaction)
    }

    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        self.inner().transaction()
    }

    fn commit(&mut self) -> Result<CommitNumber, CommitError> {
        let result = self.inner().commit();
        self.is_open = false;
        match &result {
            Ok(_) => self.is_dirty = true,
            Err(CommitError::Conflict) => {}
            Err(error) => self.lost = Some(error.clone()),
        }
        result
    }

    fn rollback(&mut self) -> Result<(), CommitError> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        let result = self.guard(|writer| writer.rollback());
        if let Err(error) = &result {
            self.lost = Some(error.clone());
        }
        result
    }

    /// Does nothing: the group is flushed as a whole, and no job is answered before that.
    fn flush(&mut self) -> Result<(), CommitError> {
        Ok(())
    }

    fn tidy(&mut self) -> Result<(), WriteError> {
        if self.lost.is_some() || self.inner.is_err() {
            return Ok(());
        }
        let mut tidied = Ok(());
        let ran = self.guard(|writer| {
            tidied = writer.tidy();
            Ok(())
        });
        if let Err(error) = ran {
            let message = error.to_string();
            self.lost = Some(error);
            return Err(WriteError::Engine { message });
        }
        tidied
    }

    fn may_wait(&self) -> bool {
        self.is_lost() || self.inner.as_ref().map_or(true, |writer| writer.may_wait())
    }
}

impl AsMut<Self> for GroupWriter {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// The jobs covered by one flush.
///
/// Invariant: each job that was run is answered exactly once, with the outcome of the flush that
/// covers it. A panic in a job or in the engine does not keep the others from being answered.
pub struct Group<J> {
    ran: Vec<FinishedJob<J>>,
}

struct FinishedJob<J> {
    job: J,
    has_panicked: bool,
}

impl<J> Default for Group<J> {
    fn default() -> Self {
        Self { ran: Vec::new() }
    }
}

impl<J> Group<J> {
    /// The number of jobs that have run but not been answered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ran.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ran.is_empty()
    }

    /// Runs a job: one or more transactions on the writer of `context`. If it leaves one open, that
    /// one alone is rolled back.
    pub fn run<C: AsMut<GroupWriter>>(
        &mut self,
        mut job: J,
        context: &mut C,
        run: impl FnOnce(&mut J, &mut C),
    ) {
        let ran = catch_unwind(AssertUnwindSafe(|| run(&mut job, context)));
        if ran.is_err() {
            tracing::error!("a panic in a write; its transaction is rolled back");
        }
        // Does nothing unless one is open. The writer remembers a failure for the group.
        let _ = context.as_mut().rollback();
        self.ran.push(FinishedJob { job, has_panicked: ran.is_err() });
    }

    /// Answers every job with the result of [`end_group`](GroupWriter::end_group).
    pub fn answer(
        &mut self,
        outcome: &Result<(), CommitError>,
        mut answer: impl FnMut(J, Result<(), CommitError>),
    ) {
        for FinishedJob { job, has_panicked } in self.ran.drain(..) {
            let outcome = if has_panicked { Err(panicked()) } else { outcome.clone() };
            if catch_unwind(AssertUnwindSafe(|| answer(job, outcome))).is_err() {
                tracing::error!("a panic while answering a write; nobody gets its answer");
            }
        }
    }
}

fn panicked() -> CommitError {
    CommitError::Failed { message: "an error in the program itself, see its log".to_owned() }
}
