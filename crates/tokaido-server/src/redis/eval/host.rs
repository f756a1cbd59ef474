//! Commands that a client's script runs in its own transaction, with Redis's error messages for
//! scripts.

use std::sync::Arc;

use tokaido_script::{CommandError, CommandReply, Host, Mode, Transaction};
use tokaido_wire::resp::{Request, Version};

use crate::{
    Shared,
    access::Permission,
    redis::{
        admission,
        call::Call,
        command::{Command, Flags, Group, Handler},
        execute,
        failure::Failure,
        pubsub::Message,
        reply::Reply as _,
        script::ScriptReply,
        session::Session,
        streams, table,
        tracking::Reader,
    },
    selected::Selected,
};

/// Runs the commands of one script run.
pub(super) struct EvalHost<'s> {
    shared: &'s Shared,
    /// The session that sent the script.
    session: &'s Session,
    /// The database that the script works on. SELECT changes it until the script ends.
    selected: Selected,
    mode: Mode,
    /// The version of the protocol that the script has chosen.
    version: Version,
    reply: ScriptReply,
    /// The messages that it has published so far.
    messages: Vec<Message>,
    /// Records what it reads.
    reader: Option<Arc<Reader>>,
}

impl<'s> EvalHost<'s> {
    pub(super) fn new(
        shared: &'s Shared,
        session: &'s Session,
        mode: Mode,
        reader: Option<Arc<Reader>>,
    ) -> Self {
        let selected = session.selected().clone();
        let (version, reply, messages) = (Version::Resp2, ScriptReply::default(), Vec::new());
        Self { shared, session, selected, mode, version, reply, messages, reader }
    }

    /// The version of the protocol that the script has chosen.
    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// The published messages, to be sent once the transaction is committed.
    pub(super) fn into_messages(self) -> Vec<Message> {
        self.messages
    }

    /// Finds the command, and checks that the script may run it.
    fn admit(&self, request: Request<'_>) -> Result<&'static Command, Failure> {
        let found = table::resolve(request).ok().flatten();
        let command =
            found.ok_or_else(|| Failure::other("Unknown Redis command called from script"))?;
        if !command.accepts(request.len()) {
            let message = "Wrong number of args calling Redis command from script";
            return Err(Failure::other(message));
        }
        let waits = matches!(command.handler, Handler::Blocking(_));
        if waits || command.flags.has(Flags::NO_SCRIPT) || command.flags.has(Flags::ADMIN) {
            return Err(Failure::NotForScripts);
        }
        if command.key_word().is_some() && streams::asks_to_wait(request) {
            let name = String::from_utf8_lossy(request.name());
            let message = format!("{name} command is not allowed with BLOCK option from scripts");
            return Err(Failure::other(message));
        }
        admission::admit_script(self.session, command, request)?;
        if self.mode == Mode::Read && (writes(command) || command.group == Group::PubSub) {
            return Err(Failure::ReadOnlyScript);
        }
        Ok(command)
    }

    fn run(
        &mut self,
        command: &Command,
        request: Request<'_>,
        mut transaction: Transaction<'_>,
    ) -> Result<(), Failure> {
        let database = match &mut transaction {
            Transaction::Write(tx) => {
                execute::selected_for(command, &self.selected, *tx, self.shared)?
            }
            Transaction::Read(_) => self.selected.id(),
        };
        self.reply.begin(self.version, self.shared.limits().reply_bytes_max);
        let monitors = &self.shared.instruments.monitors;
        let Self { shared, ref mut reply, ref mut messages, ref reader, .. } = *self;
        let (may_take_long, published) = (true, Vec::new());
        let mut call = Call {
            shared,
            database,
            request,
            reply,
            may_take_long,
            messages: published,
            reader: reader.clone(),
            committed: None,
        };
        if command.name == "select" {
            self.selected = call.database_at(1)?;
            monitors.show_as(self.selected.name(), "lua", command, request);
            self.reply.ok();
            return Ok(());
        }
        let ran = execute::run_within(command, &mut call, transaction);
        messages.append(&mut call.messages);
        monitors.show_as(self.selected.name(), "lua", command, request);
        ran
    }
}

fn writes(command: &Command) -> bool {
    matches!(command.handler, Handler::Write(_) | Handler::GroupRead(_))
}

impl Host for EvalHost<'_> {
    fn command(
        &mut self,
        transaction: Transaction<'_>,
        arguments: &[&[u8]],
    ) -> Result<CommandReply<'_>, CommandError> {
        let request = Request::from_arguments(arguments);
        let refused = |failure: Failure| CommandError::Refused(failure.to_string());
        let command = self.admit(request).map_err(refused)?;
        match self.run(command, request, transaction) {
            Ok(()) => Ok(self.reply.take()),
            // Commands check their arguments before they write.
            Err(failure) if failure.may_follow_writes() && writes(command) => {
                let message = failure.to_string();
                let message = message.strip_prefix("ERR ").unwrap_or(&message);
                Err(CommandError::Failed(message.to_owned()))
            }
            Err(failure) => Err(refused(failure)),
        }
    }

    fn speak(&mut self, version: i32) {
        self.version = if version == 3 { Version::Resp3 } else { Version::Resp2 };
    }

    fn may_run(&mut self, arguments: &[&[u8]]) -> Option<bool> {
        let request = Request::from_arguments(arguments);
        let command = table::resolve(request).ok().flatten()?;
        let permission = Permission::Command(command, request);
        Some(admission::check(&self.session.principal, permission).is_ok())
    }
}
