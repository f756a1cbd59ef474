//! `[[scripts]]`: procedure files that are listed one by one.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use tokaido_script::{Dialect, ScriptFile};

use super::ConfigError;

/// A procedure file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptConfig {
    /// The path of the file.
    pub path: PathBuf,
    /// The dialect that it is written in; `None`: the one that the file names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Further settings for its dialect: its `route`, and the like.
    #[serde(flatten, deserialize_with = "read_settings")]
    pub settings: BTreeMap<String, String>,
}

/// Reads the settings of a file. All of them are strings; an error names the setting that is not.
fn read_settings<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let settings = BTreeMap::<String, toml::Value>::deserialize(deserializer)?;
    let texts = settings.into_iter().map(|(name, value)| match value {
        toml::Value::String(text) => Ok((name, text)),
        other => Err(D::Error::custom(format!("{name} is a text in quotes, not {other}"))),
    });
    texts.collect()
}

impl ScriptConfig {
    /// Refuses an unknown dialect, and settings that the dialect does not know.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let refused = |why: String| {
            let message = format!("{}: {why}", self.path.display());
            Err(ConfigError::Value { option: "scripts", message })
        };
        let known = match self.dialect.as_deref().map(Dialect::find) {
            None => &[],
            Some(Ok(dialect)) => dialect.settings,
            Some(Err(error)) => return refused(error.to_string()),
        };
        let unknown = |name: &&String| !known.iter().any(|setting| setting.name == **name);
        let Some(unknown) = self.settings.keys().find(unknown) else { return Ok(()) };
        refused(match (&self.dialect, known) {
            (None, _) if is_of_a_dialect(unknown) => {
                format!("{unknown:?} needs the name of a dialect beside it")
            }
            (None, _) => format!(
                "there is no option {unknown:?}; there are path, dialect and what the dialect knows, such as route"
            ),
            (Some(dialect), []) => format!("the dialect {dialect} has no {unknown:?}"),
            (Some(dialect), known) => {
                let known: Vec<_> = known.iter().map(|setting| setting.name).collect();
                format!("the dialect {dialect} has no {unknown:?}, but {}", known.join(", "))
            }
        })
    }

    /// The file, and those that its settings name.
    fn files(&self) -> (ScriptFile, Vec<ScriptFile>) {
        let dialect = self.dialect.as_deref().and_then(|name| Dialect::find(name).ok());
        let is_file = |name: &str| {
            dialect.is_some_and(|d| d.settings.iter().any(|s| s.name == name && s.is_file))
        };
        let mut settings = self.settings.clone().into_iter().collect::<Vec<_>>();
        let mut named = Vec::new();
        for (_, value) in settings.iter_mut().filter(|(name, _)| is_file(name)) {
            let path = PathBuf::from(&*value);
            // In the same way as files of the directory name each other.
            if let Some(module) = path.file_stem().and_then(|stem| stem.to_str()) {
                *value = module.to_owned();
            }
            named.push(ScriptFile { path, dialect: self.dialect.clone(), settings: Vec::new() });
        }
        let (path, dialect) = (self.path.clone(), self.dialect.clone());
        (ScriptFile { path, dialect, settings }, named)
    }
}

/// All files of these entries, without duplicates. An entry for a file takes precedence over the
/// file's name in another entry, whatever their order.
pub(super) fn files(scripts: &[ScriptConfig]) -> Vec<ScriptFile> {
    let (mut files, named): (Vec<_>, Vec<_>) = scripts.iter().map(ScriptConfig::files).unzip();
    for file in named.into_iter().flatten() {
        if !files.iter().any(|other| real(&other.path) == real(&file.path)) {
            files.push(file);
        }
    }
    files
}

fn is_of_a_dialect(name: &str) -> bool {
    let mut settings = Dialect::ALL.iter().flat_map(|dialect| dialect.settings);
    settings.any(|setting| setting.name == name)
}

/// The canonical path; the path as it is if nothing is there.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_that_there_is_not_is_refused_by_name() {
        let check = |text: &str| {
            let script: ScriptConfig = toml::from_str(text).expect("it parses");
            script.validate().map_err(|error| error.to_string())
        };
        assert_eq!(check("path = \"a.lua\""), Ok(()));
        assert_eq!(check("path = \"a.lua\"\ndialect = \"tokaido\""), Ok(()));
        let error = check("path = \"a.lua\"\ndialect = \"basic\"").unwrap_err();
        let start = "option scripts: a.lua: there is no dialect \"basic\"; there are tokaido";
        assert!(error.starts_with(start), "{error}");
        assert_eq!(check("path = \"a.lua\"\ndialect = \"ngx\"\nroute = \"/a\""), Ok(()));
        for (text, expected) in [
            ("route = \"/a\"", "\"route\" needs the name of a dialect beside it"),
            ("dialct = \"ngx\"", "there is no option \"dialct\"; there are path, dialect and"),
            ("dialect = \"kyototycoon\"\nroute = \"/a\"", "has no \"route\""),
            ("dialect = \"ngx\"\nrout = \"/a\"", "the dialect ngx has no \"rout\", but route,"),
        ] {
            let error = check(&format!("path = \"a.lua\"\n{text}")).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_setting_that_is_no_text_is_named() {
        let text = "path = \"a.lua\"\ndialect = \"ngx\"\nroute = 5";
        let error = toml::from_str::<ScriptConfig>(text).expect_err("no text").to_string();
        assert!(error.contains("route is a text in quotes, not 5"), "{error}");
    }

    #[test]
    fn an_entry_goes_over_a_name_in_another_one_before_it_or_behind_it() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("auth.lua"), "").expect("a file");
        let place = directory.path().display();
        let guarded =
            format!("path = \"a.lua\"\ndialect = \"ngx\"\naccess = \"{place}/./auth.lua\"");
        let own = format!("path = \"{place}/auth.lua\"\ndialect = \"ngx\"\nroute = \"/auth\"");
        let parse = |text: &String| toml::from_str::<ScriptConfig>(text).expect("it parses");
        for order in [[&guarded, &own], [&own, &guarded]] {
            let files = files(&order.map(parse));
            assert_eq!(files.len(), 2, "{files:?}");
            let auth = files.iter().find(|file| file.path.ends_with("auth.lua"));
            let settings = &auth.expect("it is there").settings;
            assert_eq!(*settings, [("route".to_owned(), "/auth".to_owned())]);
        }
    }

    #[test]
    fn a_file_that_several_entries_name_is_loaded_once() {
        let script = |path: &str, access: &str| {
            let text = format!("path = \"{path}\"\ndialect = \"ngx\"\naccess = \"{access}\"");
            toml::from_str::<ScriptConfig>(&text).expect("it parses")
        };
        let files = files(&[script("a.lua", "lib/auth.lua"), script("b.lua", "lib/auth.lua")]);
        let paths: Vec<_> = files.iter().map(|file| file.path.display().to_string()).collect();
        assert_eq!(paths, ["a.lua", "b.lua", "lib/auth.lua"]);
        assert_eq!(files[1].settings, [("access".to_owned(), "auth".to_owned())]);
    }
}
