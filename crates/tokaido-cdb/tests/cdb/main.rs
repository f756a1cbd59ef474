//! Tests of constant databases: against a model, damage, the file system, and TinyCDB.

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
