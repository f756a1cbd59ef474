//! What an engine can do, as a plain description. Code that decides where a request runs consults
//! this, and never checks which engine it is.

/// What the engine behind one database can do. See [`Store::capabilities`](crate::Store::capabilities).
///
/// | a request that | runs |
/// |---|---|
/// | reads, and [`reads_block`](Self::reads_block) | on a thread that may wait |
/// | reads | on the caller's thread |
/// | writes, and the database [is transactional](Self::is_transactional) | on one of up to [`writers_max`](Self::writers_max) threads that hold a [`Writer`](crate::Writer) |
/// | writes in any other database | on the caller's thread, by [`transact_in_place`](crate::transact_in_place) |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The engine's name, as used in the configuration and in listings.
    pub name: &'static str,
    /// Whether [`seek`](crate::ReadTransaction::seek) iterates over its keys. If they have no
    /// order, [`page`](crate::ReadTransaction::page) does.
    pub is_ordered: bool,
    /// Whether the database takes part in the transactions of the store's
    /// [`Writer`](crate::Writer). If not, each write is atomic by itself, visible at once, and not
    /// undone by a rollback.
    pub is_transactional: bool,
    /// Whether it is writable at all.
    pub is_writable: bool,
    /// Whether a read may wait long for a disk or a network, so that it must not run on a thread
    /// that serves others.
    pub reads_block: bool,
    /// How many [`Writer`](crate::Writer)s the store hands out at a time. One engine runs all
    /// transactions of a store, so this is the same for all of its transactional databases; it is
    /// zero for others.
    pub writers_max: usize,
}

impl Capabilities {
    /// The durable engine, [`tree`](crate::tree).
    pub const TREE: Self = Self {
        name: "tree",
        is_ordered: true,
        is_transactional: true,
        is_writable: true,
        reads_block: false,
        writers_max: 1,
    };

    /// A [`cache`](crate::cache). Within a transaction, each `get`, `put` and `delete` on it is
    /// atomic by itself.
    pub const CACHE: Self = Self {
        name: "cache",
        is_ordered: false,
        is_transactional: false,
        is_writable: true,
        reads_block: false,
        writers_max: 0,
    };

    /// A constant database, [`cdb`](crate::cdb).
    pub const CDB: Self = Self { name: "cdb", is_writable: false, ..Self::CACHE };
}
