//! Libraries as stored.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokaido_script::{FunctionFlags, RegisteredFunction, sha1_hex};
use tokaido_store::{DatabaseId, NewRecord, ReadTransaction, Store, WriteTransaction};

use crate::{
    Limits,
    call_statistics::CallStatistics,
    program::Program,
    redis::{eval::Slots, failure::Failure},
};

/// The key of the record that holds all libraries. docs/file-format.md describes its value.
const KEY: &[u8] = b"functions";

/// The version of the record's format, which is its first byte.
const FORM: u8 = 1;

/// The length of a digest in hexadecimal digits.
const DIGEST_LEN: usize = 40;

/// A library.
#[derive(Debug)]
pub(in crate::redis) struct Library {
    /// The digest of its code, by which virtual machines identify it.
    pub(super) id: String,
    pub(super) code: Vec<u8>,
    pub(super) functions: Vec<Function>,
}

/// A function and its statistics.
#[derive(Debug)]
pub(in crate::redis) struct Function {
    pub(super) registered: RegisteredFunction,
    pub(super) statistics: CallStatistics,
}

impl Library {
    pub(super) fn new(code: &[u8], functions: Vec<RegisteredFunction>) -> Self {
        let of = |registered| Function { registered, statistics: CallStatistics::default() };
        let functions = functions.into_iter().map(of).collect();
        Self { id: sha1_hex(code), code: code.to_vec(), functions }
    }
}

/// All libraries, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Libraries {
    /// The digest of the stored libraries. Empty if there are none, or after a change of these.
    digest: Vec<u8>,
    by_name: BTreeMap<String, Arc<Library>>,
    /// The library and the index of each function.
    functions: HashMap<String, (Arc<Library>, usize)>,
}

impl Libraries {
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Arc<Library>)> {
        self.by_name.iter().map(|(name, library)| (name.as_str(), library))
    }

    pub(super) fn has(&self, library: &str) -> bool {
        self.by_name.contains_key(library)
    }

    pub(super) fn has_id(&self, id: &str) -> bool {
        self.by_name.values().any(|library| library.id == id)
    }

    /// The names of all functions.
    pub(super) fn function_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// The functions hidden from FCALL by a procedure of the same name.
    pub(crate) fn hidden_by<'l>(&'l self, program: &'l Program) -> impl Iterator<Item = &'l str> {
        self.function_names().filter(|name| program.find(name.as_bytes()).is_some())
    }

    /// The library that contains the function, and the function's index there.
    pub(super) fn find(&self, function: &[u8]) -> Option<(Arc<Library>, usize)> {
        self.functions.get(str::from_utf8(function).ok()?).cloned()
    }

    /// Adds a library, or replaces the one of that name. No two may share a function name.
    pub(super) fn add(&mut self, name: &str, library: Library) -> Result<(), Failure> {
        let others = |name: &str, function: &str| {
            let (owner, _) = self.functions.get(function)?;
            let is_old = self.by_name.get(name).is_some_and(|old| Arc::ptr_eq(old, owner));
            (!is_old).then_some(())
        };
        for Function { registered, .. } in &library.functions {
            if others(name, &registered.name).is_some() {
                return Err(Failure::other(format!("Function {} already exists", registered.name)));
            }
        }
        self.remove(name);
        self.insert(name.to_owned(), Arc::new(library));
        Ok(())
    }

    /// Removes a library. Returns whether it existed.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let Some(library) = self.by_name.remove(name) else { return false };
        self.functions.retain(|_, (owner, _)| !Arc::ptr_eq(owner, &library));
        self.digest.clear();
        true
    }

    fn insert(&mut self, name: String, library: Arc<Library>) {
        for (place, function) in library.functions.iter().enumerate() {
            self.functions.insert(function.registered.name.clone(), (library.clone(), place));
        }
        self.by_name.insert(name, library);
        self.digest.clear();
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let text = |body: &mut Vec<u8>, text: &[u8]| {
            body.extend_from_slice(&(text.len() as u32).to_le_bytes());
            body.extend_from_slice(text);
        };
        for (name, library) in &self.by_name {
            text(&mut body, name.as_bytes());
            text(&mut body, &library.code);
            body.extend_from_slice(&(library.functions.len() as u32).to_le_bytes());
            for Function { registered, .. } in &library.functions {
                text(&mut body, registered.name.as_bytes());
                body.push(registered.flags.bits());
                body.push(u8::from(registered.description.is_some()));
                text(&mut body, registered.description.as_deref().unwrap_or_default());
            }
        }
        let digest = sha1_hex(&body);
        [&[FORM], digest.as_bytes(), &body].concat()
    }

    fn decode(digest: &[u8], body: &[u8]) -> Option<Self> {
        let mut libraries = Self::default();
        let mut reader = Reader(body);
        while !reader.0.is_empty() {
            let name = String::from_utf8(reader.text()?.to_vec()).ok()?;
            let code = reader.text()?;
            let mut functions = Vec::new();
            for _ in 0..reader.number()? {
                let name = String::from_utf8(reader.text()?.to_vec()).ok()?;
                let flags = FunctionFlags::from_bits(reader.byte()?);
                let has_description = reader.byte()? != 0;
                let description = reader.text()?.to_vec();
                let description = has_description.then_some(description);
                functions.push(RegisteredFunction { name, description, flags });
            }
            libraries.insert(name, Arc::new(Library::new(code, functions)));
        }
        libraries.digest = digest.to_vec();
        Some(libraries)
    }
}

/// Reads a record from the start.
struct Reader<'r>(&'r [u8]);

impl<'r> Reader<'r> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn text(&mut self) -> Option<&'r [u8]> {
        let len = self.number()? as usize;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(text)
    }
}

/// The functions of one server.
pub(crate) struct Functions {
    /// The database that holds the record.
    database: DatabaseId,
    /// What some transaction saw last, shared with other threads.
    last: Mutex<Arc<Libraries>>,
    /// The threads that run functions.
    pub(super) slots: Slots,
}

impl Functions {
    pub(crate) fn new(store: &dyn Store) -> Self {
        let database = store.internal_database().unwrap_or(DatabaseId::NOWHERE);
        Self { database, last: Mutex::default(), slots: Slots::default() }
    }

    fn last(&self) -> MutexGuard<'_, Arc<Libraries>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The libraries as the transaction sees them. `known` are those that the caller saw last.
    pub(crate) fn read(
        &self,
        tx: &mut dyn ReadTransaction,
        known: &Arc<Libraries>,
    ) -> Result<Arc<Libraries>, Failure> {
        let Some(record) = tx.get(self.database, KEY)? else {
            return Ok(if known.digest.is_empty() && known.by_name.is_empty() {
                known.clone()
            } else {
                Arc::default()
            });
        };
        let damaged =
            || Failure::Store("the record of functions is damaged; restore a backup".to_owned());
        let (form, rest) = record.value.split_first().ok_or_else(damaged)?;
        let (digest, body) = rest.split_at_checked(DIGEST_LEN).ok_or_else(damaged)?;
        if *form != FORM {
            return Err(damaged());
        }
        if known.digest == digest {
            return Ok(known.clone());
        }
        let mut last = self.last();
        if last.digest != digest {
            *last = Arc::new(Libraries::decode(digest, body).ok_or_else(damaged)?);
        }
        Ok(last.clone())
    }

    /// Writes the libraries to the store.
    pub(super) fn write(
        &self,
        tx: &mut dyn WriteTransaction,
        libraries: &Libraries,
        limits: &Limits,
    ) -> Result<(), Failure> {
        if libraries.by_name.is_empty() {
            tx.delete(self.database, KEY)?;
            return Ok(());
        }
        let record = libraries.encode();
        let max = limits.redis_functions_bytes_max;
        if record.len() > max {
            return Err(Failure::other(format!(
                "all libraries together have at most {max} bytes (redis_functions_bytes_max)"
            )));
        }
        tx.put(self.database, KEY, NewRecord::of(&record))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokaido_script::{Mode, Procedure};

    use super::*;

    fn function(name: &str, description: Option<&[u8]>, bits: u8) -> RegisteredFunction {
        let (description, flags) =
            (description.map(<[u8]>::to_vec), FunctionFlags::from_bits(bits));
        RegisteredFunction { name: name.to_owned(), description, flags }
    }

    fn two() -> Libraries {
        let mut libraries = Libraries::default();
        let functions = vec![function("f", None, 1), function("g", Some(b"says \xff"), 0)];
        libraries.add("one", Library::new(b"#!lua name=one\n", functions)).unwrap();
        libraries.add("two", Library::new(b"", vec![function("h", Some(b""), 31)])).unwrap();
        libraries
    }

    fn decoded(record: &[u8]) -> Option<Libraries> {
        let (digest, body) = record.split_first()?.1.split_at_checked(DIGEST_LEN)?;
        Libraries::decode(digest, body)
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let libraries = two();
        let record = libraries.encode();
        let again = decoded(&record).unwrap();
        assert_eq!(again.encode(), record);
        let (library, place) = again.find(b"g").unwrap();
        assert_eq!(library.code, b"#!lua name=one\n");
        assert_eq!(library.functions[place].registered, function("g", Some(b"says \xff"), 0));
        assert_eq!(again.find(b"missing").map(|(_, place)| place), None);
    }

    #[test]
    fn a_record_that_is_cut_short_is_damaged() {
        let record = two().encode();
        let cuts = (0..record.len()).filter(|&len| decoded(&record[..len]).is_some());
        let whole_libraries = cuts.collect::<Vec<_>>();
        // Nothing at all, and only the first library.
        assert_eq!(whole_libraries.len(), 2, "{whole_libraries:?}");
    }

    #[test]
    fn a_procedure_of_the_same_name_is_noticed() {
        let procedure = |name: &str| Procedure {
            name: name.to_owned(),
            mode: Mode::Read,
            route: None,
            hook: None,
            path: "p.lua".into(),
            line: 1,
            is_of_worker: false,
        };
        let program = Program::of(vec![procedure("g"), procedure("p.h")]);
        assert_eq!(two().hidden_by(&program).collect::<Vec<_>>(), ["g"]);
    }

    #[test]
    fn functions_belong_to_one_library() {
        let mut libraries = two();
        let clash = Library::new(b"", vec![function("x", None, 0), function("f", None, 0)]);
        let failure = libraries.add("two", clash).unwrap_err();
        assert_eq!(failure.to_string(), "ERR Function f already exists");
        assert!(libraries.find(b"h").is_some(), "nothing has changed");
        libraries.add("one", Library::new(b"", vec![function("f", None, 0)])).unwrap();
        assert!(libraries.find(b"g").is_none());
        assert!(libraries.remove("one") && !libraries.remove("one"));
        assert!(libraries.find(b"f").is_none());
        assert_eq!(libraries.function_names().collect::<Vec<_>>(), ["h"]);
    }
}
