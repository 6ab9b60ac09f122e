//! Limits the connections of operators, so that no local user can lock out operators, probes and
//! decisions.
//!
//! Every user of the machine can connect on loopback, and could open all [`MOST`] connections.
//! Therefore, when [`MOST`] connections are open, a new one evicts the oldest *unknown* one, or
//! else the oldest one on which no request is being answered. A connection is known if it came by
//! the unix socket, or once a request on it had a valid token.
//!
//! Watching connections (`/v1/events`, `/v1/tap`) stay for hours. They answer a request all that
//! time, so they are never evicted. Therefore only a part of the connections may watch, and one
//! operator may have only a part of these.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use tokio::sync::Notify;

/// The maximum number of open connections on the admin listener: enough for operators and scrapers.
/// A browser opens up to six.
pub(crate) const MOST: usize = 256;
/// The maximum number of connections that may watch at once.
const WATCHERS: usize = 64;
/// The maximum number of watching connections of one operator: consoles in several tabs and on
/// shared screens, `bywash top` and `bywash tap`.
const WATCHERS_OF_ONE: usize = 16;

/// All connections on the admin listener, the oldest first.
#[derive(Default)]
pub(super) struct AdminConnections(RefCell<VecDeque<Weak<AdminConnection>>>);

/// The operator of a watching connection, by name; `None` on the unix socket, where operators have
/// no names.
#[derive(Clone, Debug)]
struct Watcher(Option<String>);

/// The state of one connection on the admin listener.
#[derive(Debug, Default)]
pub(super) struct AdminConnection {
    /// Whether the connection has authenticated, or came by the unix socket.
    pub(super) is_known: Cell<bool>,
    /// Whether a request on the connection is being answered.
    pub(super) is_busy: Cell<bool>,
    /// The operator of the connection if it watches; `None` if it does not.
    watches: RefCell<Option<Watcher>>,
    /// Signals that the connection is evicted.
    evicted: Notify,
}

/// The reason why a connection may not watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooMany {
    /// The operators together have [`WATCHERS`] watching connections already.
    #[error(
        "{WATCHERS} connections already follow /v1/events or /v1/tap, and the gateway allows no \
         more: close some"
    )]
    All,
    /// The operator already has [`WATCHERS_OF_ONE`] watching connections.
    #[error(
        "you already have {WATCHERS_OF_ONE} connections that follow events (consoles, `bywash \
         top`, `bywash tap`), and the gateway allows no more for one name: close some"
    )]
    Own,
}

impl AdminConnections {
    /// Admits a connection. If there are [`MOST`] already, it evicts the oldest unknown connection,
    /// or else the oldest one that is not busy. Returns `None` if no connection can be evicted.
    pub(super) fn admit(&self) -> Option<Rc<AdminConnection>> {
        let mut connections = self.0.borrow_mut();
        connections.retain(|connection| connection.strong_count() > 0);
        if connections.len() >= MOST {
            let oldest = |makes_room: fn(&AdminConnection) -> bool| {
                connections.iter().position(|connection| {
                    connection.upgrade().is_some_and(|connection| makes_room(&connection))
                })
            };
            let stranger = oldest(|connection| !connection.is_known.get());
            let makes_room = stranger.or_else(|| oldest(|connection| !connection.is_busy.get()))?;
            if let Some(connection) =
                connections.remove(makes_room).and_then(|connection| connection.upgrade())
            {
                connection.evicted.notify_one();
            }
        }
        let connection = Rc::default();
        connections.push_back(Rc::downgrade(&connection));
        Some(connection)
    }

    /// Marks the connection as watching until it ends. `name` is the operator's; `None` on the unix
    /// socket, where only the total is limited. Returns an error if a limit is reached.
    pub(super) fn watch(
        &self,
        connection: &AdminConnection,
        name: Option<&str>,
    ) -> Result<(), TooMany> {
        let connections = self.0.borrow();
        let watching: Vec<Watcher> = connections
            .iter()
            .filter_map(Weak::upgrade)
            .filter_map(|connection| connection.watches.borrow().clone())
            .collect();
        if watching.len() >= WATCHERS {
            return Err(TooMany::All);
        }
        let is_own = |Watcher(other): &&Watcher| name.is_some() && other.as_deref() == name;
        if watching.iter().filter(is_own).count() >= WATCHERS_OF_ONE {
            return Err(TooMany::Own);
        }
        connection.watches.replace(Some(Watcher(name.map(str::to_owned))));
        Ok(())
    }
}

impl AdminConnection {
    /// Waits until the connection is evicted.
    pub(super) async fn wait_for_eviction(&self) {
        self.evicted.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_evicted(connection: &AdminConnection) -> bool {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(connection.wait_for_eviction()).poll(&mut cx).is_ready()
    }

    #[test]
    fn the_oldest_stranger_makes_room_then_who_is_idle_and_nobody_who_is_busy() {
        let connections = AdminConnections::default();
        let mut here: Vec<Rc<AdminConnection>> =
            (0..MOST).map(|_| connections.admit().unwrap()).collect();
        here[0].is_known.set(true);
        here.push(connections.admit().expect("there is room"));
        assert!(!is_evicted(&here[0]) && is_evicted(&here[1]) && !is_evicted(&here[2]));
        for connection in &here {
            connection.is_known.set(true);
            connection.is_busy.set(true);
        }
        assert!(connections.admit().is_none());
        here[5].is_busy.set(false);
        here.push(connections.admit().expect("an idle one makes room"));
        assert!(is_evicted(&here[5]));
        here.truncate(10);
        assert!(connections.admit().is_some(), "who has left takes no room");
    }

    #[test]
    fn watchers_have_a_share_and_each_operator_a_share_of_that() {
        let connections = AdminConnections::default();
        let mut here = Vec::new();
        let mut watch = |name: Option<&str>| {
            let connection = connections.admit().expect("there is room");
            let watches = connections.watch(&connection, name);
            here.push(connection);
            watches
        };
        for _ in 0..WATCHERS_OF_ONE {
            assert_eq!(watch(Some("wall")), Ok(()));
        }
        assert_eq!(watch(Some("wall")), Err(TooMany::Own));
        for _ in WATCHERS_OF_ONE..WATCHERS {
            assert_eq!(watch(None), Ok(()), "on the unix socket nobody has a name");
        }
        assert_eq!(watch(Some("ana")), Err(TooMany::All));
        here.drain(..WATCHERS_OF_ONE);
        let connection = connections.admit().unwrap();
        assert_eq!(connections.watch(&connection, Some("wall")), Ok(()), "places come back");
    }
}
