//! What the tests of this crate share.
#![allow(dead_code, unused_imports, unreachable_pub)]

pub mod bed;
pub mod guest;
pub mod handlers;
pub mod kyoto;
pub mod redis;
pub mod store;
pub mod tyrant;

pub use bed::{Bed, limits, request, sources, text, write_body};
pub use store::{MemoryStore, START_MS};

/// Defines `disturbed(state, when, disturb)` in Lua: a proxy through which a walk's state is read and written. It
/// runs `disturb` when one of its fields is read or written, or has moved the walk on.
pub const DISTURBED: &str = "
    local function disturbed(state, when, disturb)
      return setmetatable({}, {
        __index = function(_, name)
          local value = state[name]
          if when == 'read' then disturb() end
          return value
        end,
        __newindex = function(_, name, value)
          state[name] = value
          local is_moved = name == 'last' or name == 'at' and value > 0
          if when == 'write' or when == 'moved' and is_moved then disturb() end
        end,
      })
    end
";
