//! The log of this process, as a server in it writes it.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

/// Receives the log of this process.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    pub fn begin() -> Self {
        let log = Self::default();
        let writer = log.clone();
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).init();
        log
    }

    /// The lines since the last call, except those about the server itself.
    pub fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().expect("no panic"));
        let text = String::from_utf8(bytes).expect("text");
        text.lines().filter(|line| !line.contains(" INFO ")).map(str::to_owned).collect()
    }
}
