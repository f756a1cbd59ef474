//! The state of the session that the prompt shows.

use tokaido_wire::resp::Reply;

/// The name of database 0.
const MAIN: &str = "main";

/// The database that commands go to, and whether they wait for EXEC.
#[derive(Clone, Debug)]
pub(super) struct Place {
    database: String,
    is_multi: bool,
    /// The database that EXEC goes to.
    queued: Option<String>,
}

impl Place {
    pub(super) fn new(database: &str) -> Self {
        Self { database: name_of(database.as_bytes()), is_multi: false, queued: None }
    }

    pub(super) fn database(&self) -> &str {
        &self.database
    }

    pub(super) fn is_multi(&self) -> bool {
        self.is_multi
    }

    pub(super) fn prompt(&self) -> String {
        let multi = if self.is_multi { " (multi)" } else { "" };
        format!("{}{multi}> ", self.database)
    }

    /// Updates the state after a command and its reply.
    pub(super) fn note(&mut self, arguments: &[impl AsRef<[u8]>], reply: &Reply) {
        let Some((name, rest)) = arguments.split_first() else { return };
        let is_refused = matches!(reply, Reply::Error(_));
        match (name.as_ref().to_ascii_lowercase().as_slice(), rest) {
            (b"select", [database]) if !is_refused => {
                let database = name_of(database.as_ref());
                match self.is_multi {
                    true => self.queued = Some(database),
                    false => self.database = database,
                }
            }
            (b"multi", []) if !is_refused => self.is_multi = true,
            // A refused EXEC ends the transaction as well.
            (b"exec", []) => {
                let is_done = matches!(reply, Reply::Array(_));
                let queued = self.queued.take().filter(|_| is_done);
                let database = queued.unwrap_or_else(|| self.database.clone());
                *self = Self::new(&database);
            }
            (b"discard", []) => *self = Self::new(&self.database),
            (b"reset", []) if !is_refused => *self = Self::new(MAIN),
            _ => {}
        }
    }
}

/// The name of SELECT's argument.
fn name_of(argument: &[u8]) -> String {
    let text = String::from_utf8_lossy(argument);
    match text.parse::<u64>() {
        Ok(0) => MAIN.to_owned(),
        _ => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_follows_the_commands() {
        let ok = || Reply::Simple("OK".into());
        let queued = || Reply::Simple("QUEUED".into());
        let refused = || Reply::Error("ERR no".into());
        let mut place = Place::new("main");
        for (command, reply, prompt) in [
            (&["GET", "k"][..], Reply::Null, "main> "),
            (&["select", "pages"], ok(), "pages> "),
            (&["SELECT", "no/name"], refused(), "pages> "),
            (&["MULTI"], ok(), "pages (multi)> "),
            (&["SELECT", "7"], queued(), "pages (multi)> "),
            (&["MULTI"], refused(), "pages (multi)> "),
            (&["EXEC", "x"], refused(), "pages (multi)> "),
            (&["EXEC"], Reply::Array(vec![ok()]), "7> "),
            (&["Multi"], ok(), "7 (multi)> "),
            (&["SELECT", "0"], queued(), "7 (multi)> "),
            (&["EXEC"], Reply::Error("EXECABORT".into()), "7> "),
            (&["MULTI"], ok(), "7 (multi)> "),
            (&["SELECT", "0"], queued(), "7 (multi)> "),
            (&["EXEC"], Reply::Null, "7> "),
            (&["MULTI"], ok(), "7 (multi)> "),
            (&["SELECT", "0"], queued(), "7 (multi)> "),
            (&["DISCARD"], ok(), "7> "),
            (&["EXEC"], refused(), "7> "),
            (&["MULTI"], ok(), "7 (multi)> "),
            (&["RESET"], Reply::Simple("RESET".into()), "main> "),
        ] {
            place.note(command, &reply);
            assert_eq!(place.prompt(), prompt, "{command:?}");
        }
    }
}
