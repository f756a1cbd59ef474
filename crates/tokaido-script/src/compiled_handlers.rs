//! Shows that loops in OpenResty handlers become machine code, and so does the code around a handler. Handler files are
//! run for each request, so it also shows that no machine code stays behind for functions that are gone.

use std::{path::PathBuf, sync::Arc};

use tokaido_store::Store;

use crate::{
    Dialect, HttpRequest, HttpResponse, Limits, ProcedureId, Runtime as _, Settings, Source,
    Sources, Transaction, Vm,
    compiled::{ITERATIONS, assert_on_trace, composite, observe_vm, store::MemoryStore},
};

/// The loop gets hot in the first run, for the very first function.
const FUNCTION_OF_A_RUN: &str = "-- route: GET /
local sum = 0
local function add(i) sum = sum + i end
for i = 1, 2000 do add(i) end
ngx.say(sum)";

/// A handler in a virtual machine of its own.
struct Handler {
    vm: Vm,
    store: Arc<dyn Store>,
}

impl Handler {
    fn new(dialect: &'static Dialect, text: &str, store: Arc<dyn Store>) -> Self {
        let mut sources = Sources::default();
        let (path, settings) = (PathBuf::from("m.lua"), Vec::new());
        sources.add(Source {
            module: "m".to_owned(),
            path,
            text: text.as_bytes().into(),
            dialect: Some(dialect.name.to_owned()),
            settings,
        });
        let settings = Settings::default().into();
        let (limits, shared) = (Limits::default(), Arc::clone(&store));
        let (vm, errors) = Vm::start(dialect, Ok(shared), &sources, limits, settings).unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        Self { vm, store }
    }

    /// Answers a request, and gives the body of the response.
    fn run(&mut self) -> Vec<u8> {
        let handler = ProcedureId::from_index(0);
        let mut snapshot = self.store.snapshot().unwrap();
        let transaction = Transaction::Read(&mut *snapshot);
        let mut response = HttpResponse::default();
        let request = HttpRequest { method: "GET", path: "/", ..HttpRequest::default() };
        self.vm.call_http(handler, transaction.into(), &request, &mut response).unwrap();
        response.body
    }

    /// Answers that many requests, and gives the compiler's events meanwhile.
    fn observe(&mut self, runs: usize) -> Vec<String> {
        let events = observe_vm(&mut self.vm);
        for _ in 0..runs {
            self.run();
        }
        events.sequence_values().map(Result::unwrap).collect()
    }
}

#[test]
fn what_is_compiled_for_the_first_functions_is_compiled_again_for_all() {
    const RUNS_BEFORE: usize = 3;
    let store = Arc::new(MemoryStore::new());
    let mut handler = Handler::new(&Dialect::OPENRESTY, FUNCTION_OF_A_RUN, store);
    for _ in 0..RUNS_BEFORE {
        assert_eq!(handler.run(), b"2001000\n");
    }
    let events = handler.observe(12);
    assert!(events.iter().any(|event| event == "m.lua:4: loop"), "{events:#?}");
}

/// What marks an event in which the compiler met an instruction that it cannot compile.
const NOT_COMPILED: &str = ": 7 ";

#[test]
fn nothing_around_a_handler_is_left_to_the_interpreter() {
    let ngx = "-- route: GET /\nngx.header.content_type = 'text/plain'\nngx.say('hello')";
    let apache = "-- route: GET /\nfunction handle(r)
        r.content_type = 'text/plain'\nr:puts('hello\\n')\nreturn apache2.OK\nend";
    for (dialect, text) in [(&Dialect::OPENRESTY, ngx), (&Dialect::MOD_LUA, apache)] {
        let mut handler = Handler::new(dialect, text, Arc::new(MemoryStore::new()));
        assert_eq!(handler.run(), b"hello\n");
        let events = handler.observe(ITERATIONS as usize);
        assert!(events.iter().any(|event| event.ends_with(": return")), "{events:#?}");
        assert!(!events.iter().any(|event| event.contains(NOT_COMPILED)), "{events:#?}");
    }
}

/// The body has its loop at line 3, and can use the dictionary as `d`.
#[track_caller]
fn assert_compiles(body: &str) {
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        "-- route: GET /\nlocal d, n, find = ngx.shared.hot, {ITERATIONS}, ngx.re.find\n{body}"
    );
    let store = composite(directory.path());
    let events = Handler::new(&Dialect::OPENRESTY, &text, store).observe(1);
    assert_on_trace(&events, body);
}

macro_rules! compiles {
    ($($name:ident: $body:expr;)*) => {$(
        #[test]
        fn $name() {
            assert_compiles($body);
        }
    )*};
}

compiles! {
    re_find_compiles: r"for i = 1, n do find('hello, world.', [[\w+\.]], 'jo') end";
    re_find_in_changing_texts_compiles: r"for i = 1, n do find(tostring(i), [[\d+$]], 'jo') end";
    dictionary_get_compiles: "d:set('k', 'v') for i = 1, n do d:get('k') end";
    dictionary_get_of_numbers_compiles: "d:set('k', 7) for i = 1, n do d:get('k') end";
    dictionary_get_of_absent_compiles: "for i = 1, n do d:get('absent') end";
    dictionary_set_compiles: "for i = 1, n do d:set('k', 'v') end";
    dictionary_set_of_numbers_compiles: "for i = 1, n do d:set('k', i) end";
    dictionary_incr_compiles: "d:set('k', 1) for i = 1, n do d:incr('k', 1) end";
    dictionary_incr_with_init_compiles: "for i = 1, n do d:incr('k', 0.5, 0) end";
}
