//! The one gate that all protocols pass.
//!
//! A session, or an HTTP request, has a [`Principal`]. Each protocol says what a request needs, as
//! a [`Permission`], and asks [`allow`] before any of the request is done. The rules of users name
//! Redis commands, so a request of another protocol is checked against the commands that do the
//! same: [`docs/users.md`](../../../../docs/users.md) has the list.

use std::sync::{Arc, LazyLock};

use tokaido_wire::resp::Request;

use super::{
    patterns::Rights,
    selector::{Refusal, Selector},
    user::User,
};
use crate::redis::{Command, Uses, find_by_name};

/// Who makes a request.
#[derive(Clone, Debug)]
pub(crate) enum Principal {
    /// Not authenticated, although a password is needed.
    Anonymous,
    /// A client that has authenticated as this user, or any client if the user needs no password.
    User(Arc<User>),
}

impl Principal {
    /// Whether the client is not authenticated, or its user has been deleted.
    pub(crate) fn is_anonymous(&self) -> bool {
        match self {
            Self::Anonymous => true,
            Self::User(user) => user.is_deleted(),
        }
    }

    /// Whether no rule restricts the user.
    pub(crate) fn is_unrestricted(&self) -> bool {
        matches!(self, Self::User(user) if user.may_do_all())
    }

    /// The name of the user, if there is one.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::User(user) if !user.is_deleted() => Some(user.name()),
            _ => None,
        }
    }
}

/// What a request needs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Permission<'a> {
    /// Nothing: anyone who reaches the server may make the request.
    None,
    /// To be authenticated, and no more: the request concerns the client's own session, or what
    /// every client may know.
    Session,
    /// To run a Redis command, with its keys and channels.
    Command(&'static Command, Request<'a>),
    /// To read records.
    Read(Keys<'a>),
    /// To read and write records.
    Write(Keys<'a>),
    /// To delete all records of a database.
    Clear,
    /// To call the procedure of that name, which may do with all databases what it was written to
    /// do. Each command that it runs passes the gate separately, as its caller's.
    Call(&'a [u8]),
    /// To look at the server itself.
    Inspect,
    /// To change the server itself.
    Administer,
}

/// The keys that a permission is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys<'a> {
    /// None.
    None,
    /// One.
    One(&'a [u8]),
    /// These.
    These(&'a [&'a [u8]]),
    /// No key is named: the request may involve any record.
    All,
}

/// A request is not allowed. Each protocol has its own message for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The client must authenticate first.
    Unauthenticated,
    /// The user may not do this.
    Forbidden(Box<Forbidden>),
}

/// What a user may not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forbidden {
    pub(crate) user: String,
    pub(crate) what: What,
}

/// The part of a request that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The command, by its name.
    Command(&'static str),
    Key(Vec<u8>),
    Channel(Vec<u8>),
}

impl Forbidden {
    /// Redis' message for clients, which repeats no argument.
    pub(crate) fn message(&self) -> String {
        match &self.what {
            What::Command(_) => self.details(),
            What::Key(_) => "No permissions to access a key".to_owned(),
            What::Channel(_) => "No permissions to access a channel".to_owned(),
        }
    }

    /// Redis' message for operators.
    pub(crate) fn details(&self) -> String {
        let (user, text) = (&self.user, String::from_utf8_lossy);
        match &self.what {
            What::Command(name) => {
                format!("User {user} has no permissions to run the '{name}' command")
            }
            What::Key(key) => {
                format!("User {user} has no permissions to access the '{}' key", text(key))
            }
            What::Channel(name) => {
                format!("User {user} has no permissions to access the '{}' channel", text(name))
            }
        }
    }
}

impl Denied {
    /// The message for clients whose protocol has none of its own.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Unauthenticated => "unauthenticated".to_owned(),
            Self::Forbidden(forbidden) => forbidden.message(),
        }
    }
}

/// The Redis commands that stand for operations of other protocols.
struct Like {
    read: [&'static Command; 1],
    read_all: [&'static Command; 2],
    write: [&'static Command; 3],
    write_all: [&'static Command; 4],
    clear: [&'static Command; 1],
    call: [&'static Command; 1],
    inspect: [&'static Command; 1],
    administer: [&'static Command; 1],
}

static LIKE: LazyLock<Like> = LazyLock::new(|| {
    // A test looks up each of them.
    let command = |name| find_by_name(name).expect("the table has it");
    let [get, set, del, scan] = ["get", "set", "del", "scan"].map(command);
    Like {
        read: [get],
        read_all: [get, scan],
        write: [get, set, del],
        write_all: [get, set, del, scan],
        clear: [command("flushdb")],
        call: [command("procedure")],
        inspect: [command("info")],
        administer: [command("config|set")],
    }
});

/// Decides whether a principal has this permission.
pub(crate) fn allow(principal: &Principal, permission: Permission<'_>) -> Result<(), Denied> {
    if let Permission::None = permission {
        return Ok(());
    }
    match principal {
        Principal::User(user) if user.may_do_all() => Ok(()),
        Principal::User(user) if !user.is_deleted() => {
            let decide = |selector: &Selector| decide(selector, permission);
            let decided = match permission {
                Permission::Session => Ok(()),
                Permission::Command(command, request) => {
                    let mut uses: Option<Uses> = None;
                    user.ask(|selector| selector.check(command, request, &mut uses))
                }
                _ => user.ask(decide),
            };
            decided.map_err(|forbidden| Denied::Forbidden(Box::new(forbidden)))
        }
        // What needs no authentication in Redis' protocol needs none here.
        _ => match permission {
            Permission::Command(command, _) if command.is_open() => Ok(()),
            _ => Err(Denied::Unauthenticated),
        },
    }
}

/// Checks one selector for something that is not a Redis command.
fn decide(selector: &Selector, permission: Permission<'_>) -> Result<(), Refusal> {
    let like = &*LIKE;
    let on_keys = |commands: &[&'static Command], all, keys: Keys<'_>, rights| match keys {
        Keys::None => selector.check_all(commands, None, &[], rights),
        Keys::One(key) => selector.check_all(commands, None, &[key], rights),
        Keys::These(keys) => selector.check_all(commands, None, keys, rights),
        Keys::All => on_every_key(selector, all, rights),
    };
    match permission {
        Permission::None | Permission::Session | Permission::Command(..) => Ok(()),
        Permission::Read(keys) => on_keys(&like.read, &like.read_all, keys, Rights::READ),
        Permission::Write(keys) => on_keys(&like.write, &like.write_all, keys, Rights::BOTH),
        Permission::Clear => on_every_key(selector, &like.clear, Rights::WRITE),
        Permission::Call(name) => selector.check_all(&like.call, Some(name), &[], Rights::NONE),
        Permission::Inspect => selector.check_all(&like.inspect, None, &[], Rights::NONE),
        Permission::Administer => selector.check_all(&like.administer, None, &[], Rights::NONE),
    }
}

fn on_every_key(
    selector: &Selector,
    commands: &[&'static Command],
    rights: Rights,
) -> Result<(), Refusal> {
    selector.check_all(commands, None, &[], rights)?;
    if selector.matches_every_key(rights) {
        return Ok(());
    }
    Err(Refusal { what: super::What::Key(b"*".to_vec()), place: 0 })
}

/// Whether the principal may run the command on any key that it reads, whatever its arguments name.
pub(crate) fn reads_every_key(
    principal: &Principal,
    command: &'static Command,
    request: Request<'_>,
) -> bool {
    match principal {
        Principal::Anonymous => false,
        Principal::User(user) => {
            user.may_do_all() || user.rules().allow_on_every_key(command, request, Rights::READ)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Users, *};

    fn user(rules: &str) -> Principal {
        let users = Users::default();
        let words: Vec<&[u8]> = rules.split(' ').map(str::as_bytes).collect();
        let rules = super::super::merge_selectors(&words).expect("parentheses in pairs");
        let apply =
            |user: &mut super::super::Rules| rules.iter().try_for_each(|rule| user.apply(rule));
        assert!(users.change("u", apply).is_ok());
        let u = users.find("u").expect("it was made");
        Principal::User(u)
    }

    const ALL: [Permission<'static>; 12] = [
        Permission::Session,
        Permission::Read(Keys::None),
        Permission::Read(Keys::One(b"a1")),
        Permission::Read(Keys::These(&[b"a1", b"b1"])),
        Permission::Read(Keys::All),
        Permission::Write(Keys::None),
        Permission::Write(Keys::One(b"a1")),
        Permission::Write(Keys::All),
        Permission::Clear,
        Permission::Call(b"s.one"),
        Permission::Inspect,
        Permission::Administer,
    ];

    /// Which of these permissions a principal has, one letter each.
    fn allowed(principal: &Principal) -> String {
        let is_allowed = |permission| allow(principal, permission).is_ok();
        let letter = |permission| if is_allowed(permission) { 'y' } else { '.' };
        ALL.into_iter().map(letter).collect()
    }

    #[test]
    fn an_anonymous_client_may_do_what_needs_nothing() {
        assert_eq!(allowed(&Principal::Anonymous), "............");
        assert_eq!(allow(&Principal::Anonymous, Permission::None), Ok(()));
        assert_eq!(allowed(&Users::default().newcomer()), "yyyyyyyyyyyy");
    }

    #[test]
    fn what_other_protocols_do_needs_the_commands_that_do_the_like() {
        assert_eq!(allowed(&user("off")), "y...........");
        assert_eq!(allowed(&user("+@all allkeys")), "yyyyyyyyyyyy");
        assert_eq!(allowed(&user("+get ~a*")), "yyy.........");
        assert_eq!(allowed(&user("+get +scan %R~*")), "yyyyy.......");
        assert_eq!(allowed(&user("+get ~*")), "yyyy........");
        assert_eq!(allowed(&user("+@read +set %R~* ~a*")), "yyyyy.......");
        assert_eq!(allowed(&user("+@read +set +del %R~* ~a*")), "yyyyyyy.....");
        assert_eq!(allowed(&user("+@read +@write -flushdb ~*")), "yyyyyyyy....");
        assert_eq!(allowed(&user("+flushdb ~*")), "y.......y...");
        assert_eq!(allowed(&user("+flushdb ~a*")), "y...........");
        assert_eq!(allowed(&user("+procedure|s.one")), "y........y..");
        assert_eq!(allowed(&user("+procedure|s.two")), "y...........");
        assert_eq!(allowed(&user("+procedure|S.one")), "y...........");
        assert_eq!(allowed(&user("+procedure|S.one +PROCEDURE|s.one")), "y........y..");
        assert_eq!(allowed(&user("+@procedure +info")), "y........yy.");
        assert_eq!(allowed(&user("+config|set")), "y..........y");
        // Each selector is checked on its own.
        assert_eq!(allowed(&user("+get (~a*)")), "yy..........");
        assert_eq!(allowed(&user("off (+get ~a*)")), "yyy.........");
    }

    #[test]
    fn who_is_deleted_is_nobody() {
        let users = Users::default();
        let made: Result<_, super::super::RuleError> =
            users.change("u", |user| user.apply(b"+@all").and_then(|()| user.apply(b"nopass")));
        assert!(made.is_ok());
        let all = |user: &mut super::super::Rules| user.apply(b"on");
        assert!(users.change("u", all).is_ok());
        let user = users.authenticate(b"u", b"").expect("it needs no password");
        assert!(!user.is_anonymous() && users.delete("u") && !users.delete("u"));
        assert!(user.is_anonymous() && !users.delete("default"));
        assert_eq!(allow(&user, Permission::Session), Err(Denied::Unauthenticated));
    }
}
