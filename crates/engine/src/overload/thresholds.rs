//! The overload detector by a measurement of the machine, with two thresholds.
//!
//! Source: paper 1, «Set Service Discipline of Browsing Queues» [paper 1.4], for CPU utilisation.
//! Overload begins above the upper threshold and ends below the lower one. Between them nothing
//! changes. The measurement does not show overload if the bottleneck is a connection pool or a
//! database on another machine, or in a container whose quota the measurement does not know. In
//! those cases use the age of the oldest waiting request. The same thresholds work for pressure
//! (PSI: the share of time in which at least one task waited for the CPU). Pressure distinguishes a
//! busy machine from an overloaded one.

use bywash_units::{Ratio, TimeSpan};

use crate::event::Meter;
use crate::parameters::{Decides, Settings};

/// The overload detector with two thresholds on a measurement of the machine.
#[derive(Debug)]
pub struct Thresholds {
    meter: Meter,
    upper: Ratio,
    lower: Ratio,
    interval: TimeSpan,
    overloaded: bool,
}

impl Thresholds {
    /// Creates the detector by CPU utilisation from the parameters `upper`, `lower` and `interval`.
    pub fn cpu(settings: &Settings<impl Decides>) -> Self {
        let (upper, lower) = (settings.share("upper"), settings.share("lower"));
        Self::new(Meter::Cpu, upper, lower, settings.span("interval"))
    }

    /// Creates the detector by pressure from the parameters `pressure` and `interval`. The lower
    /// threshold is half of the upper one, which is `pressure`.
    pub fn pressure(settings: &Settings<impl Decides>) -> Self {
        let upper = settings.share("pressure");
        Self::new(Meter::Pressure, upper, Ratio::new(upper.get() / 2.0), settings.span("interval"))
    }

    const fn new(meter: Meter, upper: Ratio, lower: Ratio, interval: TimeSpan) -> Self {
        Self { meter, upper, lower, interval, overloaded: false }
    }

    /// Handles a measurement, averaged over one interval.
    pub fn read(&mut self, share: Ratio) {
        if share > self.upper {
            self.overloaded = true;
        } else if share < self.lower {
            self.overloaded = false;
        }
    }

    /// Returns whether there was overload at the last measurement.
    pub const fn overloaded(&self) -> bool {
        self.overloaded
    }

    /// Returns the measurement of the machine that the detector needs, and the time to average it
    /// over.
    pub const fn meter(&self) -> (Meter, TimeSpan) {
        (self.meter, self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;

    #[test]
    fn between_the_thresholds_nothing_changes() {
        let policy = catalog::find("lifo-pri").expect("lifo-pri is in the catalogue");
        let mut cpu =
            Thresholds::cpu(&policy.settings([("upper", "0.9"), ("lower", "0.5")]).unwrap());
        let states = [0.7, 0.95, 0.7, 0.5, 0.4, 0.7].map(|share| {
            cpu.read(Ratio::new(share));
            cpu.overloaded()
        });
        assert_eq!(states, [false, true, true, true, false, false]);
    }
}
