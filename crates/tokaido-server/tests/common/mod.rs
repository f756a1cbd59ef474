//! A server in this process, and a very simple client.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

pub mod log;

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use tempfile::TempDir;
use tokaido_server::{Config, Server};

/// Maximum time to wait for bytes before a test fails. No test takes that long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server on a free port, with its own directory, that stops at the end of the test.
pub struct TestServer {
    pub server: Server,
    directory: TempDir,
}

/// The initial configuration of a test's server, before the test changes it.
pub fn config(directory: &Path) -> Config {
    Config {
        listen: vec!["127.0.0.1:0".parse().expect("an address")],
        directory: directory.join("data"),
        workers: 2,
        ..Config::default()
    }
}

impl TestServer {
    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        Self::start_in(tempfile::tempdir().expect("a directory"), change)
    }

    /// With one procedure file.
    pub fn start_with_lua(lua: &str, change: impl FnOnce(&mut Config)) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let procedures = directory.path().join("procedures");
        std::fs::create_dir(&procedures).expect("a directory");
        std::fs::write(procedures.join("t.lua"), lua).expect("a file");
        Self::start_in(directory, |config| {
            config.procedures = Some(procedures);
            change(config);
        })
    }

    pub fn start_in(directory: TempDir, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config(directory.path());
        change(&mut config);
        let server = Server::start(config).expect("the server starts");
        Self { server, directory }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn address(&self) -> SocketAddr {
        tcp_address(&self.server)
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// How many connections each worker has, including the one that asks.
    pub fn open_connections(&self) -> Vec<usize> {
        let metrics = self.http("GET /metrics", "", "");
        let lines = metrics.text().lines().filter(|l| l.starts_with("tokaido_connections_open{"));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse().ok()).collect()
    }

    /// Stops the server and keeps its directory.
    pub fn stop(self) -> TempDir {
        self.server.stop();
        self.directory
    }

    /// Sends one HTTP request on a new connection.
    pub fn http(&self, request_line: &str, headers: &str, body: impl AsRef<[u8]>) -> Response {
        let mut client = self.connect();
        client.send_http(request_line, headers, body.as_ref());
        client.response()
    }
}

/// The first address that a server listens on.
pub fn tcp_address(server: &Server) -> SocketAddr {
    server.addresses()[0].tcp().expect("a TCP address")
}

/// A socket.
pub struct Client(pub TcpStream);

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("a socket");
        Self(stream)
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).expect("the server reads");
    }

    /// Sends a command as clients do.
    pub fn command(&mut self, arguments: &[&str]) {
        self.send(encode(arguments));
    }

    /// Reads exactly these bytes.
    #[track_caller]
    pub fn expect(&mut self, bytes: impl AsRef<[u8]>) {
        let expected = bytes.as_ref();
        let mut given = vec![0; expected.len()];
        let mut len = 0;
        while len < given.len() {
            match self.0.read(&mut given[len..]) {
                Ok(0) => break,
                Ok(n) => len += n,
                Err(error) => panic!(
                    "{error} after {:?}, expected {:?}",
                    String::from_utf8_lossy(&given[..len]),
                    String::from_utf8_lossy(expected)
                ),
            }
        }
        let given = String::from_utf8_lossy(&given[..len]).into_owned();
        assert_eq!(given, String::from_utf8_lossy(expected));
    }

    /// Sends a command and reads exactly this reply.
    #[track_caller]
    pub fn ask(&mut self, arguments: &[&str], reply: &str) {
        self.command(arguments);
        self.expect(reply);
    }

    pub fn read_line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while self.0.read(&mut byte).expect("a line") == 1 {
            line.push(byte[0]);
            if byte[0] == b'\n' {
                break;
            }
        }
        String::from_utf8(line).expect("a line of text")
    }

    /// Reads everything until the server closes. A reset counts as closing.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            match self.0.read(&mut chunk) {
                Ok(0) => return all,
                Ok(n) => all.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return all,
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&all)),
            }
        }
    }

    pub fn text_to_end(&mut self) -> String {
        String::from_utf8(self.read_to_end()).expect("text")
    }

    pub fn send_http(&mut self, request_line: &str, headers: &str, body: &[u8]) {
        let length = if body.is_empty() && request_line.starts_with("GET") {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        let head = format!("{request_line} HTTP/1.1\r\nhost: localhost\r\n{length}{headers}\r\n");
        self.send([head.as_bytes(), body].concat());
    }

    /// Reads an HTTP response that has a body.
    pub fn response(&mut self) -> Response {
        let status = self.read_line();
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = code.unwrap_or_else(|| panic!("no status line: {status:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.read_line();
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Response { status, headers, body: Vec::new() };
        let len = response.header("content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
        response.body = vec![0; len];
        self.0.read_exact(&mut response.body).expect("the body");
        response
    }
}

/// An HTTP response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

/// Encodes a command as an array of bulk strings.
pub fn encode(arguments: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n{argument}\r\n", argument.len()).as_bytes());
    }
    bytes
}
