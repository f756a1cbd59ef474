//! Which commands are masked: refused to all Tokyo Tyrant clients, whoever they are. As in Tokyo
//! Tyrant, a mask is a set of bits, one for each command and one for each group of commands. A
//! command is refused if its own bit or that of one of its groups is set.

use tokaido_wire::tyrant::{COMMANDS, Effect, Verb, of_name};

/// The names of groups, whose bits follow those of commands.
const GROUPS: [(&str, u32); 6] = [
    ("allorg", Rights::ORIGINAL),
    ("allmc", Rights::MEMCACHED),
    ("allhttp", Rights::HTTP),
    ("allread", Rights::READ),
    ("allwrite", Rights::WRITE),
    ("allmanage", Rights::MANAGE),
];

/// How a client came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Binary,
    Memcached,
    Http,
}

/// What is masked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights(u64);

impl Rights {
    const ORIGINAL: u32 = 48;
    const MEMCACHED: u32 = 49;
    const HTTP: u32 = 50;
    const READ: u32 = 51;
    const WRITE: u32 = 52;
    const MANAGE: u32 = 53;

    /// The bits of a name; `None` if it is unknown. `slave`, which Tokyo Tyrant knows as well,
    /// masks nothing, since there is no replication.
    fn bits(name: &str) -> Option<u64> {
        let group = GROUPS.iter().find(|(group, _)| name.eq_ignore_ascii_case(group));
        match (group, of_name(name)) {
            (Some((_, bit)), _) => Some(1 << bit),
            (None, Some(command)) => Some(1 << command.verb as u32),
            _ if name.eq_ignore_ascii_case("all") => Some(u64::MAX),
            _ if name.eq_ignore_ascii_case("slave") => Some(0),
            _ => None,
        }
    }

    /// Checks a name of a configuration.
    pub(crate) fn check(name: &str) -> Result<(), String> {
        let Some(_) = Self::bits(name) else {
            let commands = COMMANDS.iter().map(|command| command.name);
            let groups = GROUPS.iter().map(|(group, _)| *group);
            let names: Vec<_> = commands.chain(["all"]).chain(groups).collect();
            return Err(format!("{name:?} is no command or group; there are {}", names.join(", ")));
        };
        Ok(())
    }

    /// What is masked and not unmasked.
    pub(super) fn of(mask: &[String], unmask: &[String]) -> Self {
        let bits = |names: &[String]| {
            names.iter().filter_map(|name| Self::bits(name)).fold(0, |bits, bit| bits | bit)
        };
        Self(bits(mask) & !bits(unmask))
    }

    /// Whether clients that came this way may not run a command.
    pub(crate) fn forbid(self, verb: Verb, door: Door) -> bool {
        let door = match door {
            Door::Binary => Self::ORIGINAL,
            Door::Memcached => Self::MEMCACHED,
            Door::Http => Self::HTTP,
        };
        let effect = COMMANDS.get(verb as usize).map(|command| command.effect);
        let effect = match effect {
            Some(Effect::Read) => 1 << Self::READ,
            Some(Effect::Write) => 1 << Self::WRITE,
            Some(Effect::Administer) => 1 << Self::MANAGE,
            Some(Effect::Call | Effect::Replicate) | None => 0,
        };
        self.0 & (1 << verb as u32 | 1 << door | effect) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(mask: &[&str], unmask: &[&str]) -> Rights {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        Rights::of(&names(mask), &names(unmask))
    }

    #[test]
    fn a_group_masks_its_commands() {
        let check = |mask: &[&str], unmask: &[&str], forbidden: &[Verb], allowed: &[Verb]| {
            let rights = rights(mask, unmask);
            let forbids = |verb: &Verb| rights.forbid(*verb, Door::Binary);
            assert!(forbidden.iter().all(forbids), "{mask:?} {forbidden:?}");
            assert!(!allowed.iter().any(forbids), "{mask:?} {allowed:?}");
        };
        check(&[], &[], &[], &[Verb::Put, Verb::Get, Verb::Ext, Verb::Sync]);
        check(&["put"], &[], &[Verb::Put], &[Verb::PutKeep, Verb::Get]);
        let writes = [Verb::Put, Verb::Vanish, Verb::Misc];
        check(&["AllWrite"], &[], &writes, &[Verb::Get, Verb::Ext]);
        check(&["allread"], &[], &[Verb::Get, Verb::Stat], &[Verb::Put, Verb::Misc]);
        let managed = [Verb::Sync, Verb::Copy];
        check(&["allmanage", "ext"], &["ext"], &managed, &[Verb::Ext, Verb::Out]);
        // Groups are bits of their own: unmasking a command frees it from no group.
        check(&["all"], &["get"], &[Verb::Get, Verb::Ext], &[]);
    }

    #[test]
    fn a_door_can_be_shut() {
        let doors = [("allorg", Door::Binary), ("allmc", Door::Memcached), ("allhttp", Door::Http)];
        for (name, shut) in doors {
            let rights = rights(&[name], &[]);
            for (_, door) in doors {
                assert_eq!(rights.forbid(Verb::Get, door), door == shut, "{name} {door:?}");
            }
        }
    }

    #[test]
    fn every_command_has_a_bit_of_its_own() {
        for command in COMMANDS {
            assert!((command.verb as u32) < Rights::ORIGINAL);
            let rights = rights(&[command.name], &[]);
            let forbidden = COMMANDS.iter().filter(|c| rights.forbid(c.verb, Door::Http));
            assert_eq!(forbidden.map(|c| c.name).collect::<Vec<_>>(), [command.name]);
        }
        assert!(Rights::check("allwrite").is_ok() && Rights::check("slave").is_ok());
        assert!(Rights::check("putt").unwrap_err().contains("putkeep"));
    }
}
