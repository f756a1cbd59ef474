//! The addresses of names, as the system looks them up: in threads, since that may take long.

use std::{
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs as _},
    sync::Arc,
};

use tokio::{sync::Semaphore, task::spawn_blocking};

use super::stream::message_of;

/// The look-ups of a worker. Each counts until the system has answered, even if nobody waits for it any more.
#[derive(Clone)]
pub(super) struct Names {
    free: Arc<Semaphore>,
    max: usize,
}

impl Names {
    pub(super) fn new(max: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(max)), max }
    }

    /// The addresses of a host; at least one.
    ///
    /// # Errors
    /// If the system finds none, or too many names are being looked up already.
    pub(super) async fn look_up(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let unresolved = |why: &str| format!("{host} could not be resolved ({why})");
        let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() else {
            let max = self.max;
            return Err(unresolved(&format!(
                "a worker looks up at most {max} names at a time, limits.worker_lookups_max"
            )));
        };
        let name = host.to_owned();
        let look_up = move || {
            let _counted = permit;
            (name, port).to_socket_addrs().map(Vec::from_iter)
        };
        let found =
            spawn_blocking(look_up).await.unwrap_or_else(|error| Err(io::Error::other(error)));
        match found {
            Ok(addresses) if addresses.is_empty() => Err(unresolved("Host not found")),
            Ok(addresses) => Ok(addresses),
            Err(error) => Err(unresolved(&message_of(&error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn so_many_names_are_looked_up_at_a_time() {
        let names = Names::new(1);
        let taken = Arc::clone(&names.free).try_acquire_owned().unwrap();
        let why = names.look_up("localhost", 80).await.unwrap_err();
        assert!(why.contains("at most 1 names at a time, limits.worker_lookups_max"), "{why}");
        let address = names.look_up("127.0.0.1", 80).await;
        assert_eq!(address, Ok(vec![SocketAddr::from(([127, 0, 0, 1], 80))]));
        drop(taken);
        for _ in 0..2 {
            let found = names.look_up("localhost", 80).await.unwrap();
            assert!(found.iter().all(|address| address.ip().is_loopback()), "{found:?}");
        }
    }
}
