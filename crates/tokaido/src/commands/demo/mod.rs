//! `tokaido demo`: all of it in a minute, for people who have never seen it.

mod ask;
mod assets;
mod tour;

pub(crate) use tour::{DemoArgs, demo};
