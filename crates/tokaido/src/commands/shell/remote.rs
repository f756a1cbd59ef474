//! A server at the other end, and local languages that send it commands.

use std::{cell::RefCell, rc::Rc};

use tokaido_script::{HostFunction, Interrupt, Value, Vm};
use tokaido_store::counter::format_float;
use tokaido_wire::resp::Reply;

use super::{backend::HELLO, language::Language, place::Place, ruby::Ruby};
use crate::{
    client::{Client, ClientError, Server},
    error::Error,
    value,
};

/// The error that `tokaido.transact` and `tokaido.snapshot` raise without a store.
const NO_STORE: &str =
    "this shell talks to a server: use command(\"GET\", \"k\"), or start it with --dir";

/// A server, and languages that send it commands.
pub(super) struct Remote {
    connection: Rc<RefCell<Connection>>,
    lua: Vm,
    ruby: Option<Ruby>,
}

/// A connection, shared by the lines of the shell and the `command` of their languages.
struct Connection {
    client: Client,
    place: Place,
    interrupt: Interrupt,
}

impl Connection {
    fn open(server: &Server, database: &str, interrupt: Interrupt) -> Result<Self, ClientError> {
        let mut client = Client::connect_interruptible(server, interrupt.clone())?;
        client.call(&["SELECT", database])?;
        client.call(&HELLO)?;
        Ok(Self { client, place: Place::new(database), interrupt })
    }

    /// Reconnects to the same database first, if the last connection was lost.
    fn call(&mut self, arguments: &[impl AsRef<[u8]>]) -> Result<Reply, ClientError> {
        if self.client.is_out_of_step() {
            let (server, database) = (self.client.server(), self.place.database());
            *self = Self::open(server, database, self.interrupt.clone())?;
        }
        let reply = self.client.call_raw(arguments);
        match &reply {
            Ok(reply) => self.place.note(arguments, reply),
            // An open MULTI is lost with the connection.
            Err(_) => self.place = Place::new(self.place.database()),
        }
        reply
    }
}

impl Remote {
    pub(super) fn connect(server: &Server, database: &str) -> Result<Self, Error> {
        let mut lua = Vm::without_store(NO_STORE)?;
        let connection = Connection::open(server, database, lua.interrupt())?;
        let connection = Rc::new(RefCell::new(connection));
        lua.set_function("command", command_over(&connection))?;
        Ok(Self { connection, lua, ruby: None })
    }

    /// Prepares for lines in this language.
    pub(super) fn prepare(&mut self, language: Language) -> Result<(), Error> {
        if language == Language::Ruby && self.ruby.is_none() {
            let command = command_over(&self.connection);
            self.ruby = Some(Ruby::of_server(command, self.lua.interrupt())?);
        }
        Ok(())
    }

    /// The virtual machines in this process that run lines.
    pub(super) fn languages(&mut self) -> (&mut Vm, &mut Option<Ruby>) {
        (&mut self.lua, &mut self.ruby)
    }

    pub(super) fn name(&self) -> String {
        self.connection.borrow().client.server().to_string()
    }

    pub(super) fn prompt(&self) -> String {
        self.connection.borrow().place.prompt()
    }

    pub(super) fn interrupt(&self) -> Interrupt {
        self.lua.interrupt()
    }

    /// Runs a command. An error reply is a reply.
    pub(super) fn execute(&mut self, arguments: &[impl AsRef<[u8]>]) -> Result<Reply, ClientError> {
        self.connection.borrow_mut().call(arguments)
    }

    /// Whether it is connected, and no MULTI is open.
    pub(super) fn is_idle(&self) -> bool {
        let connection = self.connection.borrow();
        !connection.client.is_out_of_step() && !connection.place.is_multi()
    }
}

/// The function `command` of a language.
fn command_over(connection: &Rc<RefCell<Connection>>) -> HostFunction {
    let connection = Rc::clone(connection);
    Box::new(move |arguments| command(&mut connection.borrow_mut(), arguments))
}

/// `command(name, …)`: returns the reply; an error reply is raised.
fn command(connection: &mut Connection, arguments: &[Value]) -> Result<Value, String> {
    if arguments.is_empty() {
        return Err("command takes a command and its arguments: command(\"GET\", \"k\")".to_owned());
    }
    let arguments = (1..)
        .zip(arguments)
        .map(|(place, value)| {
            argument(value).map_err(|what| {
                format!("argument {place} of command is {what}; give strings and numbers")
            })
        })
        .collect::<Result<Vec<Vec<u8>>, String>>()?;
    match connection.call(&arguments) {
        Ok(Reply::Error(message)) => Err(message),
        Ok(reply) => Ok(value::from_reply(reply)),
        Err(error) => Err(error.to_string()),
    }
}

/// An argument in the form in which it is sent, or its kind if it cannot be sent.
fn argument(value: &Value) -> Result<Vec<u8>, &'static str> {
    match value {
        Value::String(bytes) => Ok(bytes.clone()),
        Value::Integer(integer) => Ok(integer.to_string().into_bytes()),
        Value::Number(number) => Ok(format_float(*number).into_bytes()),
        Value::Nil => Err("nil"),
        Value::Boolean(_) => Err("a boolean"),
        Value::Array(_) | Value::Map(_) => Err("a table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_numbers_are_sent_exactly() {
        assert_eq!(argument(&Value::String(b"a\0\xff".to_vec())), Ok(b"a\0\xff".to_vec()));
        assert_eq!(argument(&Value::Integer(i64::MIN)), Ok(b"-9223372036854775808".to_vec()));
        assert_eq!(argument(&Value::Number(0.1)), Ok(b"0.1".to_vec()));
        assert_eq!(argument(&Value::Array(vec![])), Err("a table"));
    }
}
