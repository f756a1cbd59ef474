//! Checks the page of each dialect against the names that its scripts find.

mod kyoto;
mod mod_lua;
mod openresty;
mod page;
mod tyrant;
