//! Connections that a server has authenticated (NTLM, Negotiate), each for one client connection.
//!
//! A server that authenticates a connection attributes every later request on it to the same user
//! ([`bywash_message::Fields::authenticates_connection`]). So such a connection is never put among
//! the idle ones. It waits here for the next request of the client connection on which the
//! authentication took place, and is closed with that client connection. `Pins` holds the pinned
//! connections of one pool. [`PinnedLink`] belongs to one client connection, and finds its pinned
//! connection in `Pins`.
//!
//! **Bound.** A client connection pins at most one connection. If a pool has too many pinned
//! connections, it closes the least recently used one, and the user must authenticate again. An
//! authentication in progress is used often, so it is seldom the least recently used one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Pool, h1};

/// The pinned connections of one pool.
#[derive(Default)]
pub(super) struct Pins {
    /// The connections with the indices of their servers, by a number that rises with each use. The
    /// first one is the least recently used.
    links: BTreeMap<u64, (usize, h1::Link)>,
    next: u64,
}

impl Pins {
    /// Stores a connection to this server, and returns its number. If there are more than `most`
    /// then, closes the least recently used ones.
    pub(super) fn keep(&mut self, server: usize, link: h1::Link, most: usize) -> u64 {
        let number = self.next;
        self.next += 1;
        self.links.insert(number, (server, link));
        while self.links.len() > most {
            self.links.pop_first();
        }
        number
    }

    /// Removes the connection with this number, and returns it with its server. Returns `None` if
    /// it was closed meanwhile.
    pub(super) fn take(&mut self, number: u64) -> Option<(usize, h1::Link)> {
        self.links.remove(&number)
    }

    /// Closes the connections that their servers have closed.
    pub(super) fn tick(&mut self) {
        self.links.retain(|_, (_, link)| link.is_idle());
    }
}

/// The pinned connection of one client connection, if it has one. Dropping this closes it.
#[derive(Default)]
pub(crate) struct PinnedLink(RefCell<Option<PinnedEntry>>);

struct PinnedEntry {
    pool: Rc<Pool>,
    number: u64,
}

impl PinnedLink {
    /// Pins a connection to this server, and closes the one that was pinned before.
    pub(crate) fn keep(&self, pool: &Rc<Pool>, server: usize, link: h1::Link) {
        let held =
            pool.pin(server, link).map(|number| PinnedEntry { pool: Rc::clone(pool), number });
        self.0.replace(held);
    }

    /// Takes the pinned connection out, with the index of its server. Returns `None` if there is
    /// none that can carry another request. A connection of another pool is closed, because the
    /// servers have changed.
    pub(crate) fn take(&self, pool: &Rc<Pool>) -> Option<(usize, h1::Link)> {
        let held = self.0.take()?;
        let (server, mut link) = held.pool.unpin(held.number)?;
        (Rc::ptr_eq(&held.pool, pool) && link.is_idle()).then_some((server, link))
    }
}

impl Drop for PinnedEntry {
    fn drop(&mut self) {
        self.pool.unpin(self.number);
    }
}
