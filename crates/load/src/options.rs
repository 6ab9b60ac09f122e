//! What a run is told besides its scenario.

use std::fmt;

use bywash_scenario::Closes;
use bywash_units::Span;

/// Asks the target how long its workers have been busy in all. `None` when it does not say.
///
/// Called before the first visitor and after the last one, never during the run.
pub type Busy = Box<dyn Fn() -> Option<Span> + Send + Sync>;

/// What to play where. One run is one level of load and one seed.
pub struct Options {
    /// The site, as `http://host:port`.
    pub target: String,
    /// Offered load: the level that the scenario's profile leads to.
    pub rho: f64,
    /// Which visitors come, and when.
    pub seed: u64,
    /// How long visitors may go on after the last arrival; then every connection is closed.
    pub drain: Span,
    /// Visitors at once, to bound memory: one who waits for an answer costs some 25 kB. The limit
    /// on open files, less 200, is the most.
    pub max_visitors: usize,
    /// Marks every request `<tag>-<seed>-<index>`, to find one visitor's orders in the site's
    /// books. Up to [`Options::LONGEST_TAG`] letters, digits, `-` and `_`.
    pub tag: Option<String>,
    /// What the result calls the policy of the target.
    pub label: String,
    /// `Hidden` plays a hop that hides departures: a client who has lost patience goes on
    /// without her answer, and her connection stays open until it has come or the run is over.
    pub closes: Closes,
    /// Every visitor comes from an address of her own, of 127.0.0.0/8, where the target is on loopback: so that she can be told
    /// apart from the others by that. A set's clients share one.
    pub own_addresses: bool,
    /// How to learn the target's busy time; without it wasted work stays unknown.
    pub busy: Option<Busy>,
}

impl Options {
    /// Longest `tag`: with seed and index it has to fit in 64 characters.
    pub const LONGEST_TAG: usize = 22;

    /// A run of `seed` at `rho` against `target`, the rest at its defaults: 30 s of drain, 20,000
    /// visitors at once, visible closes, no tag, no busy time.
    pub fn new(target: impl Into<String>, rho: f64, seed: u64) -> Self {
        Self {
            target: target.into(),
            rho,
            seed,
            drain: Span::from_secs(30),
            max_visitors: 20_000,
            tag: None,
            label: "live".into(),
            closes: Closes::Visible,
            own_addresses: false,
            busy: None,
        }
    }

    /// Busy time of the target so far, if it says.
    pub(crate) fn busy_so_far(&self) -> Option<Span> {
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
