//! Constant databases: against a model, against damage, against the file system, and against
//! TinyCDB.

mod checks;
mod damage;
mod files;
mod fuzzing;
mod limits;
mod model;
mod support;
mod tinycdb;
