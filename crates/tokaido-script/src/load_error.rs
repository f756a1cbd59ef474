//! Why a procedure file, or one of its procedures, is not in service.

use std::path::PathBuf;

use crate::{Procedure, Source};

/// Why a file, or one procedure of it, is not in service. Everything else is.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}{}: {message}", path.display(), line.map(|n| format!(":{n}")).unwrap_or_default())]
pub struct LoadError {
    /// The file's module.
    pub module: String,
    /// The name of the procedure, if the rest of the file is in service.
    pub procedure: Option<String>,
    /// The file.
    pub path: PathBuf,
    /// The line, where Lua names one.
    pub line: Option<u32>,
    /// What is wrong.
    pub message: String,
}

impl LoadError {
    /// An error of one procedure; the rest of its file is in service.
    #[must_use]
    pub fn of_procedure(procedure: &Procedure, message: String) -> Self {
        let (module, _) = procedure.name.rsplit_once('.').unwrap_or_default();
        Self {
            module: module.to_owned(),
            procedure: Some(procedure.name.clone()),
            path: procedure.path.clone(),
            line: Some(procedure.line),
            message,
        }
    }

    /// Whether this error is why there is no procedure of that name.
    fn explains(&self, name: &str) -> bool {
        match &self.procedure {
            Some(procedure) => procedure == name,
            None => name.strip_prefix(&self.module).is_some_and(|rest| rest.starts_with('.')),
        }
    }

    /// What to tell a caller of a missing procedure, if one of these errors is the reason.
    #[must_use]
    pub fn why_missing(errors: &[Self], name: &str) -> Option<String> {
        let explaining = errors.iter().filter(|error| error.explains(name));
        // `a.b.f` is a procedure of a/b.lua rather than of a.lua.
        let error = explaining.max_by_key(|error| error.module.len())?;
        let path = error.path.display();
        Some(match &error.procedure {
            None => format!("procedure {name} is in {path}, which did not load: {error}"),
            Some(_) => format!("procedure {name} of {path} is not in service: {error}"),
        })
    }

    /// An error of a whole file.
    #[must_use]
    pub fn of_file(source: &Source, message: String) -> Self {
        let (module, path) = (source.module.clone(), source.path.clone());
        Self { module, procedure: None, path, line: None, message }
    }

    /// Takes the file and line off the front of a Lua message.
    pub(crate) fn of_message(source: &Source, message: &str) -> Self {
        let (mut line, mut rest) = (None, message);
        if let Some(place) = message.find(".lua:") {
            let after = &message[place + ".lua:".len()..];
            let own = message[..place + ".lua".len()].trim_start_matches("...");
            if source.path.display().to_string().ends_with(own)
                && let Some((number, text)) = after.split_once(": ")
                && let Ok(number) = number.parse()
            {
                (line, rest) = (Some(number), text);
            }
        }
        Self {
            module: source.module.clone(),
            procedure: None,
            path: source.path.clone(),
            line,
            message: rest.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_misses_a_procedure_is_told_of_the_file_that_did_not_load() {
        let error = |module: &str, procedure: Option<&str>| LoadError {
            module: module.to_owned(),
            procedure: procedure.map(str::to_owned),
            path: format!("{}.lua", module.replace('.', "/")).into(),
            line: Some(3),
            message: "no".to_owned(),
        };
        let errors = [error("a", None), error("a.b", None), error("c", Some("c.f"))];
        let why = |name| LoadError::why_missing(&errors, name);
        let of_file = "procedure a.b.f is in a/b.lua, which did not load: a/b.lua:3: no";
        assert_eq!(why("a.b.f").as_deref(), Some(of_file));
        let of_file = "procedure a.f is in a.lua, which did not load: a.lua:3: no";
        assert_eq!(why("a.f").as_deref(), Some(of_file));
        let of_procedure = "procedure c.f of c.lua is not in service: c.lua:3: no";
        assert_eq!(why("c.f").as_deref(), Some(of_procedure));
        for name in ["a", "ab.f", "c.g", ""] {
            assert_eq!(why(name), None, "{name}");
        }
    }
}
