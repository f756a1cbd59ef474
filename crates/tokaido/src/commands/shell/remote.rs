//! A server at the other end, and Lua here that sends it commands.

use std::{cell::RefCell, rc::Rc};

use tokaido_script::{Value, Vm};
use tokaido_store::format_float;
use tokaido_wire::resp::Reply;

use super::{
    backend::HELLO,
    lua::{self, LuaOutcome},
};
use crate::{
    client::{Client, ClientError, Server},
    error::Error,
    value,
};

/// What `tokaido.transact` and `tokaido.snapshot` raise where there is no store.
const NO_STORE: &str =
    "this shell talks to a server: use command(\"GET\", \"k\"), or start it with --dir";

/// A connection, which the lines of the shell share with the `command` of Lua.
pub(super) struct Remote {
    client: Rc<RefCell<Client>>,
    vm: Vm,
}

impl Remote {
    pub(super) fn connect(server: &Server, database: &str) -> Result<Self, Error> {
        let mut client = server.connect_to(database)?;
        client.call(&HELLO)?;
        let client = Rc::new(RefCell::new(client));
        let mut vm = Vm::without_store(NO_STORE)?;
        let lent = Rc::clone(&client);
        let command = move |arguments: &[Value]| command(&mut lent.borrow_mut(), arguments);
        vm.set_function("command", Box::new(command))?;
        Ok(Self { client, vm })
    }

    pub(super) fn name(&self) -> String {
        self.client.borrow().server().to_string()
    }

    /// Runs a command. An error reply is a reply.
    pub(super) fn execute(&mut self, arguments: &[impl AsRef<[u8]>]) -> Result<Reply, ClientError> {
        self.client.borrow_mut().call_raw(arguments)
    }

    /// Runs a chunk of Lua in this process.
    pub(super) fn run_lua(&mut self, text: &str) -> LuaOutcome {
        lua::run(&mut self.vm, None, text)
    }
}

/// `command(name, …)` of Lua: its value is the reply; an error reply is raised.
fn command(client: &mut Client, arguments: &[Value]) -> Result<Value, String> {
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
    match client.call_raw(&arguments) {
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
