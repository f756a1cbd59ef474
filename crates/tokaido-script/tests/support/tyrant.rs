//! Scripts in the Tokyo Tyrant dialect.

use std::{sync::Arc, time::Duration};

use tokaido_script::{Limits, Settings, TyrantCommons, TyrantSettings};

pub use super::guest::Bed;

/// Small, so that the stash is soon full.
const STASH_BYTES_MAX: usize = 4096;

pub fn over_database(database: &str, script: &str, limits: Limits) -> Bed {
    let commons = Arc::new(TyrantCommons::new(STASH_BYTES_MAX));
    let tyrant = TyrantSettings { database: database.to_owned(), commons };
    let settings = Settings { tyrant, ..Settings::default() };
    Bed::with("tokyotyrant", script, settings, limits)
}

pub fn with(script: &str, limits: Limits) -> Bed {
    over_database("main", script, limits)
}

pub fn of(script: &str) -> Bed {
    let bed = with(script, Limits::default());
    assert!(bed.errors.is_empty(), "{:?}", bed.errors);
    bed
}

/// The beginning of every script below.
const HEAD: &str = "
    function _same(a, b)
      if type(a) == 'table' and type(b) == 'table' then
        for k, v in pairs(a) do if not _same(v, b[k]) then return false end end
        for k in pairs(b) do if a[k] == nil then return false end end
        return true
      end
      return a == b
    end
    function is(a, b)
      if not _same(a, b) then error('is ' .. tostring(a) .. ', not ' .. tostring(b), 2) end
    end
    function raises(f, ...)
      local ok, why = pcall(f, ...)
      assert(not ok, 'it does not raise')
      return tostring(why)
    end
";

/// Runs the body of a procedure that checks itself, on a database of that name.
#[track_caller]
pub fn run_on(database: &str, body: &str) {
    let script = format!("{HEAD} function f() {body} end");
    // What it does is bounded; how busy the machine is, is not.
    let limits = Limits { time: Duration::from_secs(60), ..Limits::default() };
    let mut bed = over_database(database, &script, limits);
    assert!(bed.errors.is_empty(), "{:?}", bed.errors);
    if let Err(error) = bed.call("f", &[]) {
        panic!("{error}");
    }
}

#[track_caller]
pub fn run(body: &str) {
    run_on("main", body);
}
