//! The flags of `[limits]`: one per option, generated from the server's table.

use std::sync::LazyLock;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use tokaido_server::{ConfigError, LIMITS, Limit, Limits};

/// The flags, in the order of the table: `script_ms` is `--script-ms`.
static FLAGS: LazyLock<Vec<String>> =
    LazyLock::new(|| LIMITS.iter().map(|limit| limit.name.replace('_', "-")).collect());

/// The limits that were given.
#[derive(Debug, Default)]
pub(super) struct LimitFlags(Vec<(&'static Limit, u64)>);

impl LimitFlags {
    /// Overrides limits by those that were given.
    pub(super) fn put_over(&self, limits: &mut Limits) -> Result<(), ConfigError> {
        self.0.iter().try_for_each(|(limit, value)| limit.set(limits, *value))
    }
}

/// The name of a value in the help.
fn unit_of(limit: &Limit) -> &'static str {
    let has = |unit: &str| limit.name.split('_').any(|part| part == unit);
    match () {
        () if has("bytes") => "BYTES",
        () if has("ms") => "MS",
        () if has("us") => "US",
        () => "N",
    }
}

impl Args for LimitFlags {
    fn augment_args(command: Command) -> Command {
        let defaults = Limits::default();
        LIMITS.iter().zip(&*FLAGS).fold(command, |command, (limit, flag)| {
            let default = limit.get(&defaults);
            let argument = Arg::new(limit.name)
                .long(flag.as_str())
                .value_name(unit_of(limit))
                .value_parser(value_parser!(u64))
                .help(format!("{} [default: {default}]", limit.help.trim()))
                .help_heading(limit.group)
                .hide_short_help(true);
            command.arg(argument)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LimitFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let given =
            |limit: &'static Limit| matches.get_one::<u64>(limit.name).map(|value| (limit, *value));
        self.0.extend(LIMITS.iter().filter_map(given));
        Ok(())
    }
}
