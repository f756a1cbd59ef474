//! A server at the other end, and Lua here that sends it commands.

use std::{cell::RefCell, rc::Rc};

use tokaido_script::{Interrupt, Value, Vm};
use tokaido_store::counter::format_float;
use tokaido_wire::resp::Reply;

use super::{
    backend::HELLO,
    lua::{self, LuaOutcome},
    place::Place,
};
use crate::{
    client::{Client, ClientError, Server},
    error::Error,
    value,
};

/// What `tokaido.transact` and `tokaido.snapshot` raise where there is no store.
const NO_STORE: &str =
    "this shell talks to a server: use command(\"GET\", \"k\"), or start it with --dir";

/// A server, and Lua that sends it commands.
pub(super) struct Remote {
    connection: Rc<RefCell<Connection>>,
    vm: Vm,
}

/// A connection, which the lines of the shell share with the `command` of Lua.
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

    /// Takes a new connection, to the same database, if the one before was lost.
    fn call(&mut self, arguments: &[impl AsRef<[u8]>]) -> Result<Reply, ClientError> {
        if self.client.is_out_of_step() {
            let (server, database) = (self.client.server(), self.place.database());
            *self = Self::open(server, database, self.interrupt.clone())?;
        }
        let reply = self.client.call_raw(arguments);
        match &reply {
            Ok(reply) => self.place.note(arguments, reply),
            // What MULTI began is gone with the connection.
            Err(_) => self.place = Place::new(self.place.database()),
        }
        reply
    }
}

impl Remote {
    pub(super) fn connect(server: &Server, database: &str) -> Result<Self, Error> {
        let mut vm = Vm::without_store(NO_STORE)?;
        let connection = Connection::open(server, database, vm.interrupt())?;
        let connection = Rc::new(RefCell::new(connection));
        let lent = Rc::clone(&connection);
        let command = move |arguments: &[Value]| command(&mut lent.borrow_mut(), arguments);
        vm.set_function("command", Box::new(command))?;
        Ok(Self { connection, vm })
    }

    pub(super) fn name(&self) -> String {
        self.connection.borrow().client.server().to_string()
    }

    pub(super) fn prompt(&self) -> String {
        self.connection.borrow().place.prompt()
    }

    pub(super) fn interrupt(&self) -> Interrupt {
        self.vm.interrupt()
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

    pub(super) fn has_variable(&mut self, name: &str) -> bool {
        lua::has_variable(&mut self.vm, name)
    }

    /// Runs a chunk of Lua in this process.
    pub(super) fn run_lua(&mut self, text: &str) -> LuaOutcome {
        lua::run(&mut self.vm, None, text)
    }
}

/// `command(name, …)` of Lua: its value is the reply; an error reply is raised.
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

/// An argument as it is sent, or what it is if it cannot be.
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
