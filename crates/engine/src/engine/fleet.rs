//! The slots that a fleet leases to the engine, and the work by which the fleet divides its slots.

use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};

use super::{Engine, view};
use crate::action::Action;
use crate::overload::GROUPS;
use crate::queue::Behaved;
use crate::request::RequestId;

/// The work that clients offer, by group. Better groups have lower numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// The numbers of requests that have arrived since slots are leased.
    pub arrivals: [u64; GROUPS],
    /// The numbers of waiting requests.
    pub waiting: [u32; GROUPS],
    /// The recent mean time that a request holds its slot; zero while unknown.
    pub mean_service: TimeSpan,
}

impl Engine {
    /// Sets the number of slots that the fleet leases to this engine, at least one. With `None` the
    /// concurrency policy decides.
    ///
    /// Running requests keep their slots if there are fewer now.
    pub fn set_slot_lease(&mut self, now: Time, slots: Option<u32>, actions: &mut Vec<Action>) {
        self.slot_lease = slots.map(|slots| slots.max(1));
        self.fill(now, actions);
    }

    /// Returns the work that clients offer.
    pub fn offered(&self) -> Offered {
        let view = self.view(Time::ZERO);
        Offered {
            arrivals: self.arrivals,
            waiting: self.scheduler.waiting_by_group(&view),
            mean_service: self.mean_service.mean(),
        }
    }

    /// Counts an arriving request, unless its clients have behaved badly.
    pub(super) fn count_arrival(&mut self, now: Time, id: RequestId) {
        if self.slot_lease.is_none() {
            return;
        }
        let view = view(now, self.mean_service, self.learning.values(), &self.requests);
        let waiting = view.waiting(id);
        if view.behaved(waiting) == Behaved::Well {
            self.arrivals[self.scheduler.group(waiting)] += 1;
        }
    }
}
