//! Records over HTTP, on a port for Kyoto Tycoon's clients only.

use crate::{
    common::{Client, Response},
    pinned, server,
};

fn ask(client: &mut Client, line: &str, headers: &str, body: &str) -> Response {
    client.send_http(line, headers, body.as_bytes());
    client.response()
}

#[test]
fn records_are_put_got_and_deleted() {
    let server = pinned();
    let mut client = server.connect();
    let put = ask(&mut client, "PUT /a%20key", "", "value");
    assert_eq!((put.status, put.header("location")), (201, Some("/a%20key")));
    let got = ask(&mut client, "GET /a%20key", "", "");
    assert_eq!((got.status, got.text(), got.header("x-kt-xt")), (200, "value", None));
    let missing = ask(&mut client, "GET /missing", "", "");
    let no_record = Some("DB: 7: no record: no record");
    assert_eq!((missing.status, missing.header("x-kt-error")), (404, no_record));
    assert_eq!(ask(&mut client, "DELETE /a%20key", "", "").status, 204);
    let gone = ask(&mut client, "DELETE /a%20key", "", "");
    assert_eq!((gone.status, gone.header("x-kt-error")), (404, no_record));
    // The server's own API does not exist there, so its paths are keys, too.
    assert_eq!(ask(&mut client, "PUT /healthz", "", "mine").status, 201);
    assert_eq!(ask(&mut client, "GET /healthz", "", "").text(), "mine");
    assert_eq!(ask(&mut client, "PATCH /healthz", "", "").status, 405);
}

#[test]
fn a_path_may_name_a_database() {
    let server = pinned();
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "PUT /second/k", "", "named").status, 201);
    assert_eq!(ask(&mut client, "GET /1/k", "", "").text(), "named");
    assert_eq!(ask(&mut client, "GET /0/k", "", "").status, 404);
    assert_eq!(ask(&mut client, "PUT //k/with/more", "", "slashes").status, 201);
    assert_eq!(ask(&mut client, "GET /main/k/with/more", "", "").text(), "slashes");
    assert_eq!(ask(&mut client, "GET /7/k", "", "").status, 400);
}

#[test]
fn headers_say_how_and_for_how_long() {
    let server = pinned();
    let mut client = server.connect();
    let date = "Tue, 02 Oct 2096 07:06:40 GMT";
    for xt in ["4000000000", date, "2096-10-02T07:06:40Z"] {
        let headers = format!("x-kt-xt: {xt}\r\n");
        assert_eq!(ask(&mut client, "PUT /k", &headers, "v").status, 201, "{xt}");
        assert_eq!(ask(&mut client, "GET /k", "", "").header("x-kt-xt"), Some(date), "{xt}");
    }
    assert_eq!(ask(&mut client, "PUT /k", "x-kt-xt: soon\r\n", "v").status, 400);
    let added = ask(&mut client, "PUT /k", "x-kt-mode: add\r\n", "w");
    let duplicate = Some("DB: 6: record duplication: record duplication");
    assert_eq!((added.status, added.header("x-kt-error")), (450, duplicate));
    assert_eq!(ask(&mut client, "PUT /new", "x-kt-mode: replace\r\n", "w").status, 450);
    assert_eq!(ask(&mut client, "PUT /new", "x-kt-mode: ADD\r\n", "w").status, 201);
    assert_eq!(ask(&mut client, "PUT /new", "x-kt-mode: replace\r\n", "x").status, 201);
    assert_eq!(ask(&mut client, "GET /new", "", "").text(), "x");
}

#[test]
fn head_tells_the_length() {
    let server = pinned();
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "PUT /k", "", "12345").status, 201);
    client.send_http("HEAD /k", "", b"");
    client.send_http("HEAD /missing", "connection: close\r\n", b"");
    let answers = client.text_to_end();
    assert!(
        answers.contains("HTTP/1.1 200 OK") && answers.contains("content-length: 5\r\n"),
        "{answers}"
    );
    assert!(answers.contains("HTTP/1.1 404") && answers.contains("x-kt-error: DB: 7"), "{answers}");
}

#[test]
fn procedures_are_beside_the_records() {
    let server = pinned();
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "PUT /k", "", "v").status, 201);
    assert_eq!(ask(&mut client, "GET /rpc/get?key=k", "", "").text(), "value\tv\n");
    assert_eq!(ask(&mut client, "GET /k", "origin: http://evil.example\r\n", "").status, 403);
}

#[test]
fn elsewhere_paths_are_the_servers_own() {
    let server = server(|_| {});
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "PUT /k", "", "v").status, 404);
    assert_eq!(ask(&mut client, "GET /healthz", "", "").status, 200);
}
