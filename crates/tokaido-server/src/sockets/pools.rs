//! Connections that are kept for the next request, by the names of their pools.

use std::{
    cell::RefCell,
    collections::{HashMap, VecDeque},
    rc::Rc,
    time::Duration,
};

use tokio::task::AbortHandle;

use super::stream::{Connection, Permit};

/// Maximum number of pools of a worker.
const POOLS_MAX: usize = 1000;

/// Those of one worker.
#[derive(Default)]
pub(super) struct Pools {
    pools: HashMap<Box<[u8]>, Pool>,
    /// That of the last connection which was put in.
    last_number: u64,
}

/// A pool is there as long as it has a connection.
struct Pool {
    size: usize,
    /// The one that was used last is at the back.
    idle: VecDeque<Idle>,
}

struct Idle {
    number: u64,
    connection: Rc<Connection>,
    reused: u32,
    /// Takes it out when it has been idle for too long, or its peer closes it.
    watch: AbortHandle,
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

/// Takes a connection out of a pool, if that has one; gives how often this was done with it, too.
pub(super) fn take(pools: &RefCell<Pools>, name: &[u8]) -> Option<(Rc<Connection>, u32)> {
    let mut pools = pools.borrow_mut();
    loop {
        let pool = pools.pools.get_mut(name)?;
        let idle = pool.idle.pop_back();
        if pool.idle.is_empty() {
            pools.pools.remove(name);
        }
        let idle = idle?;
        if idle.connection.is_quiet().is_ok() {
            return Some((Rc::clone(&idle.connection), idle.reused + 1));
        }
    }
}

/// Closes the connection that was not used for the longest in all pools; gives what it counted as.
pub(super) fn evict(pools: &RefCell<Pools>) -> Option<Permit> {
    let pools = &mut pools.borrow_mut().pools;
    let used = |pool: &Pool| pool.idle.front().map(|idle| idle.number);
    let name = pools.iter().min_by_key(|(_, pool)| used(pool))?.0.clone();
    let pool = pools.get_mut(&name)?;
    let idle = pool.idle.pop_front();
    if pool.idle.is_empty() {
        pools.remove(&name);
    }
    idle?.connection.take_permit()
}

/// Puts a connection into a pool, which then has no more than its size: the one that was not used for the longest goes.
pub(super) fn put(
    pools: &Rc<RefCell<Pools>>,
    name: &[u8],
    size: usize,
    connection: Rc<Connection>,
    reused: u32,
    time: Option<Duration>,
) {
    let mut inner = pools.borrow_mut();
    if inner.pools.len() >= POOLS_MAX && !inner.pools.contains_key(name) {
        return;
    }
    inner.last_number += 1;
    let number = inner.last_number;
    let watch = watch(pools, name, number, &connection, time);
    let pool = inner
        .pools
        .entry(name.into())
        .or_insert_with(|| Pool { size: size.max(1), idle: VecDeque::new() });
    if pool.idle.len() >= pool.size {
        pool.idle.pop_front();
    }
    pool.idle.push_back(Idle { number, connection, reused, watch });
}

fn watch(
    pools: &Rc<RefCell<Pools>>,
    name: &[u8],
    number: u64,
    connection: &Rc<Connection>,
    time: Option<Duration>,
) -> AbortHandle {
    let (pools, name, connection) = (Rc::downgrade(pools), name.to_vec(), Rc::clone(connection));
    let watch = async move {
        match time {
            Some(time) => drop(tokio::time::timeout(time, connection.readable()).await),
            None => connection.readable().await,
        }
        let Some(pools) = pools.upgrade() else { return };
        let mut pools = pools.borrow_mut();
        let Some(pool) = pools.pools.get_mut(&*name) else { return };
        pool.idle.retain(|idle| idle.number != number);
        if pool.idle.is_empty() {
            pools.pools.remove(&*name);
        }
    };
    tokio::task::spawn_local(watch).abort_handle()
}
