//! The binary protocol as the stream loop sees it: bytes to requests, requests to replies.

use std::sync::Arc;

use tokaido_script::Transaction;
use tokaido_store::{
    CommitError, DatabaseId, Kind as RecordKind, ReadTransaction, WriteTransaction,
    transact_in_place, transact_unflushed,
};
use tokaido_wire::kyoto::binary::{
    self, Decoded, Decoder, Item, Items, ListWriter, Request, XT_MAX,
};

use super::{
    access,
    databases::numbered,
    expiry::xt_of,
    figures::Figure,
    records::put,
    refusal::{Kind, Refusal},
    scripts::Script,
};
use crate::{
    Shared,
    access::Principal,
    placement::Place,
    protocol::{Context, Progress, Protocol, Target},
    redis::Message,
    selected::Selected,
};

/// The binary protocol on one connection.
pub(crate) struct Binary {
    shared: Arc<Shared>,
    principal: Principal,
    decoder: Decoder,
    /// The databases, by number.
    databases: Vec<Selected>,
    /// Messages that procedures have published and that have not been sent yet.
    messages: Vec<Message>,
}

/// Stands for a reply that an error may replace; only a wanted reply has one.
#[derive(Debug)]
pub(crate) struct Token;

/// The outcome of a request.
enum Step {
    /// Its reply is written.
    Done,
    NeedsWriter,
    NeedsPool,
}

impl Binary {
    /// A new connection. The configuration was validated, so every name is a valid database name.
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let numbers = 0..shared.kyoto.databases().len();
        let names = numbers.filter_map(|number| numbered(shared, number));
        let databases = names.filter_map(|name| Selected::new(&**shared.store(), name).ok());
        Self {
            principal: shared.users().newcomer(),
            decoder: Decoder::new(shared.limits().kyoto_request_bytes_max),
            databases: databases.collect(),
            messages: Vec::new(),
            shared: Arc::clone(shared),
        }
    }

    fn answer(
        &mut self,
        request: &Request<'_>,
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Result<Step, Refusal> {
        for database in &mut self.databases {
            database.look(&**self.shared.store());
        }
        match request {
            Request::SetBulk(items) => self.write(0xb8, items, context, output, |tx, at, item| {
                put(tx, at, item.key, item.value, item.xt).map(|()| true)
            }),
            Request::RemoveBulk(items) => self.write(
                0xb9,
                items,
                context,
                output,
                |tx, at, item| Ok(tx.delete(at, item.key)?),
            ),
            Request::GetBulk(items) => self.get(items, context, output),
            Request::PlayScript { name, pairs } => {
                let pairs = pairs.clone().map(|pair| (pair.key, pair.value));
                self.play_script(&Script::new(self.principal.clone(), name, pairs), context, output)
            }
            Request::Replication => {
                Err(Refusal::new(Kind::NotImplemented, "no update log allows no replication"))
            }
        }
    }

    /// Applies `one` to each item, all in one transaction, and counts how often it did something.
    fn write(
        &self,
        magic: u8,
        items: &Items<'_>,
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
        one: impl Fn(&mut dyn WriteTransaction, DatabaseId, &Item<'_>) -> Result<bool, Refusal>,
    ) -> Result<Step, Refusal> {
        let body = |tx: &mut dyn WriteTransaction| {
            let mut hits = 0;
            for item in items.clone() {
                if let Some(database) = self.databases.get(usize::from(item.database)) {
                    let id = database.open_in(tx, &self.shared)?;
                    hits += u32::from(one(tx, id, &item)?);
                }
            }
            Ok(hits)
        };
        let hits = match (self.in_place(items), &mut context.target) {
            (Some(database), _) => {
                transact_in_place::<_, Refusal>(&**self.shared.store(), database, body)?
            }
            (None, Target::Writer(writer)) => transact_unflushed(&mut **writer, body)?,
            (None, Target::Snapshot(_)) => return Ok(Step::NeedsWriter),
        };
        let figures = &self.shared.kyoto.figures;
        let missed = items.left().saturating_sub(hits as usize);
        let (figure, misses) = match magic {
            0xb8 => (Figure::Set, Figure::SetMisses),
            _ => (Figure::Remove, Figure::RemoveMisses),
        };
        figures.add(figure, items.left());
        figures.add(misses, missed);
        binary::hits(magic, hits, output);
        Ok(Step::Done)
    }

    /// The database of the items, if it is the same for all and is written to on the worker.
    fn in_place(&self, items: &Items<'_>) -> Option<DatabaseId> {
        let mut numbers = items.clone().map(|item| item.database);
        let first = numbers.next()?;
        let database = self.databases.get(usize::from(first))?.id();
        let place = self.shared.place_of_write(database);
        (place == Place::Worker && numbers.all(|number| number == first)).then_some(database)
    }

    fn get(
        &self,
        items: &Items<'_>,
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Result<Step, Refusal> {
        let start = output.len();
        let mut found = ListWriter::begin(0xba, output);
        let bytes_max = self.shared.limits().kyoto_reply_bytes_max;
        let mut read = |tx: &mut dyn ReadTransaction, id: DatabaseId, item: &Item<'_>| {
            // Records of other kinds have no value here, like missing ones.
            let record = tx.get(id, item.key)?.filter(|record| record.kind == RecordKind::Bytes);
            if let Some(record) = record {
                let xt = xt_of(record.expires_at_ms).unwrap_or(XT_MAX);
                found.record(&Item { value: record.value, xt, ..*item }, output);
            }
            match output.len() - start > bytes_max {
                true => Err(Refusal::new(Kind::Invalid, "the reply is too large")),
                false => Ok(usize::from(record.is_none())),
            }
        };
        let known = items.clone().filter_map(|item| {
            self.databases.get(usize::from(item.database)).map(|database| (database, item))
        });
        let mut misses = 0;
        match &mut context.target {
            Target::Snapshot(snapshot) => {
                for (database, item) in known {
                    misses += read(&mut **snapshot, database.id(), &item)?;
                }
            }
            Target::Writer(writer) => {
                let tx = writer.begin()?;
                let counted = known.map(|(database, item)| {
                    let id = database.find_in(tx);
                    read(tx, id, &item)
                });
                let counted: Result<usize, Refusal> = counted.sum();
                writer.rollback()?;
                misses = counted?;
            }
        }
        found.end(output);
        self.shared.kyoto.figures.add(Figure::Get, items.left());
        self.shared.kyoto.figures.add(Figure::GetMisses, misses);
        Ok(Step::Done)
    }

    fn play_script(
        &mut self,
        script: &Script,
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Result<Step, Refusal> {
        let shared = &Arc::clone(&self.shared);
        let procedures = &mut context.procedures;
        let id = script.find(shared, procedures.program())?;
        let place = Place::of_procedure(shared, procedures.program(), id);
        if place == Place::Pool && !context.may_take_long {
            return Ok(Step::NeedsPool);
        }
        let outputs = match &mut context.target {
            Target::Snapshot(snapshot) => {
                script.run(shared, procedures, Transaction::Read(&mut **snapshot))?
            }
            Target::Writer(writer) => transact_unflushed(&mut **writer, |tx| {
                script.run(shared, procedures, Transaction::Write(tx))
            })?,
        };
        let Some((outcome, messages)) = outputs else { return Ok(Step::NeedsWriter) };
        match context.target {
            Target::Snapshot(_) => shared.channels.publish_all(&messages),
            Target::Writer(_) => self.messages.extend(messages),
        }
        let outputs = outcome?;
        shared.kyoto.figures.add(Figure::Script, 1);
        let mut list = ListWriter::begin(0xb4, output);
        for (name, value) in &outputs {
            list.pair(name, value, output);
        }
        list.end(output);
        Ok(Step::Done)
    }
}

impl Protocol for Binary {
    type Token = Token;

    fn step(
        &mut self,
        input: &[u8],
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Progress<Token> {
        // The protocol has no passwords, so nothing is accepted where one is needed.
        if self.principal.is_anonymous() {
            output.push(binary::ERROR);
            return Progress::Failed;
        }
        let (consumed, is_quiet, request) = match self.decoder.decode(input) {
            Ok(Decoded::Incomplete) => return Progress::NeedsInput,
            Ok(Decoded::Complete { consumed, is_quiet, request }) => (consumed, is_quiet, request),
            Err(error) => {
                tracing::debug!(%error, "a request of Kyoto Tycoon's binary protocol was refused");
                output.push(binary::ERROR);
                return Progress::Failed;
            }
        };
        let start = output.len();
        let token = (!is_quiet).then_some(Token);
        let answered = match access::allow_binary(&self.principal, &request) {
            Ok(()) => self.answer(&request, context, output),
            Err(denied) => Err(denied.into()),
        };
        match answered {
            Ok(Step::NeedsWriter) => Progress::NeedsWriter,
            Ok(Step::NeedsPool) => Progress::NeedsPool,
            Ok(Step::Done) => {
                if is_quiet {
                    output.truncate(start);
                }
                Progress::Done { consumed, token }
            }
            // The client is told no more than that; the log is.
            Err(refusal) => {
                tracing::debug!(reason = refusal.message, "a binary request was refused");
                output.truncate(start);
                if !is_quiet {
                    output.push(binary::ERROR);
                }
                Progress::Close { consumed, token }
            }
        }
    }

    fn is_anonymous(&self) -> bool {
        self.principal.is_anonymous()
    }

    fn when_durable(&mut self) -> Option<Box<dyn FnOnce()>> {
        if self.messages.is_empty() {
            return None;
        }
        let (messages, shared) = (std::mem::take(&mut self.messages), Arc::clone(&self.shared));
        Some(Box::new(move || shared.channels.publish_all(&messages)))
    }

    fn refuse(&mut self, Token: Token, _: &CommitError, output: &mut Vec<u8>) {
        output.push(binary::ERROR);
    }

    fn fail(&mut self, _: &str, output: &mut Vec<u8>) {
        output.push(binary::ERROR);
    }
}

/// The only reply on a connection that is not served. The protocol has no room for a reason.
pub(crate) fn refusal() -> Vec<u8> {
    vec![binary::ERROR]
}
