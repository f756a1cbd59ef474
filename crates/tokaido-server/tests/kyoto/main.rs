//! Kyoto Tycoon as its clients speak it: procedures over HTTP, records over HTTP, and the binary
//! protocol. The statuses, texts and bytes are taken from its specification and its source.

#[path = "../common/mod.rs"]
mod common;

mod binary;
mod calls;
mod rest;
mod waits;

use common::{Client, TestServer};
use tokaido_server::{Config, ProtocolName};

const PROCEDURES: &str = r#"
local tokaido = require("tokaido")
return {
  shout = tokaido.write(function(tx, inputs)
    tx.main:put("said", inputs.text)
    return { text = inputs.text:upper(), length = #inputs.text, loud = true }
  end),
  nothing = tokaido.read(function() end),
  refuses = tokaido.write(function(tx)
    tx.main:put("said", "never")
    error { code = "SHUT", message = "the shop is shut" }
  end),
  broken = tokaido.write(function(tx)
    tx.main:put("said", "never")
    error("oops")
  end),
  odd = tokaido.read(function() return { t = { 1 } } end),
}
"#;

/// A server whose databases 0 and 1 are `main` and `second`.
fn server(change: impl FnOnce(&mut Config)) -> TestServer {
    TestServer::start_with_lua(PROCEDURES, |config| {
        config.kyoto.databases = vec!["main".to_owned(), "second".to_owned()];
        change(config);
    })
}

/// A server that speaks only this protocol.
fn pinned() -> TestServer {
    server(|config| config.listen[0].protocols = vec![ProtocolName::Kyoto])
}

/// Calls a procedure with a body of tab-separated values. Returns the status and the body.
#[track_caller]
fn call(client: &mut Client, procedure: &str, body: &str) -> (u16, String) {
    let headers = "content-type: text/tab-separated-values; colenc=U\r\n";
    client.send_http(&format!("POST /rpc/{procedure}"), headers, body.as_bytes());
    let response = client.response();
    (response.status, response.text().to_owned())
}
