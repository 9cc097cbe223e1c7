//! Registry of open connections: admits new ones, and chooses which connection makes room for another.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::Limits;

/// The open connections of a listener.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Counter for ids of connections and for the order in which they began to wait.
    last: u64,
    open: HashMap<u64, Open>,
    by_address: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Open {
    address: IpAddr,
    /// Value of the counter when it began to wait for a request's header; `None` while a request is being answered.
    waiting_since: Option<u64>,
    shared: Arc<Shared>,
}

/// State that a connection's task shares with the registry.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Signals the task to close the connection.
    pub(crate) closing: Notify,
    /// True while the client hasn't taken all of the last response.
    pub(crate) is_writing: AtomicBool,
}

impl Connections {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default() })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Admits a connection, if necessary in place of the one that has waited longest. Returns `None` when all are busy.
    pub(crate) fn admit(self: &Arc<Self>, peer: SocketAddr) -> Option<Connection> {
        let address = network_of(peer.ip());
        let mut state = self.lock();
        let of_address = state.by_address.get(&address).copied().unwrap_or(0);
        if of_address >= self.limits.for_address(address) {
            state.displace(Some(address))?;
        } else if state.open.len() >= self.limits.connections_max {
            state.displace(None)?;
        }
        state.last += 1;
        let id = state.last;
        let shared = Arc::new(Shared::default());
        state.open.insert(id, Open { address, waiting_since: Some(id), shared: Arc::clone(&shared) });
        *state.by_address.entry(address).or_default() += 1;
        Some(Connection { id, shared, connections: Arc::clone(self) })
    }

    /// Closes the connection that has waited longest, if any waits.
    pub(crate) fn displace_one(&self) {
        self.lock().displace(None);
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().open.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn displace(&mut self, address: Option<IpAddr>) -> Option<()> {
        let waiting = self.open.iter().filter_map(|(id, open)| {
            let is_meant = address.is_none_or(|address| address == open.address);
            let is_idle = is_meant && !open.shared.is_writing.load(Ordering::Relaxed);
            open.waiting_since.filter(|_| is_idle).map(|since| (since, *id))
        });
        let (_, id) = waiting.min()?;
        self.remove(id);
        Some(())
    }

    fn remove(&mut self, id: u64) {
        let Some(open) = self.open.remove(&id) else { return };
        open.shared.closing.notify_one();
        if let Some(count) = self.by_address.get_mut(&open.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&open.address);
            }
        }
    }
}

/// An admitted connection. It counts until it is displaced or this value is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    id: u64,
    pub(crate) shared: Arc<Shared>,
    connections: Arc<Connections>,
}

impl Connection {
    /// Marks the connection as busy until the guard is dropped.
    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        if let Some(open) = self.connections.lock().open.get_mut(&self.id) {
            open.waiting_since = None;
        }
        Busy(Arc::clone(self))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.lock().remove(self.id);
    }
}

/// Guard for a request that is being answered.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.connections.lock();
        state.last += 1;
        let now = state.last;
        if let Some(open) = state.open.get_mut(&self.0.id) {
            open.waiting_since = Some(now);
        }
    }
}

/// Returns the key under which an address counts in limits: an IPv4 address, or an IPv6 /64 network, which
/// providers assign as a whole to one customer.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().unwrap(), 1)
    }

    fn limits(total: usize, per_address: usize) -> Limits {
        Limits { connections_per_address_max: per_address, ..Limits::with_connections(total) }
    }

    #[tokio::test]
    async fn the_longest_waiting_connection_makes_room_and_busy_ones_stay() {
        let connections = Connections::new(limits(3, 3));
        let open = |address| Arc::new(connections.admit(peer(address)).unwrap());
        let (first, second, third) = (open("10.0.0.1"), open("10.0.0.2"), open("10.0.0.3"));
        let busy = first.busy();
        let fourth = open("10.0.0.4");
        second.shared.closing.notified().await;
        // A connection that has answered a request counts as waiting from then on.
        drop(busy);
        let fifth = open("10.0.0.5");
        third.shared.closing.notified().await;
        let all = [first.busy(), fourth.busy(), fifth.busy()];
        assert!(connections.admit(peer("10.0.0.6")).is_none());
        drop(all);
        fifth.shared.is_writing.store(true, Ordering::Relaxed);
        let others = [first.busy(), fourth.busy()];
        assert!(connections.admit(peer("10.0.0.6")).is_none(), "a response that is being read is not cut");
        drop((others, second, third, first, fourth, fifth));
        assert_eq!(connections.count(), 0);
    }

    #[test]
    fn one_address_has_its_own_limit() {
        let connections = Connections::new(limits(100, 2));
        let keep: Vec<_> =
            ["10.0.0.1", "10.0.0.1", "::ffff:10.0.0.2", "10.0.0.2", "2001:db8::1", "2001:db8::2"]
                .map(|address| Arc::new(connections.admit(peer(address)).unwrap()))
                .into();
        let busy: Vec<_> = keep.iter().map(Connection::busy).collect();
        for full in ["10.0.0.1", "10.0.0.2", "2001:db8::3:4"] {
            assert!(connections.admit(peer(full)).is_none(), "{full}");
        }
        assert!(connections.admit(peer("10.0.0.3")).is_some());
        assert!(connections.admit(peer("2001:db8:0:1::1")).is_some());
        drop((busy, keep));
        assert!(connections.admit(peer("10.0.0.1")).is_some());
    }
}
