//! A second language besides Lua: one line per procedure.

mod common;

use std::{fs, sync::Arc};

use tokaido_script::{
    CallError, HttpRequest, HttpResponse, Language, Limits, LoadError, Lua, Mode, Procedure,
    ProcedureId, Route, Runtime, RuntimeError, Scope, Sources, Transaction, Value,
};
use tokaido_server::{Server, SocketAddress};
use tokaido_store::{Store, WriteOperations as _};

/// `say NAME TEXT`, `count NAME KEY` and `page PATH TEXT`.
struct Lines;

struct LinesRuntime {
    store: Arc<dyn Store>,
    procedures: Vec<Procedure>,
    texts: Vec<String>,
}

impl Language for Lines {
    fn extension(&self) -> &'static str {
        "lines"
    }

    fn start(
        &self,
        store: &Arc<dyn Store>,
        sources: &Sources,
        _limits: Limits,
    ) -> Result<(Box<dyn Runtime>, Vec<LoadError>), RuntimeError> {
        let (store, procedures, texts) = (store.clone(), Vec::new(), Vec::new());
        let (mut runtime, mut errors) = (LinesRuntime { store, procedures, texts }, Vec::new());
        for source in sources.of(self.extension()) {
            let text = String::from_utf8_lossy(&source.text);
            for (line, text) in (1..).zip(text.lines()) {
                let words: Vec<&str> = text.splitn(3, ' ').collect();
                let (mode, route) = match words[..] {
                    ["say", ..] => (Mode::Read, None),
                    ["count", ..] => (Mode::Write, None),
                    ["page", path, _] => {
                        let (method, pattern) = ("GET".to_owned(), path.to_owned());
                        (Mode::Read, Some(Route { method, pattern }))
                    }
                    _ => {
                        let message = "say, count or page begins a line".to_owned();
                        let (path, module) = (source.path.clone(), source.module.clone());
                        let line = Some(line);
                        errors.push(LoadError { module, procedure: None, path, line, message });
                        continue;
                    }
                };
                let name = format!("{}.{}", source.module, words[1]);
                let path = source.path.clone();
                let (hook, is_of_worker) = (None, false);
                let procedure = Procedure { name, mode, route, hook, path, line, is_of_worker };
                runtime.procedures.push(procedure);
                runtime.texts.push(words[2].to_owned());
            }
        }
        Ok((Box::new(runtime), errors))
    }
}

impl Runtime for LinesRuntime {
    fn procedures(&self) -> &[Procedure] {
        &self.procedures
    }

    fn call(
        &mut self,
        procedure: ProcedureId,
        scope: Scope<'_>,
        _arguments: &[Value],
    ) -> Result<Value, CallError> {
        let text = &self.texts[procedure.index()];
        match scope.transaction {
            Transaction::Read(_) => Ok(Value::String(text.clone().into_bytes())),
            Transaction::Write(tx) => {
                let main = self.store.database("main").expect("a name");
                let count = tx.increment(main, text.as_bytes(), 1);
                let failed = |error: String| CallError::Value { message: error };
                count.map(Value::Integer).map_err(|error| failed(error.to_string()))
            }
        }
    }

    fn call_http(
        &mut self,
        procedure: ProcedureId,
        _scope: Scope<'_>,
        _request: &HttpRequest<'_>,
        response: &mut HttpResponse,
    ) -> Result<(), CallError> {
        response.status = 200;
        response.body = self.texts[procedure.index()].clone().into_bytes();
        Ok(())
    }
}

const LUA: &str = r#"
local tokaido = require "tokaido"
return {
  count = tokaido.write(function(tx) return tx.main:increment("shared") end),
  page = tokaido.http("GET /lua", function() return "Lua" end),
}
"#;

const LINES: &str = "say hello good day\ncount hits shared\npage /lines Lines\nsing\n";

#[test]
fn two_languages_serve_side_by_side_and_are_reloaded_together() {
    let directory = tempfile::tempdir().expect("a directory");
    let procedures = directory.path().join("procedures");
    fs::create_dir(&procedures).expect("a directory");
    fs::write(procedures.join("l.lua"), LUA).expect("a file");
    fs::write(procedures.join("m.lines"), LINES).expect("a file");
    let mut config = common::config(directory.path());
    config.procedures = Some(procedures.clone());
    let lua = Lua::default();
    let server = Server::start_in(config, vec![Arc::new(lua), Arc::new(Lines)]).expect("a server");
    let errors: Vec<_> = server.load_errors().iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].ends_with("m.lines:4: say, count or page begins a line"), "{errors:?}");
    let SocketAddress::Tcp(address) = server.addresses()[0] else { panic!("no TCP") };
    let mut client = common::Client::connect(address);
    for round in 0..2 {
        client.ask(&["l.count"], &format!(":{}\r\n", 1 + 2 * round));
        client.ask(&["m.hits"], &format!(":{}\r\n", 2 + 2 * round));
        client.ask(&["m.hello"], "$8\r\ngood day\r\n");
        for (path, text) in [("/lua", "Lua"), ("/lines", "Lines")] {
            let mut client = common::Client::connect(address);
            client.send_http(&format!("GET {path}"), "", b"");
            assert_eq!(client.response().text(), text);
        }
        let mended = LINES.replace("sing\n", "");
        fs::write(procedures.join("m.lines"), mended).expect("a file");
        server.reload().expect("a program");
    }
}
