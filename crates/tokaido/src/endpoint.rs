//! Where the data is: in a directory that this process opens, or behind a server.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use tokaido_store::{DatabaseId, Store, limits, tree};
use tokaido_tables::TableStore;

use crate::{
    client::{Client, Server},
    error::Error,
};

/// The flags that say where the data is.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EndpointArgs {
    /// Open the store in this directory, without a server
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "connect",
        help_heading = "Where the data is"
    )]
    dir: Option<PathBuf>,
    /// Talk to the server at this address: HOST:PORT, or unix:PATH [default, without --dir:
    /// 127.0.0.1:7653]
    #[arg(long, value_name = "ADDRESS", help_heading = "Where the data is")]
    connect: Option<String>,
    /// Password of the server
    #[arg(
        long,
        value_name = "PASSWORD",
        env = "TOKAIDO_PASSWORD",
        hide_env_values = true,
        help_heading = "Where the data is"
    )]
    password: Option<String>,
}

/// Where the data is.
pub(crate) enum Endpoint {
    Directory(PathBuf),
    Server(Server),
}

impl EndpointArgs {
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Error> {
        if let Some(directory) = &self.dir {
            return Ok(Endpoint::Directory(directory.clone()));
        }
        let address = self.connect.as_deref();
        // Setting a variable to the empty string is a way to unset it.
        let password = self.password.clone().filter(|password| !password.is_empty());
        Ok(Endpoint::Server(Server::new(address, password)?))
    }
}

impl Server {
    /// Connects, and selects `database`.
    pub(crate) fn connect_to(&self, database: &str) -> Result<Client, Error> {
        let mut client = Client::connect(self)?;
        client.call(&["SELECT", database])?;
        Ok(client)
    }
}

/// Whether a command creates the store that it is pointed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Create,
    /// A mistyped directory must not leave an empty store behind.
    Refuse,
}

/// Opens the store in `directory`. Writes to a database that has indexes update the indexes, too.
pub(crate) fn open_store(directory: &Path, missing: Missing) -> Result<Arc<dyn Store>, Error> {
    Ok(Arc::new(open_own_store(directory, missing)?))
}

/// Like [`open_store`], for callers that put it behind another store.
pub(crate) fn open_own_store(directory: &Path, missing: Missing) -> Result<TableStore, Error> {
    if missing == Missing::Refuse && !tree::exists(directory) {
        return Err(Error::NoStore { directory: directory.to_owned() });
    }
    let options =
        tree::Options { databases_max: limits::DATABASES_MAX, ..tree::Options::default() };
    let store = tree::open(directory, options)?;
    Ok(TableStore::new(Box::new(store), [])?)
}

/// The database of this name, which must have been written to before.
pub(crate) fn find_database(store: &dyn Store, name: &str) -> Result<DatabaseId, Error> {
    store.find_database(name).ok_or_else(|| {
        let names: Vec<String> = store.databases().into_iter().map(|(_, name)| name).collect();
        let found = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Error::NoDatabase { name: name.to_owned(), found }
    })
}
