//! Shows that handlers of OpenResty, whose files are run for each request, do not stay with machine code
//! for functions that are gone.

use std::{path::PathBuf, sync::Arc};

use mlua::{Function, Table};
use tokaido_store::Store;

use crate::{
    Dialect, HttpRequest, HttpResponse, Limits, Runtime as _, Settings, Source, Sources,
    Transaction, Vm,
    compiled::{OBSERVER, store::MemoryStore},
};

/// The loop gets hot in the first run, for the first function of all.
const HANDLER: &[u8] = b"-- route: GET /
local sum = 0
local function add(i) sum = sum + i end
for i = 1, 2000 do add(i) end
ngx.say(sum)";

/// Runs before the compiler is observed, and then.
const RUNS_BEFORE: usize = 3;
const RUNS: usize = 12;

fn run(vm: &mut Vm, store: &Arc<dyn Store>) {
    let handler = vm.find(b"m").unwrap();
    let mut snapshot = store.snapshot().unwrap();
    let transaction = Transaction::Read(&mut *snapshot);
    let mut response = HttpResponse::default();
    let request = HttpRequest { method: "GET", path: "/", ..HttpRequest::default() };
    vm.call_http(handler, transaction.into(), &request, &mut response).unwrap();
    assert_eq!(response.body, b"2001000\n");
}

#[test]
fn what_is_compiled_for_the_first_functions_is_compiled_again_for_all() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut sources = Sources::default();
    let (path, settings) = (PathBuf::from("m.lua"), Vec::new());
    sources.add(Source {
        module: "m".to_owned(),
        path,
        text: HANDLER.into(),
        dialect: Some(Dialect::OPENRESTY.name.to_owned()),
        settings,
    });
    let settings = Settings::default().into();
    let (limits, shared) = (Limits::default(), Arc::clone(&store));
    let (mut vm, errors) =
        Vm::start(&Dialect::OPENRESTY, Ok(shared), &sources, limits, settings).unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    for _ in 0..RUNS_BEFORE {
        run(&mut vm, &store);
    }
    let events: Table = {
        let lua = vm.state_for_tests().lua();
        let registry = |name: &str| lua.named_registry_value::<Table>(name).unwrap();
        let jit: Table = registry("_LOADED").get("jit").unwrap();
        let util: Function = registry("_PRELOAD").get("jit.util").unwrap();
        let util: Table = util.call(()).unwrap();
        lua.load(OBSERVER).call((jit, util)).unwrap()
    };
    for _ in 0..RUNS {
        run(&mut vm, &store);
    }
    let events: Vec<String> = events.sequence_values().map(Result::unwrap).collect();
    assert!(events.iter().any(|event| event == "m.lua:4: loop"), "{events:#?}");
}
