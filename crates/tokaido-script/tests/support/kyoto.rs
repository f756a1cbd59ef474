//! Scripts in the Kyoto Tycoon dialect.

use std::{sync::Arc, time::Duration};

use tokaido_script::{Limits, Settings};
use tokaido_store::Store;

pub use super::guest::Bed;

fn settings() -> Settings {
    let kyoto_databases = ["main", "other", "hot", "ports"].map(str::to_owned).to_vec();
    Settings { kyoto_databases, ..Settings::default() }
}

pub fn with(script: &str, limits: Limits) -> Bed {
    Bed::with("kyototycoon", script, settings(), limits)
}

/// Over the test's own store.
pub fn over(store: Arc<dyn Store>, script: &str, limits: Limits) -> Bed {
    Bed::over(store, "kyototycoon", script, settings(), limits)
}

pub fn of(script: &str) -> Bed {
    let bed = with(script, Limits::default());
    assert!(bed.errors.is_empty(), "{:?}", bed.errors);
    bed
}

/// The beginning of every script below.
const HEAD: &str = "
    kt = __kyototycoon__
    db = kt.db
    function same(a, b)
      if type(a) == 'table' and type(b) == 'table' then
        for k, v in pairs(a) do if not same(v, b[k]) then return false end end
        for k in pairs(b) do if a[k] == nil then return false end end
        return true
      end
      return a == b
    end
    function is(a, b)
      if not same(a, b) then error('is ' .. tostring(a) .. ', not ' .. tostring(b), 2) end
    end
    function code(d) return (d or db):error():code() end
    function raises(f, ...)
      local ok, why = pcall(f, ...)
      assert(not ok, 'it does not raise')
      return tostring(why)
    end
    NEVER = 2 ^ 40 - 1
";

/// Runs the body of a procedure that checks itself.
#[track_caller]
pub fn run(body: &str) {
    // What it does is bounded; how busy the machine is, is not.
    let limits = Limits { time: Duration::from_secs(60), ..Limits::default() };
    let mut bed = with(&format!("{HEAD} function f(inmap, outmap) {body} end"), limits);
    assert!(bed.errors.is_empty(), "{:?}", bed.errors);
    if let Err(error) = bed.call("f", &[]) {
        panic!("{error}");
    }
}
