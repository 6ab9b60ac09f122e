//! The classes of requests in a scenario.

use bywash_units::{Time, TimeSpan, Utility};
use serde::Deserialize;

use crate::distribution::Distribution;
use crate::service::Service;
use crate::shift::Shift;
use crate::threads::Parallel;

/// A class of requests in a scenario.
#[derive(Clone, Debug)]
pub struct Class {
    /// The name of the class.
    pub name: String,
    /// The HTTP method of the class's requests in a live run.
    pub method: String,
    /// The path and query of the class's requests in a live run.
    pub path: String,
    /// The form that requests of a live run send as `application/x-www-form-urlencoded`; empty for
    /// none.
    pub form: String,
    /// The only status that counts as an answer in a live run; `None` accepts any 2xx and 3xx.
    pub status: Option<u16>,
    /// Whether requests of the class are transactions or browsing.
    pub tier: Tier,
    /// The utility of one request, for policies that use utilities.
    pub utility: Utility,
    /// The number of places in the queue of the class, for policies with a queue per class.
    pub queue: Option<u32>,
    /// Indices of the prerequisite classes. A request of this class counts as a transaction only if
    /// its session was served a request of one of them.
    pub requires: Vec<usize>,
    /// The service demand of a request.
    pub service: Service,
    /// The service demand that replaces `service` for a limited time; `None` if there is none.
    pub shift: Option<Shift>,
    /// The minimum and the maximum time for which a request may run before it is stopped; `None` if
    /// requests of the class cannot be stopped.
    pub stop: Option<(TimeSpan, TimeSpan)>,
    /// The revenue of an answer that is an order.
    pub revenue: Utility,
    /// The utility that the engine uses instead of a learned one; `None` if the engine learns it.
    pub fixed_value: Option<Utility>,
    /// The think time after a request of the class; `None` for the think time that the scenario
    /// sets for all clients.
    pub think: Option<Distribution>,
    /// The time that a client waits for an answer to a request of the class; `None` for the
    /// patience that the scenario sets for all clients.
    pub patience: Option<Distribution>,
    /// The station that serves the requests, as an index of `servers.stations`; `None` for the
    /// application's workers.
    pub station: Option<usize>,
    /// The tasks and threads of a request, if the scenario has `servers.threads`.
    pub parallel: Parallel,
}

impl Class {
    /// Returns the service demand of requests whose session begins at `now`.
    pub fn service_at(&self, now: Time) -> &Service {
        let shift = self.shift.as_ref().filter(|shift| shift.is_on(now));
        shift.map_or(&self.service, |shift| &shift.service)
    }
}

/// Whether the requests of a class are part of a purchase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// The requests are part of a purchase.
    Transaction,
    /// The requests are not part of a purchase.
    Browsing,
}
