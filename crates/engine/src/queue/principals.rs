//! How many requests of one principal wait.

use hashbrown::HashMap;

use crate::request::{AddressKey, SessionKey};
use crate::session::{KeyHasher, SPARE};

/// Who is charged for a request: a proven session, or else an address.
///
/// The transactions of a session are charged apart from its browsing, so that a page which asks
/// for many things at once cannot stand in the way of its own visitor's payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The transactions of a session that walked there.
    Checkout(SessionKey),
    /// Whatever else a session asks for that was served before.
    Session(SessionKey),
    /// The address it came from.
    Address(AddressKey),
}

/// Counts of waiting requests by principal. No larger than the queue that it is kept for, as a
/// principal with nothing waiting is not in it.
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
