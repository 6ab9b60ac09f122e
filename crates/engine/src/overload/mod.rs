//! Overload detection. Each signal of overload is one file, and [`Detector`] is the configured one.

mod head_age;
mod loss;
mod sojourn;
mod thresholds;

use bywash_units::{Time, TimeSpan};

pub use head_age::HeadAge;
pub use loss::Loss;
pub use sojourn::Sojourn;
pub use thresholds::Thresholds;

use crate::event::{Meter, Reading};
use crate::parameters::{Decides, Settings};
use crate::request::Standing;

/// The number of groups of requests. Each standing is a group. The first requests of minor classes
/// are another, because they wait behind those of other classes (see `session_first.rs`).
pub const GROUPS: usize = Standing::COUNT + 1;

/// The configured overload detector of a scheduler that ranks by standing.
///
/// Ages and waiting times are kept separately for each group. The queue of new sessions may be long
/// for hours while transactions do not wait at all. Measurements of the machine and loss are common
/// to all groups.
#[derive(Debug)]
pub enum Detector {
    /// Overload by the age of the oldest waiting request, for each group.
    HeadAge([HeadAge; GROUPS]),
    /// Overload by the shortest wait of the requests that got a slot, for each group. The duration
    /// is the clients' median patience.
    Sojourn([Sojourn; GROUPS], TimeSpan),
    /// Overload by the share of arrivals that were refused or evicted.
    Loss(Loss),
    /// Overload by the utilisation of the CPU, or by the pressure on it.
    Thresholds(Thresholds),
}

impl Detector {
    /// Creates the detector that the parameter `signal` names, from the parameters of that
    /// detector.
    pub fn new(settings: &Settings<impl Decides>) -> Self {
        match settings.choice("signal") {
            "cpu" => Self::Thresholds(Thresholds::cpu(settings)),
            "pressure" => Self::Thresholds(Thresholds::pressure(settings)),
            "loss" => Self::Loss(Loss::new(settings)),
            "sojourn" => Self::Sojourn([Sojourn::CALM; GROUPS], settings.span("patience")),
            _ => Self::HeadAge(core::array::from_fn(|_| HeadAge::new(settings))),
        }
    }

    /// Updates the detector, and returns whether there is overload among the requests of `group`.
    /// `head` is the time for which the oldest of them has waited.
    pub fn update(
        &mut self,
        now: Time,
        group: usize,
        head: Option<TimeSpan>,
        mean_service: TimeSpan,
    ) -> bool {
        match self {
            Self::HeadAge(heads) => heads[group].observe(now, head, mean_service),
            Self::Sojourn(sojourns, patience) => {
                sojourns[group].update(now, mean_service, *patience)
            }
            Self::Loss(loss) => loss.update(now),
            Self::Thresholds(thresholds) => thresholds.overloaded(),
        }
    }

    /// Counts a request that arrived at the queue. `lost` says whether a request was refused or
    /// evicted as a result.
    pub fn arrived(&mut self, now: Time, lost: bool) {
        if let Self::Loss(loss) = self {
            loss.arrived(now, lost);
        }
    }

    /// Notes that a request of `group` got a slot. `sojourn` is the time that it had waited.
    pub fn left(&mut self, group: usize, sojourn: TimeSpan) {
        if let Self::Sojourn(sojourns, _) = self {
            sojourns[group].left(sojourn);
        }
    }

    /// Handles a measurement of the machine. Detectors that do not need it ignore it.
    pub fn read(&mut self, reading: Reading) {
        if let Self::Thresholds(thresholds) = self
            && thresholds.meter().0 == reading.meter
        {
            thresholds.read(reading.share);
        }
    }

    /// Returns the measurement of the machine that the detector needs, and the time to average it
    /// over. Returns `None` if it needs none.
    pub const fn meter(&self) -> Option<(Meter, TimeSpan)> {
        match self {
            Self::Thresholds(thresholds) => Some(thresholds.meter()),
            Self::HeadAge(_) | Self::Sojourn(..) | Self::Loss(_) => None,
        }
    }

    /// Returns whether there was overload in any group at the last check.
    pub fn overloaded(&self) -> bool {
        match self {
            Self::HeadAge(heads) => heads.iter().any(HeadAge::overloaded),
            Self::Sojourn(sojourns, _) => sojourns.iter().any(Sojourn::overloaded),
            Self::Loss(loss) => loss.overloaded(),
            Self::Thresholds(thresholds) => thresholds.overloaded(),
        }
    }
}
