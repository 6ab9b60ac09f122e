//! The table of principals: how many requests each has waiting.

use hashbrown::HashMap;

use crate::request::{AddressKey, SessionKey};
use crate::session::{KeyHasher, SPARE};

/// The principal that a waiting request counts for: a proven session, or otherwise an address.
///
/// The transactions of a session count separately from its browsing, so a page that makes many
/// requests in parallel cannot block its own visitor's payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The requests of a session that are transactions with a proven path.
    Checkout(SessionKey),
    /// The other requests of a session that was served before.
    Session(SessionKey),
    /// The requests of a client address.
    Address(AddressKey),
}

/// The number of waiting requests of each principal. A principal without waiting requests is not in
/// the table, so the table is no larger than the queue.
#[derive(Debug)]
pub(crate) struct Principals {
    waiting: HashMap<Principal, u32, KeyHasher>,
}

impl Principals {
    pub(crate) fn new(queue: u32) -> Self {
        let room = queue as usize * SPARE;
        Self { waiting: HashMap::with_capacity_and_hasher(room, KeyHasher) }
    }

    pub(crate) fn of(&self, principal: Option<Principal>) -> u32 {
        principal.and_then(|principal| self.waiting.get(&principal).copied()).unwrap_or(0)
    }

    pub(crate) fn add(&mut self, principal: Option<Principal>) {
        if let Some(principal) = principal {
            *self.waiting.entry(principal).or_insert(0) += 1;
        }
    }

    pub(crate) fn take(&mut self, principal: Option<Principal>) {
        let Some(principal) = principal else { return };
        if let Some(count) = self.waiting.get_mut(&principal) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&principal);
            }
        }
    }
}
