//! Holds the page of each dialect to the names that its scripts find.

mod kyoto;
mod mod_lua;
mod openresty;
mod page;
mod tyrant;
