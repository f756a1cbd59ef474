//! What an engine can do, as a plain description: whoever decides where a request runs asks this, and
//! never which engine it is.

/// What the engine behind one database can do. See [`Store::capabilities`](crate::Store::capabilities).
///
/// | a request | runs |
/// |---|---|
/// | reads, and [`reads_block`](Self::reads_block) | on a thread that may wait |
/// | reads | where the caller stands |
/// | writes, and the database [is transactional](Self::is_transactional) | on one of up to [`writers_max`](Self::writers_max) threads that hold a [`Writer`](crate::Writer) |
/// | writes in any other database | where the caller stands, by [`transact_in_place`](crate::transact_in_place) |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The engine's name, as the configuration and listings have it.
    pub name: &'static str,
    /// Whether [`seek`](crate::ReadTransaction::seek) goes through its keys; where they have no
    /// order, [`page`](crate::ReadTransaction::page) does.
    pub is_ordered: bool,
    /// Whether the database takes part in the transactions of the store's
    /// [`Writer`](crate::Writer). If not, each write is atomic alone, is seen at once, and no
    /// rollback takes it back.
    pub is_transactional: bool,
    /// Whether it can be written to at all.
    pub is_writable: bool,
    /// Whether a read may wait for a disk or a network for long, so that it must not hold up the
    /// thread that serves others.
    pub reads_block: bool,
    /// How many [`Writer`](crate::Writer)s the store gives out at a time. One engine runs all
    /// transactions of a store, so this is the same for all of its transactional databases; it is
    /// zero for the others.
    pub writers_max: usize,
}

impl Capabilities {
    /// Of the durable engine, [`tree`](crate::tree).
    pub const TREE: Self = Self {
        name: "tree",
        is_ordered: true,
        is_transactional: true,
        is_writable: true,
        reads_block: false,
        writers_max: 1,
    };

    /// Of a [`cache`](crate::cache). Within a transaction, each `get`, `put` and `delete` on it is
    /// atomic alone.
    pub const CACHE: Self = Self {
        name: "cache",
        is_ordered: false,
        is_transactional: false,
        is_writable: true,
        reads_block: false,
        writers_max: 0,
    };

    /// Of a constant database, [`cdb`](crate::cdb).
    pub const CDB: Self = Self { name: "cdb", is_writable: false, ..Self::CACHE };
}
