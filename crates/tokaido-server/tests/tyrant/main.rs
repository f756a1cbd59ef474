//! Tokyo Tyrant as its clients speak it: the binary protocol, memcached's lines, and HTTP. Codes, texts and
//! bytes are those of its server, `ttserver`, version 1.1.41, over a B+ tree.

#[path = "../common/mod.rs"]
mod common;

mod binary;
mod copy;
mod http;
mod masks;
mod model;
mod text;

use common::TestServer;
use tokaido_server::{Config, ProtocolName};

const PROCEDURES: &str = r#"
local tokaido = require("tokaido")
return {
  echo = tokaido.read(function(tx, key, value) return key .. "=" .. value end),
  length = tokaido.read(function(tx, key, value) return #value end),
  nothing = tokaido.read(function() end),
  keep = tokaido.write(function(tx, key, value)
    tx.main:put(key, value)
    return "kept"
  end),
  refuses = tokaido.write(function(tx, key)
    tx.main:put(key, "never")
    error { code = "SHUT", message = "the shop is shut" }
  end),
  broken = tokaido.write(function(tx, key)
    tx.main:put(key, "never")
    error("oops")
  end),
  odd = tokaido.read(function() return { t = { 1 } } end),
}
"#;

fn server(change: impl FnOnce(&mut Config)) -> TestServer {
    TestServer::start_with_lua(PROCEDURES, change)
}

/// A server that speaks only this protocol.
fn pinned(change: impl FnOnce(&mut Config)) -> TestServer {
    server(|config| {
        config.listen[0].protocols = vec![ProtocolName::Tyrant];
        change(config);
    })
}
