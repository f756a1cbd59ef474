//! Connections that are kept for the next request, by the name of their pool.

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

/// The pools of one worker.
#[derive(Default)]
pub(super) struct Pools {
    pools: HashMap<Box<[u8]>, Pool>,
    /// The number of the connection that was put in last.
    last_number: u64,
}

/// A pool exists as long as it has a connection.
struct Pool {
    size: usize,
    /// The most recently used one is at the back.
    idle: VecDeque<Idle>,
}

struct Idle {
    number: u64,
    connection: Rc<Connection>,
    reused: u32,
    /// Removes it when it has been idle for too long, or its peer closes it.
    watch: AbortHandle,
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

/// Takes a connection out of a pool, if that has one. Also returns how often it has been taken out.
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

/// Closes the least recently used connection of all pools. Returns its permit.
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

/// Puts a connection into a pool. If the pool is full, its least recently used connection is closed.
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
