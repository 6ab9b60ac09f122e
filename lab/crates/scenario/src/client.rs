//! The behaviour of clients: how long they think and wait, and when they retry.

use std::fmt;

use bywash_units::TimeSpan;
use serde::{Deserialize, Serialize};

use crate::distribution::{Distribution, Stream};

/// Whether the server side notices that a client closes its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Closes {
    /// The server side notices a departure, and can remove the request from the queue or stop it.
    Visible,
    /// An intermediary (a CDN, a pooling proxy) hides a departure, and the request looks like any
    /// other.
    Hidden,
    /// The server side notices a departure while the request waits for a slot or inside the
    /// application. A request in service is served to its end. The database of paper 4 is an
    /// example: it checks for a departure when a thread gets its turn, and not again [paper 4.6].
    /// Only the simulator can run this.
    Waiting,
}

impl Closes {
    /// Returns the name used in scenario files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Hidden => "hidden",
            Self::Waiting => "waiting",
        }
    }
}

impl fmt::Display for Closes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The event that must happen in time, or else a client's patience ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitsFor {
    /// Patience ends unless the answer is complete in time.
    #[default]
    Answer,
    /// Patience ends unless service begins in time. A client in service stays to the end. Only the
    /// simulator can run this.
    Service,
}

/// The behaviour of clients.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// The pause between the answer to a request and the visitor's next request.
    pub think: Distribution,
    /// The time that a client waits for an answer before it leaves.
    pub patience: Distribution,
    /// The event for which a client waits with `patience`.
    pub waits_for: WaitsFor,
    /// The maximum number of retries of a request. If the last retry fails, the session is
    /// abandoned.
    pub retries: u32,
    /// The maximum number of retries of a request after refusals and failures. A refused or failed
    /// request is retried only if it has had fewer retries; 0 for clients that do not retry after a
    /// refusal.
    pub retries_after_refusal: u32,
    /// The pause before the retry of a request that timed out.
    pub pause_after_timeout: TimeSpan,
    /// The pause before the retry of a request that was refused.
    pub pause_after_refusal: Distribution,
    /// Whether the client first waits as long as the refusal asked (`Retry-After`), and then waits
    /// for `pause_after_refusal` as well.
    pub obeys_retry_after: bool,
    /// Whether a retry declares in a header that it is a retry.
    pub declares_retries: bool,
    /// The probability that a client abandons its session after a failed attempt although retries
    /// are left.
    pub abandon: f64,
    /// Whether clients return cookies. Without cookies they have no sessions.
    pub returns_cookies: bool,
    /// The number of populations of visitors that a gateway can tell apart, such as browsers with
    /// different heads; 0 if the gateway tells none apart. The population of rank r is r times
    /// smaller than the largest.
    pub shapes: u32,
    /// The number of targets of visitors' first requests that a gateway can tell apart, such as
    /// pages; 0 if the gateway tells none apart. The target of rank r is about r times less frequent
    /// than the first one.
    pub targets: u32,
}

impl Client {
    /// Draws the number of the target of a visitor's first request, below [`Client::targets`], from
    /// the stream that `begin` returns. Returns `None` if the gateway tells no targets apart.
    pub fn target(&self, begin: impl FnOnce() -> Stream) -> Option<u64> {
        let targets = (self.targets > 0).then_some(f64::from(self.targets))?;
        // The rank whose part of the sum of 1/r, which is about ln(r), has been drawn.
        Some(((targets + 1.0).powf(begin().unit()) - 1.0) as u64)
    }

    /// Draws the number of a visitor's population, below [`Client::shapes`], from the stream that
    /// `begin` returns. Returns the number and the stream; `None` if the gateway tells no populations
    /// apart.
    pub fn shape(&self, begin: impl FnOnce() -> Stream) -> Option<(u32, Stream)> {
        let last = self.shapes.checked_sub(1)?;
        let mut stream = begin();
        let weight = |rank: u32| 1.0 / f64::from(rank + 1);
        let mut left = stream.unit() * (0..self.shapes).map(weight).sum::<f64>();
        let chosen = (0..self.shapes).find(|rank| {
            left -= weight(*rank);
            left <= 0.0
        });
        Some((chosen.unwrap_or(last), stream))
    }
}
