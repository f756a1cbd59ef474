//! Handlers in the dialect of OpenResty: what the VM makes of their files. What they answer is compared with nginx in
//! `tests/openresty/`.

use std::sync::Arc;

use tokaido_script::{
    HttpRequest, HttpResponse, Language as _, Limits, Lua, Runtime, Source, Sources, Transaction,
};
use tokaido_store::Store;

use support::store::MemoryStore;

mod support;

/// A runtime of these files, which must load.
fn runtime(files: &[(&str, &str)]) -> (Box<dyn Runtime>, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut sources = Sources::default();
    for (module, text) in files {
        sources.add(Source {
            module: (*module).to_owned(),
            path: format!("{module}.lua").into(),
            text: text.as_bytes().into(),
            dialect: Some("ngx".to_owned()),
            settings: Vec::new(),
        });
    }
    let (runtime, errors) = Lua::default().start(&store, &sources, Limits::default()).unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    (runtime, store)
}

fn get(runtime: &mut dyn Runtime, store: &dyn Store, handler: &str) -> HttpResponse {
    let id = runtime.find(handler.as_bytes()).unwrap();
    let mut snapshot = store.snapshot().unwrap();
    let request = HttpRequest { method: "GET", path: "/", ..HttpRequest::default() };
    let mut response = HttpResponse::default();
    let transaction = Transaction::Read(&mut *snapshot);
    runtime.call_http(id, transaction.into(), &request, &mut response).unwrap();
    response
}

#[test]
fn a_file_answers_the_route_that_it_names() {
    let text = "-- route: GET /hello\nngx.say(\"hello\")";
    let (mut runtime, store) = runtime(&[("hello", text)]);
    let route = runtime.procedures()[0].route.clone().unwrap();
    assert_eq!((&*route.method, &*route.pattern), ("GET", "/hello"));
    for _ in 0..3 {
        let response = get(&mut *runtime, &*store, "hello");
        assert_eq!((response.status, &*response.body), (200, &b"hello\n"[..]));
        assert_eq!(response.headers, [("content-type".to_owned(), b"text/plain".to_vec())]);
    }
}

#[test]
fn files_have_their_globals_in_common() {
    let (mut runtime, store) = runtime(&[
        ("init", "-- phase: init\nconfig = { greeting = 'hi' }"),
        ("hello", "-- route: /hello\nngx.say(config.greeting, ' ', nothing)"),
    ]);
    assert_eq!(get(&mut *runtime, &*store, "hello").body, b"hi nil\n");
}
