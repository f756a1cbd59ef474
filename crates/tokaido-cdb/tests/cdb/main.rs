//! Constant databases: against a model, against damage, against the file system, and against
//! TinyCDB.

#[path = "../../../tokaido/src/formats/cdb_text/mod.rs"]
mod cdb_text;
mod checks;
mod damage;
mod files;
mod fuzzing;
mod limits;
mod model;
mod support;
mod text_checks;
mod tinycdb;
