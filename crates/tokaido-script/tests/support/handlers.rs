//! Handlers that answer over HTTP, called as the server does.

use std::sync::Arc;

use tokaido_script::{
    CallError, HttpRequest, HttpResponse, Language as _, Limits, LoadError, Lua, Mode, Runtime,
    Settings, Source, Sources, Transaction,
};
use tokaido_store::Store;

use super::store::MemoryStore;

pub type Served = (Box<dyn Runtime>, Arc<dyn Store>);

/// A runtime of these files, which must load.
pub fn runtime(files: &[(&str, &str)]) -> Served {
    limited(files, Limits::default())
}

pub fn limited(files: &[(&str, &str)], limits: Limits) -> Served {
    let (runtime, store, errors) = start("ngx", files, limits, Settings::default());
    assert!(errors.is_empty(), "{errors:?}");
    (runtime, store)
}

/// A runtime of files in a dialect.
pub fn start(
    dialect: &str,
    files: &[(&str, &str)],
    limits: Limits,
    settings: Settings,
) -> (Box<dyn Runtime>, Arc<dyn Store>, Vec<LoadError>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut sources = Sources::default();
    for (module, text) in files {
        sources.add(Source {
            module: (*module).to_owned(),
            path: format!("{module}.lua").into(),
            text: text.as_bytes().into(),
            dialect: Some(dialect.to_owned()),
            settings: Vec::new(),
        });
    }
    let language = Lua { settings: Arc::new(settings), ..Lua::default() };
    let (runtime, errors) = language.start(&store, &sources, limits).unwrap();
    (runtime, store, errors)
}

/// Calls a handler as the server does; if it fails after sending something, gives that as well.
pub fn call(
    (runtime, store): &mut Served,
    handler: &str,
) -> Result<HttpResponse, Box<(CallError, HttpResponse)>> {
    let request = HttpRequest { method: "GET", path: "/", ..HttpRequest::default() };
    call_with((runtime, store), handler, &request)
}

pub fn call_with(
    (runtime, store): (&mut Box<dyn Runtime>, &Arc<dyn Store>),
    handler: &str,
    request: &HttpRequest<'_>,
) -> Result<HttpResponse, Box<(CallError, HttpResponse)>> {
    let id = runtime.find(handler.as_bytes()).unwrap();
    let mut response = HttpResponse::default();
    let (mut snapshot, mut writer) = (store.snapshot().unwrap(), store.writer().unwrap());
    let writes = runtime.procedures()[id.index()].mode == Mode::Write;
    let transaction = match writes {
        true => Transaction::Write(writer.begin().unwrap()),
        false => Transaction::Read(&mut *snapshot),
    };
    let called = runtime.call_http(id, transaction.into(), request, &mut response);
    match called {
        Ok(()) => {
            if writes {
                writer.commit().unwrap();
                writer.flush().unwrap();
            }
            Ok(response)
        }
        Err(error) => {
            writer.rollback().unwrap();
            Err(Box::new((error, response)))
        }
    }
}

pub fn body(served: &mut Served, handler: &str) -> String {
    let response = call(served, handler).unwrap_or_else(|failed| panic!("{handler}: {}", failed.0));
    String::from_utf8(response.body).unwrap()
}

/// The response of a handler with just this text.
pub fn answer(text: &str) -> String {
    body(&mut runtime(&[("m", &format!("-- route: /\n{text}"))]), "m")
}

/// A request to a handler that may wait.
pub fn that_may_wait() -> HttpRequest<'static> {
    HttpRequest { method: "GET", path: "/", may_wait: true, ..HttpRequest::default() }
}

/// Calls a handler that may wait.
pub fn begin(served: &mut Served, handler: &str) -> Result<HttpResponse, CallError> {
    let id = served.0.find(handler.as_bytes()).unwrap();
    let (mut snapshot, mut response) = (served.1.snapshot().unwrap(), HttpResponse::default());
    let scope = Transaction::Read(&mut *snapshot).into();
    served.0.call_http(id, scope, &that_may_wait(), &mut response).map(|()| response)
}

/// Resumes a handler that waits.
pub fn go_on(
    served: &mut Served,
    handler: &str,
    slot: u64,
    response: &mut HttpResponse,
) -> Result<(), CallError> {
    let id = served.0.find(handler.as_bytes()).unwrap();
    let mut snapshot = served.1.snapshot().unwrap();
    let scope = Transaction::Read(&mut *snapshot).into();
    served.0.resume_http(id, slot, scope, &that_may_wait(), response)
}

/// Calls a handler that may wait, and resumes it until it is done; also gives how often it waited.
pub fn call_waiting(served: &mut Served, handler: &str) -> (usize, Result<String, CallError>) {
    let (mut waits, mut response) = match begin(served, handler) {
        Ok(response) => (0, response),
        Err(error) => return (0, Err(error)),
    };
    while let Some(waiting) = response.waiting.take() {
        waits += 1;
        std::thread::sleep(waiting.time);
        if let Err(error) = go_on(served, handler, waiting.slot, &mut response) {
            return (waits, Err(error));
        }
    }
    (waits, Ok(String::from_utf8(response.body).unwrap()))
}
