//! Options of a run in addition to its scenario.

use std::fmt;

use bywash_scenario::Closes;
use bywash_units::TimeSpan;

/// Asks the target for the total busy time of its workers; `None` if it does not report it.
///
/// Called before the first visitor and after the last one, never during the run.
pub type Busy = Box<dyn Fn() -> Option<TimeSpan> + Send + Sync>;

/// Options of a run, which has one level of load and one seed.
pub struct Options {
    /// The site, as `http://host:port`.
    pub target: String,
    /// Offered load: the level that the scenario's profile leads to.
    pub rho: f64,
    /// The seed, which determines the visitors and their arrivals.
    pub seed: u64,
    /// How long visitors may continue after the last arrival; then every connection is closed.
    pub drain: TimeSpan,
    /// The most visitors at once, to bound memory: a visitor that waits for an answer costs some 25
    /// kB. Also limited to the number of open files less 200.
    pub max_visitors: usize,
    /// Marks every request `<tag>-<seed>-<index>`, to find one visitor's orders in the site's
    /// database. Up to [`Options::LONGEST_TAG`] letters, digits, `-` and `_`.
    pub tag: Option<String>,
    /// The name of the target's policy in the result.
    pub label: String,
    /// Whether the target sees departures. `Hidden` emulates an intermediary that hides them: a
    /// client that has lost patience continues without the answer, and its connection stays open
    /// until the answer arrives or the run is over.
    pub closes: Closes,
    /// Whether every visitor has an own address of 127.0.0.0/8, if the target is on loopback. So
    /// the site can distinguish visitors by address. A set's clients share one.
    pub own_addresses: bool,
    /// Returns the target's busy time; without it wasted work is unknown.
    pub busy: Option<Busy>,
}

impl Options {
    /// The longest `tag`: with seed and index it must fit in 64 characters.
    pub const LONGEST_TAG: usize = 22;

    /// Creates options for `seed` at `rho` against `target`, with defaults for the rest: 30 s of
    /// drain, 20,000 visitors at once, visible closes, no tag, no busy time.
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
            busy: None,
        }
    }

    /// Returns the busy time of the target so far, if it reports it.
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
            .field("busy", &self.busy.is_some())
            .finish()
    }
}
