//! Holds docs/openresty.md to the names that OpenResty's handlers find.

mod names;
