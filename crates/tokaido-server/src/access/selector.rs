//! A selector: commands, with the keys and channels that they may be used on.

use std::collections::BTreeMap;

use tokaido_wire::resp::Request;

use super::{
    channels::ChannelPatterns,
    error::RuleError,
    gate::What,
    patterns::{KeyPatterns, PATTERNS_MAX, Rights},
};
use crate::redis::{COMMANDS, Command, Uses, command_number, find_by_name};

/// What a user may do. A user can have several selectors; one that allows a request is enough.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Selector {
    commands: Commands,
    keys: KeyPatterns,
    channels: ChannelPatterns,
}

/// The commands of a selector.
#[derive(Clone, PartialEq, Eq)]
struct Commands {
    /// Whether nothing has been taken away since all commands were allowed.
    are_all: bool,
    /// Whether commands that no rule names are allowed.
    base: bool,
    allowed: Vec<bool>,
    /// First arguments with which an otherwise forbidden command is allowed.
    first_arguments: BTreeMap<usize, Vec<Vec<u8>>>,
    /// The rules since the base, each with its sign: `+get`, `-@read`.
    rules: Vec<String>,
}

impl Default for Commands {
    fn default() -> Self {
        Self::all(false)
    }
}

impl Commands {
    /// All commands, or none.
    fn all(are_allowed: bool) -> Self {
        Self {
            are_all: are_allowed,
            base: are_allowed,
            allowed: vec![are_allowed; COMMANDS.len()],
            first_arguments: BTreeMap::new(),
            rules: Vec::new(),
        }
    }

    /// Allows or forbids a command, with its subcommands.
    fn change(&mut self, command: &'static Command, is_allowed: bool) {
        let of_container = COMMANDS
            .iter()
            .filter(|other| command.is_container() && other.container() == Some(command.name));
        for command in std::iter::once(command).chain(of_container) {
            let number = command_number(command);
            self.allowed[number] = is_allowed;
            self.first_arguments.remove(&number);
        }
        self.are_all &= is_allowed;
    }

    /// Notes a rule, in place of those that it makes redundant.
    fn note(&mut self, sign: char, name: &str) {
        self.rules.retain(|rule| {
            let rest = rule[1..].strip_prefix(name);
            rest.is_none_or(|rest| !rest.is_empty() && !rest.starts_with('|'))
        });
        self.rules.push(format!("{sign}{name}"));
    }

    /// Applies a rule about commands: `+get`, `-@read`, `+config|get`, `+select|0`.
    fn apply(&mut self, rule: &str) -> Result<(), RuleError> {
        let is_allowed = match rule.as_bytes().first() {
            Some(b'+') => true,
            Some(b'-') => false,
            _ => return Err(RuleError::Syntax),
        };
        let (sign, name) = (if is_allowed { '+' } else { '-' }, &rule[1..]);
        if let Some(category) = name.strip_prefix('@') {
            if category.eq_ignore_ascii_case("all") {
                *self = Self::all(is_allowed);
                return Ok(());
            }
            let is_of = |c: &&Command| {
                c.categories().any(|known| known[1..].eq_ignore_ascii_case(category))
            };
            let commands: Vec<&'static Command> = COMMANDS.iter().filter(is_of).collect();
            if commands.is_empty() {
                return Err(RuleError::Unknown);
            }
            commands.into_iter().for_each(|command| self.change(command, is_allowed));
            self.note(sign, &name.to_ascii_lowercase());
            return Ok(());
        }
        if let Some(command) = find_by_name(name) {
            self.change(command, is_allowed);
            self.note(sign, command.name);
            return Ok(());
        }
        let (command, argument) = name.rsplit_once('|').ok_or(RuleError::Unknown)?;
        let command = find_by_name(command).ok_or(RuleError::Unknown)?;
        if !is_allowed {
            return Err(RuleError::Unknown);
        }
        if command.container().is_some() {
            return Err(RuleError::FirstArgument);
        }
        if argument.is_empty() {
            return Err(RuleError::Syntax);
        }
        if command.is_container() {
            return Err(RuleError::Unknown);
        }
        let arguments = self.first_arguments.entry(command_number(command)).or_default();
        if arguments.len() >= PATTERNS_MAX {
            return Err(RuleError::TooMany(PATTERNS_MAX));
        }
        let argument = match tells_case_apart(command) {
            true => argument.to_owned(),
            false => argument.to_ascii_lowercase(),
        };
        if !arguments.iter().any(|known| known == argument.as_bytes()) {
            arguments.push(argument.as_bytes().to_vec());
        }
        self.note(sign, &format!("{}|{argument}", command.name));
        Ok(())
    }

    fn allow(&self, command: &'static Command, first_argument: Option<&[u8]>) -> bool {
        if self.are_all || command.is_open() {
            return true;
        }
        let number = command_number(command);
        if self.allowed[number] {
            return true;
        }
        let (Some(known), Some(given)) = (self.first_arguments.get(&number), first_argument) else {
            return false;
        };
        known.iter().any(|known| match tells_case_apart(command) {
            true => known == given,
            false => known.eq_ignore_ascii_case(given),
        })
    }

    fn describe(&self) -> String {
        let base = if self.base { "+@all" } else { "-@all" };
        let rules = self.rules.iter().map(String::as_str);
        std::iter::once(base).chain(rules).collect::<Vec<_>>().join(" ")
    }
}

/// Whether the first argument of a command is case-sensitive, as names of procedures, functions and
/// databases are.
fn tells_case_apart(command: &Command) -> bool {
    matches!(command.name, "procedure" | "fcall" | "fcall_ro" | "select" | "swapdb")
}

/// Why a selector does not allow a request, with the argument's place for ranking refusals.
pub(super) struct Refusal {
    pub(super) what: What,
    pub(super) place: usize,
}

impl Refusal {
    /// Ranks a refusal: of several, the most informative one is reported.
    pub(super) fn rank(&self) -> (u8, usize) {
        let kind = match self.what {
            What::Command(_) => 0,
            What::Key(_) => 1,
            What::Channel(_) => 2,
        };
        (kind, self.place)
    }
}

impl Selector {
    /// A selector that allows everything.
    pub(super) fn of_all() -> Self {
        let mut selector = Self { commands: Commands::all(true), ..Self::default() };
        selector.keys.allow_all();
        selector.channels.allow_all();
        selector
    }

    /// Parses the rules of a selector, as they stand between its parentheses.
    pub(super) fn parse(rules: &[u8]) -> Result<Self, RuleError> {
        let mut selector = Self::default();
        for rule in rules.split(|&byte| byte == b' ').filter(|rule| !rule.is_empty()) {
            // In a file, the selector would end here.
            if rule.ends_with(b")") {
                return Err(RuleError::Syntax);
            }
            selector.apply(rule)?;
        }
        Ok(selector)
    }

    /// Applies a rule.
    pub(super) fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule.first() {
            _ if is("allkeys") || is("~*") => self.keys.allow_all(),
            _ if is("resetkeys") => self.keys = KeyPatterns::default(),
            _ if is("allchannels") || is("&*") => self.channels.allow_all(),
            _ if is("resetchannels") => self.channels = ChannelPatterns::default(),
            _ if is("allcommands") => self.commands = Commands::all(true),
            _ if is("nocommands") => self.commands = Commands::all(false),
            Some(b'~' | b'%') => self.keys.add(rule)?,
            Some(b'&') => self.channels.add(&rule[1..])?,
            _ => {
                let rule = std::str::from_utf8(rule).map_err(|_| RuleError::Syntax)?;
                if super::has_blank(rule.as_bytes()) {
                    return Err(RuleError::Syntax);
                }
                self.commands.apply(rule)?;
            }
        }
        Ok(())
    }

    pub(super) fn allows_all(&self) -> bool {
        self.commands.are_all && self.keys.are_all() && self.channels.are_all()
    }

    /// Whether a request with this command is allowed.
    pub(super) fn check(
        &self,
        command: &'static Command,
        request: Request<'_>,
        uses: &mut Option<Uses>,
    ) -> Result<(), Refusal> {
        // The arguments of a subcommand begin after its name.
        if !self.commands.allow(command, request.get(1)) {
            return Err(Refusal { what: What::Command(command.name), place: 0 });
        }
        if self.keys.are_all() && self.channels.are_all() {
            return Ok(());
        }
        let uses = uses.get_or_insert_with(|| Uses::of(command, request));
        let text = |place: usize| request.get(place).unwrap_or_default();
        for &(place, rights) in &uses.keys {
            if !self.keys.match_key(text(place), rights) {
                return Err(Refusal { what: What::Key(text(place).to_vec()), place });
            }
        }
        if uses.every_key && !self.keys.match_every_key(Rights::BOTH) {
            return Err(Refusal { what: What::Key(text(1).to_vec()), place: 0 });
        }
        for &place in &uses.channels {
            if !self.channels.allow(text(place), uses.are_patterns) {
                return Err(Refusal { what: What::Channel(text(place).to_vec()), place });
            }
        }
        Ok(())
    }

    /// Whether the command may be run on every key, with these rights.
    pub(super) fn allows_on_every_key(
        &self,
        command: &'static Command,
        request: Request<'_>,
        rights: Rights,
    ) -> bool {
        self.check(command, request, &mut None).is_ok() && self.keys.match_every_key(rights)
    }

    /// Whether all of these commands may be run on these keys.
    pub(super) fn check_all(
        &self,
        commands: &[&'static Command],
        first_argument: Option<&[u8]>,
        keys: &[&[u8]],
        rights: Rights,
    ) -> Result<(), Refusal> {
        for command in commands {
            if !self.commands.allow(command, first_argument) {
                return Err(Refusal { what: What::Command(command.name), place: 0 });
            }
        }
        match keys.iter().position(|key| !self.keys.match_key(key, rights)) {
            Some(place) => Err(Refusal { what: What::Key(keys[place].to_vec()), place }),
            None => Ok(()),
        }
    }

    pub(super) fn matches_every_key(&self, rights: Rights) -> bool {
        self.keys.match_every_key(rights)
    }

    pub(super) fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.channels.allow(channel, is_pattern)
    }

    pub(crate) fn describe_commands(&self) -> String {
        self.commands.describe()
    }

    pub(crate) fn describe_keys(&self) -> Vec<u8> {
        self.keys.describe()
    }

    pub(crate) fn describe_channels(&self) -> Vec<u8> {
        self.channels.describe()
    }

    /// The selector as it is written in an ACL file.
    pub(super) fn describe(&self) -> Vec<u8> {
        let reset: &[u8] = if self.channels.are_all() { b"" } else { b"resetchannels" };
        let (keys, channels) = (self.describe_keys(), self.describe_channels());
        let commands = self.describe_commands();
        let parts = [&keys, reset, &channels, commands.as_bytes()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(&b' ')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_arguments_are_told_apart_by_case_where_the_commands_do() {
        let allows = |name: &str, first_argument: &[u8]| {
            let mut commands = Commands::default();
            assert!(commands.apply(&format!("+{name}|aB")).is_ok());
            commands.allow(find_by_name(name).expect("a command"), Some(first_argument))
        };
        for name in ["select", "swapdb", "procedure", "fcall", "fcall_ro"] {
            assert!(allows(name, b"aB"), "{name}");
            assert!(!allows(name, b"AB") && !allows(name, b"ab"), "{name}");
        }
        assert!(allows("echo", b"aB") && allows("echo", b"AB"));
    }
}
