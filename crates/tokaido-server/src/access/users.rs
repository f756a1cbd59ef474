//! All users, and how clients authenticate as one of them.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use super::{
    error::AclFileError,
    file,
    gate::{Forbidden, Principal},
    log::{Entry, Log, Reason, Where},
    password::Hash,
    user::{Rules, User},
};

/// The user of clients that have not authenticated.
pub(crate) const DEFAULT: &str = "default";

/// All users of a server.
pub struct Users {
    default: Arc<User>,
    by_name: RwLock<BTreeMap<String, Arc<User>>>,
    /// Held while users are changed, so that no change is lost.
    changing: Mutex<()>,
    file: Option<PathBuf>,
    log: Log,
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Default for Users {
    fn default() -> Self {
        Self::with_password(None)
    }
}

/// The ACL file was not read or written.
pub(crate) enum Unloaded {
    NoFile,
    File(AclFileError),
}

impl Users {
    /// The principal of what the server does by itself, on behalf of the operator.
    pub(crate) fn server() -> Principal {
        Principal::User(Arc::new(User::new("tokaido", Rules::of_all(None))))
    }

    /// Only the default user, who may do everything with this password, or without one.
    #[must_use]
    pub fn with_password(password: Option<&str>) -> Self {
        let default = Arc::new(User::new(DEFAULT, Rules::of_all(password)));
        Self {
            by_name: RwLock::new(BTreeMap::from([(DEFAULT.to_owned(), Arc::clone(&default))])),
            default,
            changing: Mutex::default(),
            file: None,
            log: Log::default(),
        }
    }

    /// The users of a file. If it has no line for the default user, that one gets this password.
    ///
    /// # Errors
    /// If the file cannot be read, or is invalid.
    pub fn open(password: Option<&str>, file: Option<&Path>) -> Result<Self, AclFileError> {
        let mut users = Self::with_password(password);
        if let Some(path) = file {
            let mut read = file::read(path)?;
            if let Some(rules) = read.remove(DEFAULT) {
                users.default.set_rules(rules);
            }
            let known = users.by_name.get_mut().unwrap_or_else(PoisonError::into_inner);
            let read = read.into_iter();
            known.extend(read.map(|(name, rules)| {
                let user = Arc::new(User::new(&name, rules));
                (name, user)
            }));
            users.file = Some(path.to_owned());
        }
        Ok(users)
    }

    /// The ACL file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether clients must authenticate.
    pub(crate) fn need_authentication(&self) -> bool {
        !self.default.rules().are_open()
    }

    /// Whether there is any user to authenticate as.
    pub(crate) fn know_passwords(&self) -> bool {
        self.need_authentication() || self.read().len() > 1
    }

    /// Whether the default user has no password, so that giving only a password is a mistake.
    pub(crate) fn default_needs_no_password(&self) -> bool {
        self.default.rules().need_no_password()
    }

    /// The principal of a client that has not sent anything yet.
    pub(crate) fn newcomer(&self) -> Principal {
        match self.need_authentication() {
            true => Principal::Anonymous,
            false => Principal::User(Arc::clone(&self.default)),
        }
    }

    /// The principal for this name and password; `None` if they are wrong.
    pub(crate) fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Principal> {
        // Hashed first, so that a name that does not exist takes as long.
        let given = Hash::of(password);
        let user = std::str::from_utf8(name).ok().and_then(|name| self.find(name))?;
        user.rules().admit(given).then_some(Principal::User(user))
    }

    /// As [`authenticate`](Self::authenticate), for protocols that carried any name before there
    /// were users: as long as there is only the default user, any name stands for it.
    pub(crate) fn authenticate_any(&self, name: &[u8], password: &[u8]) -> Option<Principal> {
        let is_alone = self.read().len() == 1;
        self.authenticate(if is_alone { DEFAULT.as_bytes() } else { name }, password)
    }

    /// The user of that name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<User>> {
        self.read().get(name).cloned()
    }

    /// All users, ordered by name.
    pub(crate) fn list(&self) -> Vec<Arc<User>> {
        self.read().values().cloned().collect()
    }

    /// Changes a user, or creates one. Returns the old rules and the new ones.
    pub(crate) fn change<E>(
        &self,
        name: &str,
        change: impl FnOnce(&mut Rules) -> Result<(), E>,
    ) -> Result<(Arc<Rules>, Arc<Rules>), E> {
        let _changing = self.lock();
        let user = self.find(name);
        let old = user.as_ref().map_or_else(Arc::default, |user| user.rules());
        let mut rules = (*old).clone();
        change(&mut rules)?;
        let user = user.unwrap_or_else(|| {
            let user = Arc::new(User::new(name, Rules::default()));
            self.write().insert(name.to_owned(), Arc::clone(&user));
            user
        });
        user.set_rules(rules);
        Ok((old, user.rules()))
    }

    /// Deletes a user. Returns whether it existed.
    pub(crate) fn delete(&self, name: &str) -> bool {
        let _changing = self.lock();
        let user = if name == DEFAULT { None } else { self.write().remove(name) };
        user.inspect(|user| user.delete()).is_some()
    }

    /// Writes the ACL file.
    pub(crate) fn save(&self) -> Result<(), Unloaded> {
        let path = self.file().ok_or(Unloaded::NoFile)?;
        let _changing = self.lock();
        let lines: Vec<_> =
            self.list().iter().map(|user| user.rules().describe(user.name())).collect();
        file::write(path, &lines).map_err(Unloaded::File)
    }

    /// Reads the ACL file again, and replaces all users by those in it. The default user stays as
    /// it is if the file does not name it. Returns the names of the users that have changed.
    pub(crate) fn load(&self) -> Result<Vec<String>, Unloaded> {
        let path = self.file().ok_or(Unloaded::NoFile)?;
        let _changing = self.lock();
        let mut read = file::read(path).map_err(Unloaded::File)?;
        read.entry(DEFAULT.to_owned()).or_insert_with(|| (*self.default.rules()).clone());
        let mut changed = Vec::new();
        for user in self.list() {
            let name = user.name();
            match read.remove(name) {
                Some(rules) if rules == *user.rules() => {}
                Some(rules) => {
                    user.set_rules(rules);
                    changed.push(name.to_owned());
                }
                None => {
                    self.write().remove(name);
                    user.delete();
                    changed.push(name.to_owned());
                }
            }
        }
        for (name, rules) in read {
            let user = Arc::new(User::new(&name, rules));
            self.write().insert(name, user);
        }
        Ok(changed)
    }

    /// Notes a denied request for ACL LOG.
    pub(crate) fn note_denied(&self, forbidden: &Forbidden, place: Where, client: String) {
        self.log.note_denied(&forbidden.what, &forbidden.user, place, client);
    }

    /// Notes a failed authentication for ACL LOG, with the command in the client's words.
    pub(crate) fn note_wrong_password(&self, user: &[u8], command: &[u8], client: String) {
        let user = String::from_utf8_lossy(user);
        self.log.note(Reason::Authentication, Where::TopLevel, command, &user, client);
    }

    /// The last entries of ACL LOG.
    pub(crate) fn log(&self, count: usize) -> Vec<Entry> {
        self.log.last(count)
    }

    /// Empties ACL LOG.
    pub(crate) fn reset_log(&self) {
        self.log.reset();
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<String, Arc<User>>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Arc<User>>> {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
