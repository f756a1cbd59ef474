//! HTTP on an address for Tokyo Tyrant only.

use crate::{
    common::{Client, Response, TestServer},
    pinned,
};

fn ask(client: &mut Client, line: &str, headers: &str, body: &str) -> (u16, String) {
    client.send_http(line, headers, body.as_bytes());
    let response = client.response();
    (response.status, response.text().to_owned())
}

fn shown(status: u16, text: &str) -> (u16, String) {
    (status, text.to_owned())
}

#[test]
fn records_are_put_got_and_removed() {
    let server = pinned(|_| {});
    let mut client = server.connect();
    let mut ask = |line: &str, headers: &str, body: &str| ask(&mut client, line, headers, body);
    let created = shown(201, "Created\n");
    assert_eq!(ask("PUT /a+key%00", "", "value"), created);
    assert_eq!(ask("GET /a%20key%00", "", ""), shown(200, "value"));
    assert_eq!(ask("PUT /a%20key%00", "x-tt-pdmode: 1\r\n", "w"), shown(409, "Conflict\n"));
    assert_eq!(ask("PUT /new", "x-tt-pdmode: 1\r\n", "w"), created);
    assert_eq!(ask("PUT /new", "x-tt-pdmode: 2\r\n", "x"), created);
    assert_eq!(ask("GET /new", "", ""), shown(200, "wx"));
    assert_eq!(ask("DELETE /new", "", ""), shown(200, "OK\n"));
    assert_eq!(ask("DELETE /new", "", ""), shown(404, "Not Found\n"));
    assert_eq!(ask("GET /new", "", ""), shown(404, "Not Found\n"));
    // The whole target is the key, and the server's own API is not there.
    assert_eq!(ask("PUT /healthz?a=1", "", "mine"), created);
    assert_eq!(ask("GET /healthz%3Fa%3D1", "", ""), shown(200, "mine"));
    assert_eq!(ask("GET /healthz", "", ""), shown(404, "Not Found\n"));
    assert_eq!(ask("PUT /", "", "v"), shown(500, "Internal Server Error\n"));
    assert_eq!(ask("PATCH /k", "", "").0, 405);
}

fn head(server: &TestServer, path: &str) -> (bool, String) {
    let mut client = server.connect();
    client.send(format!("HEAD {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"));
    let text = client.text_to_end();
    (text.contains("content-length: 5\r\n"), text.lines().next().unwrap_or_default().to_owned())
}

#[test]
fn heads_tell_lengths() {
    let server = pinned(|_| {});
    assert_eq!(server.http("PUT /k", "", "value").status, 201);
    assert_eq!(head(&server, "/k"), (true, "HTTP/1.1 200 OK".to_owned()));
    assert_eq!(head(&server, "/missing"), (false, "HTTP/1.1 404 Not Found".to_owned()));
}

#[test]
fn procedures_and_functions_are_called_by_post() {
    let server = pinned(|_| {});
    let mut client = server.connect();
    let mut post = |path: &str, headers: &str, body: &str| {
        ask(&mut client, &format!("POST {path}"), headers, body)
    };
    let failed = shown(500, "Internal Server Error\n");
    assert_eq!(post("/a%3Db", "x-tt-xname: t.echo\r\nx-tt-xopts: 1\r\n", "v"), shown(200, "a=b=v"));
    assert_eq!(post("/k", "x-tt-xname: t.keep\r\n", "value"), shown(200, "kept"));
    assert_eq!(post("/k", "x-tt-xname: t.refuses\r\n", "never"), failed);
    assert_eq!(post("/k", "x-tt-xname: t.missing\r\n", ""), failed);
    assert_eq!(post("/k", "", ""), shown(400, "Bad Request\n"));

    let mut misc = |name: &str, body: &str| post("/", &format!("x-tt-mname: {name}\r\n"), body);
    assert_eq!(misc("get", "key=k"), shown(200, "res1=value"));
    assert_eq!(misc("get", "key=missing"), failed);
    assert_eq!(misc("error", ""), shown(200, "res1=22%3A%20no%20record%20found"));
    assert_eq!(misc("putlist", "a=x+1&b=%00%ff&c=y&a=z"), shown(200, ""));
    assert_eq!(misc("getlist", "k=x+1&k=y"), shown(200, "res1=x%201&res2=%00%FF&res3=y&res4=z"));
    assert_eq!(misc("range", "k=x&m=1"), shown(200, "res1=x%201&res2=%00%FF"));
    assert_eq!(misc("iterinit", "k=x"), shown(200, ""));
    assert_eq!(misc("iternext", ""), shown(200, "res1=x%201&res2=%00%FF"));
    assert_eq!(misc("iternext", ""), shown(200, "res1=y&res2=z"));
    assert_eq!(misc("iternext", ""), failed);
    assert_eq!(misc("sync", ""), shown(200, ""));
    assert_eq!(misc("putdup", "k=k&v=v"), failed);
    assert_eq!(misc("nothing", ""), failed);
}

#[test]
fn options_tell_of_the_server() {
    let server = pinned(|_| {});
    server.http("PUT /k", "", "value");
    let told: Response = server.http("OPTIONS /", "", "");
    assert_eq!((told.status, told.text()), (200, ""));
    for (name, value) in [
        ("allow", "OPTIONS, GET, HEAD, PUT, POST, DELETE"),
        ("x-tt-type", "B+ tree"),
        ("x-tt-path", "main"),
        ("x-tt-rnum", "1"),
        ("x-tt-size", "6"),
        ("x-tt-protver", "0.91"),
    ] {
        assert_eq!(told.header(name), Some(value), "{name}");
    }
    assert!(told.header("x-tt-version").is_some_and(|version| version.starts_with("1.1.41")));
}

#[test]
fn a_page_of_another_site_changes_nothing() {
    let server = pinned(|_| {});
    assert_eq!(server.http("PUT /k", "origin: http://evil.example\r\n", "v").status, 403);
    assert_eq!(server.http("GET /k", "", "").status, 404);
}
