//! Writes to the configuration file the settings that were changed while the server ran. Comments,
//! the order of existing entries and all other options stay as they are.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use toml_edit::{DocumentMut, Item, Table, TomlError, Value, value};

use super::{Config, ConfigError};
use crate::file_replacement;

/// The section with the settings.
const SECTION: &str = "redis";

/// The configuration file was not rewritten, and is unchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RewriteError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} has been changed, and is no configuration any more: {message}", path.display())]
    Changed { path: PathBuf, message: String },
    #[error(
        "without the flags of its command line, the server would not start with {}: {message}",
        path.display()
    )]
    NeedsFlags { path: PathBuf, message: String },
    #[error("{} has a {SECTION} that is not written as a section; write it as [{SECTION}]", path.display())]
    NoSection { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Held from reading the file until it is replaced, so that no other change is lost in between.
static REWRITING: Mutex<()> = Mutex::new(());

/// Writes these options of `[redis]` to the configuration file at `path`, unless it has them so
/// already. An option that the file does not name, and that has its default, is left out.
pub(crate) fn rewrite(path: &Path, options: &[(&str, Value)]) -> Result<(), RewriteError> {
    let _rewriting = REWRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let text = fs::read_to_string(path)
        .map_err(|source| RewriteError::Read { path: path.to_owned(), source })?;
    let changed = |message: String| RewriteError::Changed { path: path.to_owned(), message };
    let defaults = toml::Table::try_from(Config::default().redis)
        .map_err(|error| changed(error.to_string()))?;
    let mut document: DocumentMut =
        text.parse().map_err(|error: TomlError| changed(error.to_string()))?;
    let is_there = document.contains_key(SECTION);
    let section = document.entry(SECTION).or_insert(Item::Table(Table::new()));
    let Some(section) = section.as_table_mut() else {
        return Err(RewriteError::NoSection { path: path.to_owned() });
    };
    for (name, new) in options {
        let is_default = defaults.get(*name).is_some_and(|default| is_same(default, new));
        match section.get_mut(name).and_then(Item::as_value_mut) {
            Some(present) => {
                // The comment behind the value, and the space before it, belong to the option.
                let decor = present.decor().clone();
                *present = new.clone();
                *present.decor_mut() = decor;
            }
            None if is_default => {}
            None => section[name] = value(new.clone()),
        }
    }
    if !is_there && section.is_empty() {
        document.remove(SECTION);
    }
    let rewritten = document.to_string();
    // A file that the next start would refuse must not replace one that works.
    let config =
        Config::parse(&rewritten, path).map_err(|error: ConfigError| changed(error.to_string()))?;
    config.validate().map_err(|error| RewriteError::NeedsFlags {
        path: path.to_owned(),
        message: error.to_string(),
    })?;
    if rewritten == text {
        return Ok(());
    }
    file_replacement::replace(path, rewritten.as_bytes())
        .map_err(|source| RewriteError::Write { path: path.to_owned(), source })
}

fn is_same(default: &toml::Value, value: &Value) -> bool {
    match default {
        toml::Value::Integer(number) => value.as_integer() == Some(*number),
        toml::Value::String(text) => value.as_str() == Some(text),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str, options: &[(&str, Value)]) -> Result<String, RewriteError> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tokaido.toml");
        fs::write(&path, text).expect("a file");
        rewrite(&path, options)?;
        Ok(fs::read_to_string(&path).expect("the file"))
    }

    #[test]
    fn options_are_changed_where_they_stand_and_added_where_they_do_not() {
        let text = "# ours\nworkers = 2 # two\n\n[redis]\n# slow\nslowlog_entries_max = 5 # few\n\n[limits]\n";
        let options = [
            ("slowlog_entries_max", 7.into()),
            ("notify_keyspace_events", "KEA".into()),
            ("latency_threshold_ms", 0.into()),
        ];
        let expected = "# ours\nworkers = 2 # two\n\n[redis]\n# slow\nslowlog_entries_max = 7 # few\n\
                        notify_keyspace_events = \"KEA\"\n\n[limits]\n";
        assert_eq!(rewritten(text, &options).expect("rewritten"), expected);
    }

    #[test]
    fn a_file_without_the_section_gets_it_only_for_what_is_no_default() {
        let options = [("slowlog_entries_max", 128.into()), ("latency_threshold_ms", 0.into())];
        assert_eq!(rewritten("workers = 2\n", &options).expect("rewritten"), "workers = 2\n");
        let options = [("slowlog_entries_max", 9.into())];
        let expected = "workers = 2\n\n[redis]\nslowlog_entries_max = 9\n";
        assert_eq!(rewritten("workers = 2\n", &options).expect("rewritten"), expected);
        assert_eq!(rewritten("", &options).expect("rewritten"), &expected[13..]);
    }

    #[test]
    fn an_option_with_its_default_stays_where_somebody_has_written_it() {
        let text = "[redis]\nslowlog_entries_max = 5\n";
        let options = [("slowlog_entries_max", 128.into())];
        let expected = "[redis]\nslowlog_entries_max = 128\n";
        assert_eq!(rewritten(text, &options).expect("rewritten"), expected);
    }

    #[test]
    fn a_section_without_options_stays_with_its_comments() {
        let text =
            "workers = 2\n\n# What Redis calls its own.\n[redis]\n# nothing yet\n\n[limits]\n";
        let options = [("slowlog_entries_max", 128.into())];
        assert_eq!(rewritten(text, &options).expect("rewritten"), text);
    }

    #[test]
    fn a_file_that_needs_flags_is_left_alone_and_told_as_such() {
        let error = rewritten("listen = []\n", &[("slowlog_entries_max", 9.into())]);
        let error = error.expect_err("no server starts with it").to_string();
        assert!(error.starts_with("without the flags of its command line, the server"), "{error}");
        assert!(error.contains("name at least one address"), "{error}");
    }

    #[test]
    fn what_several_change_at_the_same_time_is_all_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tokaido.toml");
        let comments = "# What operators note.\n".repeat(20_000);
        fs::write(&path, &comments).expect("a file");
        let options = [
            "slowlog_entries_max",
            "latency_threshold_ms",
            "tracked_keys_max",
            "slowlog_slower_than_us",
        ];
        std::thread::scope(|scope| {
            for option in options {
                let path = &path;
                scope.spawn(move || {
                    for number in 1..=10 {
                        rewrite(path, &[(option, number.into())]).expect("rewritten");
                    }
                });
            }
        });
        let text = fs::read_to_string(&path).expect("the file");
        assert!(text.contains(&comments), "{} bytes", text.len());
        for option in options {
            assert!(text.contains(&format!("{option} = 10\n")), "{option}");
        }
    }

    #[test]
    fn what_is_no_configuration_any_more_is_left_alone() {
        let options = [("slowlog_entries_max", 9.into())];
        for text in ["workers = \n", "no_such_option = 1\n", "redis = 1\n"] {
            let error = rewritten(text, &options).expect_err(text);
            assert!(matches!(error, RewriteError::Changed { .. } | RewriteError::NoSection { .. }));
        }
        let inline = "redis = { slowlog_entries_max = 5 }\n";
        let error = rewritten(inline, &options).expect_err("not a section");
        assert!(error.to_string().ends_with("write it as [redis]"), "{error}");
    }
}
