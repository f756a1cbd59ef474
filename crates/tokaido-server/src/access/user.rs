//! A user: how they authenticate, and what they may do.

use std::{
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU8, Ordering},
    },
};

use tokaido_wire::resp::Request;

use super::{
    error::RuleError,
    gate::{Forbidden, What},
    password::Hash,
    patterns::{PATTERNS_MAX, Rights},
    selector::{Refusal, Selector},
};
use crate::redis::Command;

/// A user. Connections that have authenticated as this user hold it, and so see changes at once.
pub(crate) struct User {
    name: String,
    rules: RwLock<Arc<Rules>>,
    /// What the rules amount to: the only thing that a request of an unrestricted user looks at.
    power: AtomicU8,
}

/// The rules decide.
const RULED: u8 = 0;
/// Everything is allowed.
const ALL: u8 = 1;
/// The user has been deleted.
const DELETED: u8 = 2;

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
    }
}

impl User {
    pub(super) fn new(name: &str, rules: Rules) -> Self {
        let user = Self {
            name: name.to_owned(),
            rules: RwLock::new(Arc::default()),
            power: AtomicU8::new(RULED),
        };
        user.set_rules(rules);
        user
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_rules(&self, rules: Rules) {
        let power = if rules.allow_all() { ALL } else { RULED };
        let mut current = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(rules);
        self.power.store(power, Ordering::Release);
    }

    /// Takes all rights from the clients that are connected as this user.
    pub(super) fn delete(&self) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        *rules = Arc::default();
        self.power.store(DELETED, Ordering::Release);
    }

    pub(super) fn may_do_all(&self) -> bool {
        self.power.load(Ordering::Acquire) == ALL
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.power.load(Ordering::Acquire) == DELETED
    }

    fn forbidden(&self, refusal: Refusal) -> Forbidden {
        Forbidden { user: self.name.clone(), what: refusal.what }
    }

    /// Asks each selector. If none allows it, the error is from the one that got furthest.
    pub(super) fn ask(
        &self,
        ask: impl FnMut(&Selector) -> Result<(), Refusal>,
    ) -> Result<(), Forbidden> {
        self.rules().ask(ask).map_err(|refusal| self.forbidden(refusal))
    }
}

/// The rules of a user: its state, passwords and selectors.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Rules {
    is_on: bool,
    needs_no_password: bool,
    /// Whether payloads are to be checked, if a rule said so. All payloads are checked here.
    sanitizes: Option<bool>,
    passwords: Vec<Hash>,
    /// The first is the user's own; it always exists.
    selectors: Vec<Selector>,
}

impl Default for Rules {
    /// The rules of a new user: off, and nothing is allowed.
    fn default() -> Self {
        Self {
            is_on: false,
            needs_no_password: false,
            sanitizes: None,
            passwords: Vec::new(),
            selectors: vec![Selector::default()],
        }
    }
}

impl Rules {
    /// The rules of the default user: everything, with this password or with none.
    pub(super) fn of_all(password: Option<&str>) -> Self {
        Self {
            is_on: true,
            needs_no_password: password.is_none(),
            sanitizes: None,
            passwords: password.map(|password| Hash::of(password.as_bytes())).into_iter().collect(),
            selectors: vec![Selector::of_all()],
        }
    }

    /// Applies a Redis rule, such as `on`, `>password`, `+get` or `(~cache:* +get)`.
    pub(crate) fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            // Redis ignores it, too.
            [] => {}
            _ if is("on") => self.is_on = true,
            _ if is("off") => self.is_on = false,
            _ if is("nopass") => {
                self.needs_no_password = true;
                self.passwords.clear();
            }
            _ if is("resetpass") => {
                self.needs_no_password = false;
                self.passwords.clear();
            }
            _ if is("skip-sanitize-payload") => self.sanitizes = Some(false),
            _ if is("sanitize-payload") => self.sanitizes = Some(true),
            _ if is("reset") => *self = Self { sanitizes: Some(true), ..Self::default() },
            _ if is("clearselectors") => self.selectors.truncate(1),
            [b'>', password @ ..] => self.add_password(Hash::of(password))?,
            [b'#', digits @ ..] => {
                self.add_password(Hash::parse(digits).ok_or(RuleError::Hash)?)?;
            }
            [b'<', password @ ..] => self.remove_password(Hash::of(password))?,
            [b'!', digits @ ..] => {
                self.remove_password(Hash::parse(digits).ok_or(RuleError::Hash)?)?;
            }
            [b'(', rules @ .., b')'] => {
                if self.selectors.len() > PATTERNS_MAX {
                    return Err(RuleError::TooMany(PATTERNS_MAX));
                }
                self.selectors.push(Selector::parse(rules)?);
            }
            _ => self.selectors[0].apply(rule)?,
        }
        Ok(())
    }

    fn add_password(&mut self, hash: Hash) -> Result<(), RuleError> {
        if self.passwords.len() >= PATTERNS_MAX {
            return Err(RuleError::TooMany(PATTERNS_MAX));
        }
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
        self.needs_no_password = false;
        Ok(())
    }

    fn remove_password(&mut self, hash: Hash) -> Result<(), RuleError> {
        let place = self.passwords.iter().position(|known| *known == hash);
        self.passwords.remove(place.ok_or(RuleError::NoSuchPassword)?);
        Ok(())
    }

    /// Whether anyone can act as this user without a password.
    pub(super) fn are_open(&self) -> bool {
        self.is_on && self.needs_no_password
    }

    pub(super) fn need_no_password(&self) -> bool {
        self.needs_no_password
    }

    /// Whether a client that gives a password with this hash is let in as this user. It takes as
    /// long for a wrong password as for the right one.
    pub(super) fn admit(&self, given: Hash) -> bool {
        let equal = self.passwords.iter().fold(false, |equal, hash| hash.equals(given) | equal);
        self.is_on && (self.needs_no_password || equal)
    }

    fn allow_all(&self) -> bool {
        self.selectors.iter().any(Selector::allows_all)
    }

    fn ask(&self, ask: impl FnMut(&Selector) -> Result<(), Refusal>) -> Result<(), Refusal> {
        let mut told = Refusal { what: What::Command(""), place: 0 };
        for (place, answer) in self.selectors.iter().map(ask).enumerate() {
            let Err(refusal) = answer else { return Ok(()) };
            if place == 0 || refusal.rank() > told.rank() {
                told = refusal;
            }
        }
        Err(told)
    }

    /// Whether a channel may be listened to.
    pub(crate) fn allow_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.selectors.iter().any(|selector| selector.allows_channel(channel, is_pattern))
    }

    /// Whether the command may be run on every key, with these rights.
    pub(super) fn allow_on_every_key(
        &self,
        command: &'static Command,
        request: Request<'_>,
        rights: Rights,
    ) -> bool {
        self.selectors.iter().any(|s| s.allows_on_every_key(command, request, rights))
    }

    /// The user's flags, as ACL GETUSER shows them.
    pub(crate) fn flags(&self) -> impl Iterator<Item = &'static str> {
        let state = Some(if self.is_on { "on" } else { "off" });
        let open = self.needs_no_password.then_some("nopass");
        let sanitizes = self.sanitizes.map(|sanitizes| match sanitizes {
            true => "sanitize-payload",
            false => "skip-sanitize-payload",
        });
        [state, open, sanitizes].into_iter().flatten()
    }

    /// The hashes of the passwords, in hexadecimal digits.
    pub(crate) fn passwords(&self) -> impl ExactSizeIterator<Item = String> {
        self.passwords.iter().map(|hash| hash.digits())
    }

    /// The commands, keys and channels of each selector, the user's own first.
    pub(crate) fn selectors(&self) -> impl ExactSizeIterator<Item = (String, Vec<u8>, Vec<u8>)> {
        self.selectors.iter().map(|selector| {
            let (keys, channels) = (selector.describe_keys(), selector.describe_channels());
            (selector.describe_commands(), keys, channels)
        })
    }

    /// The user's line in an ACL file, from which the same rules can be read again.
    pub(crate) fn describe(&self, name: &str) -> Vec<u8> {
        let mut words = vec![b"user".to_vec(), name.as_bytes().to_vec()];
        words.extend(self.flags().map(|flag| flag.as_bytes().to_vec()));
        words.extend(self.passwords().map(|digits| format!("#{digits}").into_bytes()));
        for (place, selector) in self.selectors.iter().enumerate() {
            let rules = selector.describe();
            words.push(if place == 0 { rules } else { [b"(", &rules[..], b")"].concat() });
        }
        words.join(&b' ')
    }
}

/// Whether there is white space or a NUL, which neither a name nor a pattern may contain.
pub(crate) fn has_blank(text: &[u8]) -> bool {
    text.iter().any(|&byte| byte == 0 || byte.is_ascii_whitespace() || byte == 0x0b)
}
