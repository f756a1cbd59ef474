//! `[mod_lua]` and `[mod_mruby]`: what scripts of these Apache modules may use.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ConfigError;

/// What scripts of an Apache module may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApacheConfig {
    /// The directory whose files they may read and send; `None`: none.
    #[serde(with = "super::empty_is_none")]
    pub document_root: Option<PathBuf>,
}

impl ApacheConfig {
    /// Refuses a directory that does not exist.
    pub(super) fn validate(&self, option: &'static str) -> Result<(), ConfigError> {
        match &self.document_root {
            Some(path) if !path.is_dir() => {
                let message =
                    format!("{} is no directory; make it, or name another", path.display());
                Err(ConfigError::Value { option, message })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_root_is_a_directory() {
        let check = |root: &str| {
            let config = ApacheConfig { document_root: Some(root.into()) };
            config.validate("mod_lua.document_root").map_err(|error| error.to_string())
        };
        assert_eq!(check("/"), Ok(()));
        let error = check("/none/of/these").unwrap_err();
        assert!(
            error.contains("option mod_lua.document_root: /none/of/these is no directory"),
            "{error}"
        );
    }
}
