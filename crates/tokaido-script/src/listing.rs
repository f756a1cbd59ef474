//! Lists the procedures that the files of one language declare, each name and each route once.

use std::collections::HashMap;

use crate::{LoadError, Procedure, Route};

/// The procedures found so far.
#[derive(Debug, Default)]
pub struct Listing {
    procedures: Vec<Procedure>,
    /// Their indices by name.
    names: HashMap<String, usize>,
    /// Their indices by method and pattern, without the names of parameters.
    routes: HashMap<(String, String), usize>,
}

impl Listing {
    /// Adds a procedure.
    ///
    /// # Errors
    /// If another one has its name or its route already.
    pub fn add(&mut self, procedure: Procedure) -> Result<(), LoadError> {
        if let Some(message) = self.clash(&procedure) {
            return Err(LoadError::of_procedure(&procedure, message));
        }
        let place = self.procedures.len();
        self.names.insert(procedure.name.clone(), place);
        if let Some(route) = &procedure.route {
            self.routes.insert(key(route), place);
        }
        self.procedures.push(procedure);
        Ok(())
    }

    /// All of them, in the order in which they were added.
    #[must_use]
    pub fn into_procedures(self) -> Vec<Procedure> {
        self.procedures
    }

    /// What this procedure declares that another one already has.
    fn clash(&self, procedure: &Procedure) -> Option<String> {
        let by_name = self.names.get(&procedure.name).map(|&first| (procedure.name.clone(), first));
        let by_route = || {
            let route = procedure.route.as_ref()?;
            let &first = self.routes.get(&key(route))?;
            Some((format!("{} {}", route.method, route.pattern), first))
        };
        let (what, first) = by_name.or_else(by_route)?;
        Some(procedure.declared_twice(&what, &self.procedures[first]))
    }
}

fn key(route: &Route) -> (String, String) {
    (route.method.clone(), shape(&route.pattern))
}

fn shape(pattern: &str) -> String {
    let segment = |segment: &str| match segment.as_bytes().first() {
        Some(b':') => ":".to_owned(),
        Some(b'*') => "*".to_owned(),
        _ => segment.to_owned(),
    };
    pattern.split('/').map(segment).collect::<Vec<_>>().join("/")
}
