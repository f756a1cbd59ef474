//! `[tyrant]`: what clients of Tokyo Tyrant see.

use serde::{Deserialize, Serialize};
use tokaido_store::check_database_name;

use super::ConfigError;
use crate::{
    shared::MAIN,
    tyrant::{PERIODIC_MAX, Periodic, Rights},
};

/// What clients of Tokyo Tyrant see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TyrantConfig {
    /// The database that clients read and write.
    pub database: String,
    /// Commands and groups of commands that clients may not run.
    pub mask: Vec<String>,
    /// Commands and groups of commands that are removed from the mask again.
    pub unmask: Vec<String>,
    /// Functions that the server calls by itself, each with its period in seconds.
    pub periodic: Vec<String>,
}

impl Default for TyrantConfig {
    fn default() -> Self {
        Self {
            database: MAIN.to_owned(),
            mask: Vec::new(),
            unmask: Vec::new(),
            periodic: Vec::new(),
        }
    }
}

impl TyrantConfig {
    /// Refuses names that no database, command or group has, and functions with a wrong period.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let value = |option, message| Err(ConfigError::Value { option, message });
        if let Err(error) = check_database_name(&self.database) {
            return value("tyrant.database", error.to_string());
        }
        for (option, names) in [("tyrant.mask", &self.mask), ("tyrant.unmask", &self.unmask)] {
            if let Some(message) = names.iter().find_map(|name| Rights::check(name).err()) {
                return value(option, message);
            }
        }
        if self.periodic.len() > PERIODIC_MAX {
            let message = format!("at most {PERIODIC_MAX} functions are called by themselves");
            return value("tyrant.periodic", message);
        }
        match self.periodic.iter().find_map(|text| text.parse::<Periodic>().err()) {
            Some(error) => value("tyrant.periodic", error.to_string()),
            None => Ok(()),
        }
    }

    /// The functions that the server calls by itself. In a validated configuration, each entry is one.
    pub(crate) fn periodic(&self) -> impl Iterator<Item = Periodic> {
        self.periodic.iter().filter_map(|text| text.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        let check = |text: &str| {
            let config: TyrantConfig = toml::from_str(text).expect("it parses");
            config.validate().map_err(|error| error.to_string())
        };
        assert_eq!(check("mask = [\"allwrite\", \"Get\"]\nunmask = [\"get\"]"), Ok(()));
        let error = check("mask = [\"putt\"]").unwrap_err();
        assert!(error.starts_with("option tyrant.mask: \"putt\" is no command"), "{error}");
        assert!(check("unmask = [\"writes\"]").is_err());
        assert!(check("database = \"\"").is_err());
        assert_eq!(check("periodic = [\"sweep:60\", \"tell:0.5\"]"), Ok(()));
        let error = check("periodic = [\"sweep\"]").unwrap_err();
        assert!(error.starts_with("option tyrant.periodic: \"sweep\" is no function"), "{error}");
        assert!(check(&format!("periodic = {:?}", ["sweep:1"; 9])).is_err());
    }
}
