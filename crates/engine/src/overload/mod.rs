//! Is it overload? One signal is one file; [`Detector`] is the one that was chosen.

mod head_age;
mod loss;
mod sojourn;
mod thresholds;

use bywash_units::{Span, Time};

pub use head_age::HeadAge;
pub use loss::Loss;
pub use sojourn::Sojourn;
pub use thresholds::Thresholds;

use crate::catalog::Settings;
use crate::event::{Meter, Reading};
use crate::request::Standing;

/// A detector for an order that ranks by standing. Ages and sojourns are told apart by standing,
/// as the queue of new sessions may be long for hours while transactions do not wait at all;
/// readings and loss are one for all.
#[derive(Debug)]
pub enum Detector {
    /// The age of the oldest that waits.
    HeadAge([HeadAge; Standing::COUNT]),
    /// The least time that those waited who got a slot.
    Sojourn([Sojourn; Standing::COUNT], Span),
    /// The share of arrivals that was lost.
    Loss(Loss),
    /// The CPU, or the pressure on it.
    Thresholds(Thresholds),
}

impl Detector {
    /// The parameter `signal` and those that belong to it.
    pub fn new(settings: &Settings) -> Self {
        match settings.choice("signal") {
            "cpu" => Self::Thresholds(Thresholds::cpu(settings)),
            "pressure" => Self::Thresholds(Thresholds::pressure(settings)),
            "loss" => Self::Loss(Loss::new(settings)),
            "sojourn" => Self::Sojourn([Sojourn::CALM; Standing::COUNT], settings.span("patience")),
            _ => Self::HeadAge(core::array::from_fn(|_| HeadAge::new(settings))),
        }
    }

    /// Whether it is overload among those of `standing`, the oldest of whom has waited for `head`.
    pub fn look(
        &mut self,
        now: Time,
        standing: usize,
        head: Option<Span>,
        mean_service: Span,
    ) -> bool {
        match self {
            Self::HeadAge(heads) => heads[standing].observe(now, head, mean_service),
            Self::Sojourn(sojourns, patience) => {
                sojourns[standing].look(now, mean_service, *patience)
            }
            Self::Loss(loss) => loss.look(now),
            Self::Thresholds(thresholds) => thresholds.overloaded(),
        }
    }

    /// A request has asked to wait, and somebody was lost by it or not.
    pub fn arrived(&mut self, now: Time, lost: bool) {
        if let Self::Loss(loss) = self {
            loss.arrived(now, lost);
        }
    }

    /// A request of `standing` got a slot after it had waited for `sojourn`.
    pub fn left(&mut self, standing: usize, sojourn: Span) {
        if let Self::Sojourn(sojourns, _) = self {
            sojourns[standing].left(sojourn);
        }
    }

    /// A measurement of the machine has come.
    pub fn read(&mut self, reading: Reading) {
        if let Self::Thresholds(thresholds) = self
            && thresholds.meter().0 == reading.meter
        {
            thresholds.read(reading.share);
        }
    }

    /// What it wants to be read, and over which time.
    pub const fn meter(&self) -> Option<(Meter, Span)> {
        match self {
            Self::Thresholds(thresholds) => Some(thresholds.meter()),
            Self::HeadAge(_) | Self::Sojourn(..) | Self::Loss(_) => None,
        }
    }

    /// Whether it was overload somewhere at the last look.
    pub fn overloaded(&self) -> bool {
        match self {
            Self::HeadAge(heads) => heads.iter().any(HeadAge::overloaded),
            Self::Sojourn(sojourns, _) => sojourns.iter().any(Sojourn::overloaded),
            Self::Loss(loss) => loss.overloaded(),
            Self::Thresholds(thresholds) => thresholds.overloaded(),
        }
    }
}
