//! The options of a live run in addition to its scenario.

use std::fmt;

use bywash_scenario::Closes;
use bywash_units::TimeSpan;

use crate::head::Head;

/// A function that asks the target for the total busy time of its workers. It returns `None` if the
/// target does not report it.
///
/// It is called before the first visitor and after the last one, never during the run.
pub type Busy = Box<dyn Fn() -> Option<TimeSpan> + Send + Sync>;

/// The options of a run, which has one offered load and one seed.
pub struct Options {
    /// The URL of the site, as `http://host:port`.
    pub target: String,
    /// The run's level of the offered load ρ. Together with the scenario's profile it determines
    /// the offered load at any time.
    pub rho: f64,
    /// The seed that determines the visitors and their arrivals.
    pub seed: u64,
    /// The maximum time for which visitors continue after the last arrival. Then every connection
    /// is closed.
    pub drain: TimeSpan,
    /// The maximum number of concurrent visitors, which bounds memory. A visitor that waits for an
    /// answer costs about 25 kB. The number is also bounded by the limit of open descriptors of
    /// this process, less 200.
    pub max_visitors: usize,
    /// The tag that marks every request as `<tag>-<seed>-<index>`, to find a visitor's orders in
    /// the site's database. It has at most [`Options::LONGEST_TAG`] letters, digits, `-` and `_`.
    pub tag: Option<String>,
    /// The name of the target's policy in the result.
    pub label: String,
    /// Whether the target sees departures. `Hidden` emulates an intermediary that hides them. A
    /// client that has lost patience continues without the answer. Its connection stays open until
    /// the answer arrives or the run is over.
    pub closes: Closes,
    /// Whether every visitor has an address of its own in 127.0.0.0/8, which requires a target on
    /// loopback. The site can then distinguish visitors by address. All clients of a set share one
    /// address.
    pub own_addresses: bool,
    /// The number that is added to a visitor's own to get its address. Two runs at the same time
    /// with numbers that are far apart have no address in common.
    pub first_address: u64,
    /// The heads of the visitors' requests. Their number must be the scenario's `client.shapes`;
    /// the head of rank r is r times rarer than the first. Without heads all visitors have the same
    /// plain head.
    pub heads: Vec<Head>,
    /// The share of visitors that keep cookies, if there are `heads`. Without heads all keep them.
    pub keep_cookies: f64,
    /// The function that returns the target's busy time. Without it, wasted work is unknown.
    pub busy: Option<Busy>,
}

impl Options {
    /// The maximum length of the tag, in characters. With seed and index it must fit into 64
    /// characters.
    pub const LONGEST_TAG: usize = 22;

    /// Creates options for `seed` at the offered load `rho` against `target`, with defaults for the
    /// rest. The defaults are 30 s of drain, 20,000 concurrent visitors, departures that the target
    /// sees, no tag, no heads, and no busy time.
    pub fn new(target: impl Into<String>, rho: f64, seed: u64) -> Self {
        Self {
            target: target.into(),
            rho,
            seed,
            drain: TimeSpan::from_secs(30),
            max_visitors: 20_000,
            tag: None,
            label: "live".into(),
            closes: Closes::Visible,
            own_addresses: false,
            first_address: 0,
            heads: Vec::new(),
            keep_cookies: 1.0,
            busy: None,
        }
    }

    /// Returns the target's total busy time until now; `None` if the target does not report it.
    pub(crate) fn busy_so_far(&self) -> Option<TimeSpan> {
        self.busy.as_ref().and_then(|busy| busy())
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("target", &self.target)
            .field("rho", &self.rho)
            .field("seed", &self.seed)
            .field("drain", &self.drain)
            .field("max_visitors", &self.max_visitors)
            .field("tag", &self.tag)
            .field("label", &self.label)
            .field("closes", &self.closes)
            .field("own_addresses", &self.own_addresses)
            .field("first_address", &self.first_address)
            .field("heads", &self.heads)
            .field("keep_cookies", &self.keep_cookies)
            .field("busy", &self.busy.is_some())
            .finish()
    }
}
