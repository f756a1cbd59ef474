//! `[[scripts]]`: procedure files that are named one by one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tokaido_script::{Dialect, ScriptFile};

use super::ConfigError;

/// A procedure file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptConfig {
    /// Where it lies.
    pub path: PathBuf,
    /// The dialect that it is written in; `None`: the one that it names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
}

impl ScriptConfig {
    /// Refuses a dialect that there is not.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let Some(dialect) = &self.dialect else { return Ok(()) };
        match Dialect::find(dialect) {
            Ok(_) => Ok(()),
            Err(error) => {
                let message = format!("{}: {error}", self.path.display());
                Err(ConfigError::Value { option: "scripts", message })
            }
        }
    }

    pub(super) fn file(&self) -> ScriptFile {
        ScriptFile { path: self.path.clone(), dialect: self.dialect.clone() }
    }
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
    }
}
