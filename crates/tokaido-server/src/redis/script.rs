//! Commands that a script calls in its own transaction, without encoding or decoding any wire bytes.

use std::{ops::Range, sync::Arc};

use tokaido_script::{
    CommandError, CommandReply, Host, MiscCall, Scope, ServerFigures, Sockets, Transaction, Value,
};
use tokaido_store::DatabaseId;
use tokaido_wire::resp::{Request, Version, format_double};

use super::{
    Message, admission,
    call::Call,
    command::{Access, Command},
    debug, execute,
    failure::Failure,
    instead,
    reply::Reply,
    tracking::Reader,
};
use crate::{
    Shared,
    access::{self, Denied, Permission, Principal},
    selected::Selected,
    tyrant,
};

/// Runs the commands of one procedure call.
pub(crate) struct ScriptCommands<'s> {
    pub(crate) shared: &'s Shared,
    /// The caller of the procedure.
    principal: &'s Principal,
    /// The database that the caller has selected.
    selected: &'s Selected,
    reply: ScriptReply,
    /// The messages that it has published so far.
    messages: Vec<Message>,
    /// Records what it reads.
    reader: Option<Arc<Reader>>,
    /// The sockets of the request, if it may use any.
    sockets: Option<&'s mut dyn Sockets>,
}

impl<'s> ScriptCommands<'s> {
    /// For a call of the procedure with this name.
    ///
    /// # Errors
    /// If the caller may not call it.
    pub(crate) fn for_call(
        shared: &'s Shared,
        principal: &'s Principal,
        selected: &'s Selected,
        procedure: &str,
    ) -> Result<Self, Denied> {
        access::allow(principal, Permission::Call(procedure.as_bytes()))?;
        let (reply, messages) = (ScriptReply::default(), Vec::new());
        let (reader, sockets) = (None, None);
        Ok(Self { shared, principal, selected, reply, messages, reader, sockets })
    }

    /// Lets `reader` record what the commands read.
    pub(super) fn noted_by(self, reader: Option<Arc<Reader>>) -> Self {
        Self { reader, ..self }
    }

    /// Lets the call use these sockets.
    pub(crate) fn with_sockets(self, sockets: Option<&'s mut dyn Sockets>) -> Self {
        Self { sockets, ..self }
    }

    /// The published messages, to be sent once the transaction is committed.
    pub(crate) fn into_messages(self) -> Vec<Message> {
        self.messages
    }

    /// The scope that the procedure runs in.
    pub(crate) fn in_transaction<'t, 'l: 't>(
        &'t mut self,
        transaction: Transaction<'l>,
    ) -> Scope<'t> {
        Scope::of(transaction, self)
    }
}

impl ScriptCommands<'_> {
    /// Finds the command, and checks that the caller of the procedure may run it.
    fn admit(&self, request: Request<'_>) -> Result<&'static Command, Failure> {
        let command = execute::find_command(request)?;
        let command = command.ok_or_else(|| instead::unknown(self.shared, request))?;
        admission::admit_call(self.shared, self.principal, command, request)?;
        if debug::is_of_debug(command) {
            return Err(Failure::NotForScripts);
        }
        Ok(command)
    }
}

impl ScriptCommands<'_> {
    /// The selected database, for a command in a transaction.
    fn database(
        &self,
        command: &Command,
        transaction: &mut Transaction<'_>,
    ) -> Result<DatabaseId, Failure> {
        match transaction {
            Transaction::Write(tx) => {
                execute::selected_for(command, self.selected, *tx, self.shared)
            }
            Transaction::Read(_) => Ok(self.selected.id()),
        }
    }
}

impl Host for ScriptCommands<'_> {
    fn command(
        &mut self,
        mut transaction: Transaction<'_>,
        arguments: &[&[u8]],
    ) -> Result<CommandReply<'_>, CommandError> {
        let request = Request::from_arguments(arguments);
        let refused = |failure: Failure| CommandError::Refused(failure.to_string());
        let command = self.admit(request).map_err(refused)?;
        let database = self.database(command, &mut transaction).map_err(refused)?;
        let Self { shared, ref mut reply, ref mut messages, ref reader, .. } = *self;
        reply.begin(Version::Resp2, shared.limits().reply_bytes_max);
        let mut call = Call {
            shared,
            database,
            request,
            reply,
            may_take_long: true,
            messages: Vec::new(),
            reader: reader.clone(),
            committed: None,
        };
        let ran = execute::run_within(command, &mut call, transaction);
        messages.append(&mut call.messages);
        match ran {
            Ok(()) => Ok(self.reply.take()),
            // Commands check their arguments before they write.
            Err(failure) if failure.may_follow_writes() && command.access() == Access::Write => {
                let message = failure.to_string();
                // The error ends the procedure's call, whose own error begins with a code.
                let message = message.strip_prefix("ERR ").unwrap_or(&message);
                Err(CommandError::Failed(message.to_owned()))
            }
            Err(failure) => Err(CommandError::Refused(failure.to_string())),
        }
    }

    fn misc(
        &mut self,
        transaction: Transaction<'_>,
        call: MiscCall<'_>,
    ) -> Result<Option<Vec<Vec<u8>>>, CommandError> {
        tyrant::misc_of_script(self.shared, transaction, call)
    }

    fn figures(&mut self) -> Option<ServerFigures> {
        let Shared { metrics, .. } = self.shared;
        Some(ServerFigures {
            uptime_s: self.shared.uptime_s(),
            requests: metrics.requests(),
            connections_open: metrics.sum(|worker| &worker.connections_open),
            connections_max: self.shared.limits().connections_max as u64,
        })
    }

    fn is_table(&mut self) -> bool {
        tyrant::is_table(self.shared)
    }

    fn sockets(&mut self) -> Option<&mut dyn Sockets> {
        Some(&mut **self.sockets.as_mut()?)
    }
}

/// A reply as a script sees it, in the form that Redis gives to scripts. In version 2 of the
/// protocol, a status is a table with the field `ok`, an error one with `err`, null is `false`, and
/// maps and sets are arrays. In version 3, null is nil, and a map, a set, a double or a verbatim text is a
/// table with a field of that name.
#[derive(Default)]
pub(super) struct ScriptReply {
    parts: Vec<Part>,
    /// Strings and statuses, concatenated.
    texts: Vec<u8>,
    is_resp3: bool,
    /// A lower bound of what the parts take.
    bytes: usize,
    bytes_max: usize,
    is_over_limit: bool,
}

enum Part {
    Value(Value),
    /// A string, as a range of the texts.
    Text(Range<usize>),
    /// A status, likewise.
    Status(Range<usize>),
    /// An array of this many of the following parts.
    Array(usize),
    /// A map of this many pairs of them.
    Map(usize),
    /// A set of this many of them.
    Set(usize),
}

impl ScriptReply {
    /// Begins an empty reply of at most this many bytes, for this version of the protocol. Keeps the memory.
    pub(super) fn begin(&mut self, version: Version, bytes_max: usize) {
        self.parts.clear();
        self.texts.clear();
        self.is_resp3 = version == Version::Resp3;
        (self.bytes, self.bytes_max, self.is_over_limit) = (0, bytes_max, false);
    }

    /// Takes the whole reply.
    pub(super) fn take(&mut self) -> CommandReply<'_> {
        self.bytes = 0;
        let Self { parts, texts, .. } = self;
        let mut parts = parts.drain(..);
        match parts.next() {
            Some(Part::Text(place)) => CommandReply::Bytes(&texts[place]),
            Some(Part::Status(place)) => CommandReply::Status(&texts[place]),
            Some(first) => CommandReply::Value(assemble(first, &mut parts, texts)),
            None => CommandReply::Value(Value::Nil),
        }
    }

    /// Whether there is room for one more part with a text of this length.
    fn has_room(&mut self, len: usize) -> bool {
        let bytes = self.bytes.saturating_add(size_of::<Part>() + len);
        self.is_over_limit |= bytes > self.bytes_max;
        if !self.is_over_limit {
            self.bytes = bytes;
        }
        !self.is_over_limit
    }

    fn push(&mut self, value: Value) {
        if self.has_room(0) {
            self.parts.push(Part::Value(value));
        }
    }

    fn push_text(&mut self, text: &[u8], part: fn(Range<usize>) -> Part) {
        if self.has_room(text.len()) {
            let start = self.texts.len();
            self.texts.extend_from_slice(text);
            self.parts.push(part(start..self.texts.len()));
        }
    }

    fn push_field(&mut self, field: &str, text: &str) {
        self.push(table(&[(field, string(text))]));
    }

    fn head(&mut self, part: Part) {
        if self.has_room(0) {
            self.parts.push(part);
        }
    }
}

fn string(text: &str) -> Value {
    Value::String(text.as_bytes().to_vec())
}

fn table(fields: &[(&str, Value)]) -> Value {
    Value::Map(fields.iter().map(|(name, value)| (string(name), value.clone())).collect())
}

/// The value that begins with `first`.
fn assemble(first: Part, parts: &mut impl Iterator<Item = Part>, texts: &[u8]) -> Value {
    let next = |parts: &mut _| assemble_next(parts, texts);
    match first {
        Part::Value(value) => value,
        Part::Text(place) => Value::String(texts[place].to_vec()),
        Part::Status(place) => table(&[("ok", Value::String(texts[place].to_vec()))]),
        Part::Array(len) => Value::Array((0..len).map(|_| next(parts)).collect()),
        Part::Map(len) => {
            let pairs = (0..len).map(|_| (next(parts), next(parts))).collect();
            table(&[("map", Value::Map(pairs))])
        }
        Part::Set(len) => {
            let members = (0..len).map(|_| (next(parts), Value::Boolean(true))).collect();
            table(&[("set", Value::Map(members))])
        }
    }
}

fn assemble_next(parts: &mut impl Iterator<Item = Part>, texts: &[u8]) -> Value {
    match parts.next() {
        Some(first) => assemble(first, parts, texts),
        None => Value::Nil,
    }
}

impl Reply for ScriptReply {
    fn simple(&mut self, text: &str) {
        self.push_text(text.as_bytes(), Part::Status);
    }

    fn ok(&mut self) {
        self.simple("OK");
    }

    fn error(&mut self, text: &str) {
        self.push_field("err", text);
    }

    fn integer(&mut self, value: i64) {
        self.push(Value::Integer(value));
    }

    fn bulk(&mut self, bytes: &[u8]) {
        self.push_text(bytes, Part::Text);
    }

    fn null(&mut self) {
        self.push(if self.is_resp3 { Value::Nil } else { Value::Boolean(false) });
    }

    fn null_array(&mut self) {
        self.null();
    }

    fn array(&mut self, len: usize) {
        self.head(Part::Array(len));
    }

    fn map(&mut self, len: usize) {
        self.head(if self.is_resp3 { Part::Map(len) } else { Part::Array(2 * len) });
    }

    fn pairs(&mut self, len: usize) {
        self.array(if self.is_resp3 { len } else { 2 * len });
    }

    fn pair(&mut self) {
        if self.is_resp3 {
            self.array(2);
        }
    }

    fn map_of_pairs(&mut self, len: usize) {
        self.head(if self.is_resp3 { Part::Map(len) } else { Part::Array(len) });
    }

    fn map_pair(&mut self) {
        if !self.is_resp3 {
            self.array(2);
        }
    }

    fn set(&mut self, len: usize) {
        self.head(if self.is_resp3 { Part::Set(len) } else { Part::Array(len) });
    }

    fn double(&mut self, value: f64) {
        match self.is_resp3 {
            true => self.push(table(&[("double", Value::Number(value))])),
            false => self.bulk(format_double(value).as_bytes()),
        }
    }

    fn double_as(&mut self, value: f64, text: &str) {
        match self.is_resp3 {
            true => self.double(value),
            false => self.bulk(text.as_bytes()),
        }
    }

    fn big_number(&mut self, digits: &str) {
        match self.is_resp3 {
            true => self.push_field("big_number", digits),
            false => self.bulk(digits.as_bytes()),
        }
    }

    fn boolean(&mut self, value: bool) {
        self.push(match self.is_resp3 {
            true => Value::Boolean(value),
            false => Value::Integer(i64::from(value)),
        });
    }

    fn verbatim(&mut self, format: &str, text: &str) {
        if !self.is_resp3 {
            return self.bulk(text.as_bytes());
        }
        if self.has_room(text.len()) {
            let parts = table(&[("string", string(text)), ("format", string(format))]);
            self.parts.push(Part::Value(table(&[("verbatim_string", parts)])));
        }
    }

    fn mark(&self) -> usize {
        self.parts.len()
    }

    fn truncate(&mut self, mark: usize) {
        self.parts.truncate(mark);
        self.is_over_limit = false;
    }

    fn move_before(&mut self, first: usize, last: usize) {
        let written = self.parts.len() - last;
        self.parts[first..].rotate_right(written);
    }

    fn limit(&mut self, bytes_max: usize) {
        self.bytes_max = self.bytes.saturating_add(bytes_max);
    }

    fn is_over_limit(&self) -> bool {
        self.is_over_limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Write = fn(&mut ScriptReply);

    #[test]
    fn every_form_of_a_reply_becomes_one_value() {
        let replies: &[(Write, &str)] = &[
            (|r| r.ok(), r#"Map([(String("ok"), String("OK"))])"#),
            (|r| r.error("ERR no"), r#"Map([(String("err"), String("ERR no"))])"#),
            (|r| r.integer(-1), "Integer(-1)"),
            (|r| r.bulk(b"v"), r#"String("v")"#),
            (|r| r.null(), "Boolean(false)"),
            (|r| r.null_array(), "Boolean(false)"),
            (|r| r.double(3.0), r#"String("3")"#),
            (|r| r.double(0.1), r#"String("0.1")"#),
            (|r| r.boolean(true), "Integer(1)"),
            (|r| r.verbatim("txt", "v"), r#"String("v")"#),
            (|r| r.set(0), "Array([])"),
        ];
        for (write, expected) in replies {
            let mut reply = ScriptReply::default();
            reply.limit(1000);
            reply.integer(7);
            let mark = reply.mark();
            reply.array(2);
            write(&mut reply);
            reply.truncate(mark);
            reply.truncate(0);
            write(&mut reply);
            assert_eq!(show_reply(reply.take()), *expected);
            assert_eq!(reply.mark(), 0, "{expected}");
        }
    }

    #[test]
    fn aggregates_take_the_replies_that_follow() {
        let mut reply = ScriptReply::default();
        reply.limit(1000);
        reply.array(3);
        reply.map(1);
        reply.bulk(b"key");
        reply.array(1);
        reply.null();
        reply.set(1);
        reply.integer(1);
        reply.bulk(b"last");
        assert_eq!(
            show_reply(reply.take()),
            r#"Array([Array([String("key"), Array([Boolean(false)])]), Array([Integer(1)]), String("last")])"#
        );
    }

    #[test]
    fn nothing_is_kept_beyond_the_limit() {
        let writes: [Write; 3] = [|r| r.bulk(&[b'x'; 50]), |r| r.array(0), |r| r.integer(1)];
        for write in writes {
            let mut reply = ScriptReply::default();
            reply.limit(1000);
            while !reply.is_over_limit() {
                write(&mut reply);
            }
            let (bytes, parts) = (reply.bytes, reply.mark());
            assert!(bytes <= 1000);
            writes.iter().for_each(|write| write(&mut reply));
            assert_eq!((reply.bytes, reply.mark()), (bytes, parts));
        }
    }

    fn show_reply(reply: CommandReply<'_>) -> String {
        let text = |text: &[u8]| Value::String(text.to_vec());
        show(&match reply {
            CommandReply::Bytes(bytes) => text(bytes),
            CommandReply::Status(status) => Value::Map(vec![(text(b"ok"), text(status))]),
            CommandReply::Value(value) => value,
        })
    }

    /// Like `Debug`, but shows strings as text.
    fn show(value: &Value) -> String {
        let list = |values: &[Value]| values.iter().map(show).collect::<Vec<_>>().join(", ");
        match value {
            Value::String(bytes) => format!("String({:?})", String::from_utf8_lossy(bytes)),
            Value::Array(values) => format!("Array([{}])", list(values)),
            Value::Map(pairs) => {
                let pair =
                    |(key, value): &(Value, Value)| format!("({}, {})", show(key), show(value));
                format!("Map([{}])", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
            }
            other => format!("{other:?}"),
        }
    }
}
