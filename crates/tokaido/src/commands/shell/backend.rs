//! Runs the lines of a shell: on a server, or on a store in this process.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use tokaido_script::{Interrupt, Runtime, Vm};
use tokaido_server::{
    Context, Procedures, Program, Shared, SharedOptions, Target,
    redis::{COMMANDS, Session, execute},
};
use tokaido_store::{Store, Writer};
use tokaido_wire::resp::{Reply, ReplyDecoder, ReplyWriter, Request};

use super::{
    language::{Language, Outcome},
    lua,
    place::Place,
    remote::Remote,
    ruby::Ruby,
};
use crate::{
    client::{ClientError, Server},
    endpoint::{Missing, open_store},
    error::Error,
    procedures::{start_all, start_lua_of_lines},
};

/// Selects version 3 of the protocol, whose replies distinguish maps, numbers and booleans.
pub(super) const HELLO: [&str; 2] = ["HELLO", "3"];

/// Where the lines run.
pub(crate) enum Backend {
    Server(Box<Remote>),
    Store(Box<Embedded>),
}

/// A store in this process, with a session like a connection's.
pub(crate) struct Embedded {
    // Declared before the store that they belong to, so that they are dropped first.
    session: Session,
    writer: Box<dyn Writer>,
    /// The procedures of all languages.
    procedures: Box<dyn Runtime>,
    /// The virtual machines that run the lines.
    lua: Vm,
    ruby: Option<Ruby>,
    program: Arc<Program>,
    shared: Arc<Shared>,
    place: Place,
    /// The directory of the procedure files, which lines may require.
    directory: Option<PathBuf>,
}

impl Backend {
    pub(crate) fn server(server: &Server, database: &str) -> Result<Self, Error> {
        Ok(Self::Server(Box::new(Remote::connect(server, database)?)))
    }

    pub(crate) fn store(
        directory: &Path,
        procedures: Option<&Path>,
        database: &str,
    ) -> Result<Self, Error> {
        let store: Arc<dyn Store> = open_store(directory, Missing::Create)?;
        let (runtime, failed) = start_all(&store, procedures)?;
        let lua = start_lua_of_lines(&store, procedures)?;
        let writer = store.writer()?;
        let program = Arc::new(Program::of(runtime.procedures().to_vec()));
        let options = SharedOptions { program: Arc::clone(&program), ..SharedOptions::default() };
        let shared = Arc::new(Shared::new(Arc::clone(&store), options)?);
        shared.set_load_errors(failed);
        let session = Session::new(&shared, "shell", "shell");
        let place = Place::new(database);
        let mut embedded = Embedded {
            session,
            writer,
            procedures: runtime,
            lua,
            ruby: None,
            program,
            shared,
            place,
            directory: procedures.map(Path::to_owned),
        };
        for command in [HELLO, ["SELECT", database]] {
            if let Reply::Error(message) = embedded.execute(&command)? {
                return Err(ClientError::Refused { message }.into());
            }
        }
        Ok(Self::Store(Box::new(embedded)))
    }

    /// The name of the server, if there is one.
    pub(crate) fn server_name(&self) -> Option<String> {
        match self {
            Self::Server(remote) => Some(remote.name()),
            Self::Store(_) => None,
        }
    }

    /// The database that commands go to, and whether a MULTI is open.
    pub(crate) fn prompt(&self) -> String {
        match self {
            Self::Server(remote) => remote.prompt(),
            Self::Store(embedded) => embedded.place.prompt(),
        }
    }

    /// The interrupts that stop running lines and procedures, or waiting for a server.
    pub(crate) fn interrupts(&self) -> Vec<Interrupt> {
        match self {
            Self::Server(remote) => vec![remote.interrupt()],
            Self::Store(embedded) => {
                let mut interrupts = embedded.procedures.interrupts();
                interrupts.push(embedded.lua.interrupt());
                interrupts
            }
        }
    }

    /// The names of commands, in lower case; a server reports its own.
    pub(crate) fn commands(&mut self) -> Result<Vec<String>, Error> {
        match self {
            Self::Server(remote) => Ok(command_names(remote.execute(&["COMMAND"])?)),
            Self::Store(_) => {
                let commands = COMMANDS.iter().map(|command| command.name.to_owned());
                Ok(commands.filter(|name| !name.contains('|')).collect())
            }
        }
    }

    /// The names of the current procedures.
    pub(crate) fn procedures(&mut self) -> Result<Vec<String>, Error> {
        match self {
            Self::Server(remote) => Ok(procedure_names(remote.execute(&["FUNCTION", "LIST"])?)),
            Self::Store(embedded) => {
                Ok(embedded.procedures.procedures().iter().map(|p| p.name.clone()).collect())
            }
        }
    }

    /// Whether a command that the user did not type can be run without side effects.
    pub(crate) fn is_idle(&self) -> bool {
        match self {
            Self::Server(remote) => remote.is_idle(),
            Self::Store(_) => true,
        }
    }

    /// Prepares for lines in this language.
    pub(super) fn prepare(&mut self, language: Language) -> Result<(), Error> {
        match self {
            Self::Server(remote) => remote.prepare(language),
            Self::Store(embedded) => embedded.prepare(language),
        }
    }

    /// Whether a name before a dot has a meaning in this language, which must be prepared.
    pub(super) fn has_name(&mut self, language: Language, name: &str) -> bool {
        let (lua, ruby) = match self {
            Self::Server(remote) => remote.languages(),
            Self::Store(embedded) => (&mut embedded.lua, &mut embedded.ruby),
        };
        match language {
            Language::Lua => lua::has_variable(lua, name),
            Language::Ruby => ruby.as_ref().is_some_and(|ruby| ruby.has_name(name)),
        }
    }

    /// Runs a command. An error reply is a reply.
    pub(crate) fn execute(&mut self, arguments: &[Vec<u8>]) -> Result<Reply, Error> {
        match self {
            Self::Server(remote) => Ok(remote.execute(arguments)?),
            Self::Store(embedded) => embedded.execute(arguments),
        }
    }

    /// Runs lines in this language, which must be prepared.
    pub(super) fn run(&mut self, language: Language, text: &str) -> Outcome {
        let (lua, ruby, writer): (_, _, Option<&mut dyn Writer>) = match self {
            Self::Server(remote) => {
                let (lua, ruby) = remote.languages();
                (lua, ruby, None)
            }
            Self::Store(embedded) => {
                (&mut embedded.lua, &mut embedded.ruby, Some(&mut *embedded.writer))
            }
        };
        match (language, ruby) {
            (Language::Ruby, Some(ruby)) => ruby.run(writer, text),
            _ => lua::run(lua, writer, text),
        }
    }
}

/// Each row of COMMAND's reply begins with a name.
fn command_names(reply: Reply) -> Vec<String> {
    let name = |row| elements(row).into_iter().next().and_then(text);
    let names = elements(reply).into_iter().filter_map(name);
    names.map(|name| name.to_lowercase()).collect()
}

/// FUNCTION LIST answers with libraries. Each has a field `functions`, and each function a field
/// `name`.
fn procedure_names(reply: Reply) -> Vec<String> {
    let functions = |library| elements(field(library, "functions"));
    let functions = elements(reply).into_iter().flat_map(functions);
    functions.filter_map(|function| text(field(function, "name"))).collect()
}

fn elements(reply: Reply) -> Vec<Reply> {
    match reply {
        Reply::Array(items) | Reply::Set(items) => items,
        _ => Vec::new(),
    }
}

/// A field of a map, which version 2 of the protocol writes as an array of names and values.
fn field(reply: Reply, name: &str) -> Reply {
    let is_name = |reply: &Reply| text(reply.clone()).as_deref() == Some(name);
    let found = match reply {
        Reply::Map(pairs) => pairs.into_iter().find(|(key, _)| is_name(key)).map(|pair| pair.1),
        reply => {
            let items = elements(reply);
            let at = items.iter().step_by(2).position(is_name);
            at.and_then(|pair| items.into_iter().nth(2 * pair + 1))
        }
    };
    found.unwrap_or(Reply::Null)
}

fn text(reply: Reply) -> Option<String> {
    match reply {
        Reply::Bulk(bytes) => String::from_utf8(bytes).ok(),
        Reply::Simple(text) => Some(text),
        _ => None,
    }
}

impl Embedded {
    fn prepare(&mut self, language: Language) -> Result<(), Error> {
        if language == Language::Ruby && self.ruby.is_none() {
            let (store, interrupt) = (self.shared.store(), self.lua.interrupt());
            self.ruby = Some(Ruby::of_store(store, self.directory.as_deref(), interrupt)?);
        }
        Ok(())
    }

    fn execute(&mut self, arguments: &[impl AsRef<[u8]>]) -> Result<Reply, Error> {
        let borrowed: Vec<&[u8]> = arguments.iter().map(AsRef::as_ref).collect();
        let request = Request::from_arguments(&borrowed);
        let mut bytes = Vec::new();
        let mut reply = ReplyWriter::new(&mut bytes, self.session.version());
        let procedures = Procedures::new(&self.program, &mut *self.procedures);
        let target = Target::Writer(&mut *self.writer);
        let mut context = Context::new(&self.shared, procedures, target, true);
        execute(&mut self.session, request, &mut context, &mut reply);
        if let Err(error) = self.writer.flush() {
            return Ok(Reply::Error(format!("ERR {error}")));
        }
        match ReplyDecoder::new().decode(&bytes) {
            Ok(Some((reply, _))) => {
                self.place.note(arguments, &reply);
                Ok(reply)
            }
            // CLIENT REPLY OFF: the command ran and has no reply.
            Ok(None) => Ok(Reply::Simple(String::new())),
            Err(source) => {
                Err(ClientError::Protocol { server: "the store".to_owned(), source }.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.into())
    }

    #[test]
    fn procedures_are_found_in_both_versions_of_the_protocol() {
        let function =
            vec![(bulk("name"), bulk("hits.count")), (bulk("flags"), Reply::Set(vec![]))];
        let library =
            |functions| vec![(bulk("library_name"), bulk("hits")), (bulk("functions"), functions)];
        let flat = |pairs: Vec<(Reply, Reply)>| {
            Reply::Array(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect())
        };
        let version_3 = library(Reply::Array(vec![Reply::Map(function.clone())]));
        let version_2 = library(Reply::Array(vec![flat(function)]));
        for library in [Reply::Map(version_3), flat(version_2)] {
            assert_eq!(procedure_names(Reply::Array(vec![library])), ["hits.count"]);
        }
        assert_eq!(procedure_names(Reply::Error("ERR unknown command".into())), [""; 0]);
    }

    #[test]
    fn commands_are_found_in_the_first_column() {
        let row = Reply::Array(vec![bulk("GET"), Reply::Integer(2)]);
        assert_eq!(command_names(Reply::Array(vec![row, Reply::Null])), ["get"]);
    }
}
