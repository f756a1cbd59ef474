//! A script of the command line: a file, standard input or a text, in Ruby or in any dialect of Lua.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use tempfile::TempDir;
use tokaido_script::{Dialect, Source, Value};
use tokaido_store::{Store, composite::CompositeStore};

use crate::{
    endpoint::{Missing, open_own_store},
    error::Error,
    shared_dictionary::SharedDictionary,
};

/// The text to run, in whatever language.
pub(crate) struct ScriptText {
    /// Its name in messages.
    pub(crate) name: String,
    pub(crate) text: Vec<u8>,
    pub(crate) arguments: Vec<Value>,
}

impl ScriptText {
    /// Takes `code` in place of a file; the argument in the file's place is then the first argument.
    pub(crate) fn of(
        code: Option<&str>,
        file: Option<&str>,
        arguments: &[String],
    ) -> Result<Self, Error> {
        let (text, name, first) = match (code, file) {
            (Some(code), first) => (code.as_bytes().to_vec(), "(-e)".to_owned(), first),
            (None, Some(file)) => {
                let (text, name) = read(Path::new(file))?;
                (text, name, None)
            }
            (None, None) => unreachable!("one of them is required"),
        };
        let arguments = first.into_iter().chain(arguments.iter().map(String::as_str));
        let arguments = arguments.map(|text| Value::String(text.as_bytes().to_vec())).collect();
        Ok(Self { name, text, arguments })
    }
}

/// The text to run in Lua.
pub(crate) struct Script {
    pub(crate) dialect: &'static Dialect,
    /// Its name in messages.
    pub(crate) name: String,
    pub(crate) text: Vec<u8>,
    pub(crate) arguments: Vec<Value>,
}

impl Script {
    /// The dialect is the given one, or that of the script's first line.
    pub(crate) fn of(script: ScriptText, dialect: Option<&str>) -> Result<Self, Error> {
        let ScriptText { name, text, arguments } = script;
        let source = Source {
            module: name.clone(),
            path: PathBuf::new(),
            text: text.as_slice().into(),
            dialect: dialect.map(str::to_owned),
            settings: Vec::new(),
        };
        let dialect = Dialect::find(source.dialect_name());
        let dialect = dialect.map_err(|error| Error::Usage(error.to_string()))?;
        if [Dialect::MOD_LUA.name, Dialect::MOD_MRUBY.name].contains(&dialect.name) {
            let (name, flag) = (dialect.name, dialect.name.replace('_', "-"));
            return Err(Error::Usage(format!(
                "handlers of {name} answer requests; serve them with `tokaido serve --{flag} FILE`"
            )));
        }
        Ok(Self { dialect, name, text, arguments })
    }
}

/// The store that a script runs on.
pub(crate) struct ScriptStore {
    pub(crate) store: Arc<dyn Store>,
    /// Dropping it, after the store, removes the directory.
    _temporary: Option<TempDir>,
}

impl ScriptStore {
    /// Opens the store in this directory, which is created if needed; without a directory it is an
    /// empty one, removed at the end. The dictionaries are added to it.
    pub(crate) fn open(
        directory: Option<&Path>,
        dictionaries: &[SharedDictionary],
    ) -> Result<Self, Error> {
        let open = |directory: &Path| {
            let store = open_own_store(directory, Missing::Create)?;
            let mounts = dictionaries.iter().map(SharedDictionary::mount).collect();
            Ok::<_, Error>(Arc::new(CompositeStore::new(Box::new(store), mounts)?))
        };
        if let Some(directory) = directory {
            return Ok(Self { store: open(directory)?, _temporary: None });
        }
        let made = tempfile::tempdir();
        let temporary =
            made.map_err(|source| Error::Io { what: "cannot make a temporary directory", source })?;
        Ok(Self { store: open(temporary.path())?, _temporary: Some(temporary) })
    }
}

fn read(file: &Path) -> Result<(Vec<u8>, String), Error> {
    let mut text = Vec::new();
    if file == Path::new("-") {
        io::stdin().read_to_end(&mut text).map_err(Error::file(file))?;
        return Ok((text, "stdin".to_owned()));
    }
    text = std::fs::read(file).map_err(Error::file(file))?;
    Ok((text, file.display().to_string()))
}
