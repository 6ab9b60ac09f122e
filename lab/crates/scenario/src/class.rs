//! The classes of requests.

use bywash_units::{Time, TimeSpan, Utility};
use serde::Deserialize;

use crate::distribution::Distribution;
use crate::service::Service;
use crate::shift::Shift;
use crate::threads::Parallel;

/// A class of requests.
#[derive(Clone, Debug)]
pub struct Class {
    /// The name.
    pub name: String,
    /// The HTTP method in a live run.
    pub method: String,
    /// Path and query in a live run.
    pub path: String,
    /// The form that a live run sends as `application/x-www-form-urlencoded`; empty for none.
    pub form: String,
    /// The only status that counts as an answer in a live run; any of 2xx and 3xx if `None`.
    pub status: Option<u16>,
    /// Whether it is a transaction or browsing.
    pub tier: Tier,
    /// The utility, for policies that use it.
    pub utility: Utility,
    /// Places in its queue, for policies with one per class.
    pub queue: Option<u32>,
    /// Indices of its prerequisite classes. The class counts as a transaction only for a session
    /// that was served one of them.
    pub requires: Vec<usize>,
    /// Service demand.
    pub service: Service,
    /// A different service demand for a limited time.
    pub shift: Option<Shift>,
    /// The least and the most running time, if its requests may be stopped while they run.
    pub stop: Option<(TimeSpan, TimeSpan)>,
    /// The revenue of an answer, if it is an order.
    pub revenue: Utility,
    /// A fixed utility that is not learned.
    pub fixed_value: Option<Utility>,
    /// The think time after it; that of the client if `None`.
    pub think: Option<Distribution>,
    /// How long a client waits for it; the client's patience if `None`.
    pub patience: Option<Distribution>,
    /// The station that serves it, an index of `servers.stations`; the application's workers if
    /// `None`.
    pub station: Option<usize>,
    /// The tasks and threads, for `servers.threads`.
    pub parallel: Parallel,
}

impl Class {
    /// Returns the service demand of a request whose session begins at `now`.
    pub fn service_at(&self, now: Time) -> &Service {
        let shift = self.shift.as_ref().filter(|shift| shift.is_on(now));
        shift.map_or(&self.service, |shift| &shift.service)
    }
}

/// Whether requests are part of a purchase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Part of a purchase.
    Transaction,
    /// All other requests.
    Browsing,
}
