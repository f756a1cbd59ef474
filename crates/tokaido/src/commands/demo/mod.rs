//! `tokaido demo`: all of it in a minute, for somebody who has never seen it.

mod ask;
mod assets;
mod tour;

pub(crate) use tour::{DemoArgs, demo};
