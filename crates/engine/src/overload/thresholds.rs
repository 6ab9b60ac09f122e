//! Overload by a reading of the machine, with two thresholds.
//!
//! Source: seed 1, «Set Service Discipline of Browsing Queues» [seed 1.4], for the CPU's utilisation.
//! Above the upper threshold it is overload, below the lower one it is not, between them nothing
//! changes. Blind where the bottleneck is a connection pool or a database on another machine, and
//! in a container whose quota the reading does not know: then use the age of the head of the queue.
//! The same two thresholds serve for pressure (PSI: the share of time in which somebody waited for
//! the CPU), which tells a busy machine from one that is too busy.

use bywash_units::{Share, Span};

use crate::catalog::Settings;
use crate::event::Meter;

/// Two thresholds on a reading.
#[derive(Debug)]
pub struct Thresholds {
    meter: Meter,
    upper: Share,
    lower: Share,
    interval: Span,
    overloaded: bool,
}

impl Thresholds {
    /// On the utilisation of the CPU, from the parameters `upper`, `lower` and `interval`.
    pub fn cpu(settings: &Settings) -> Self {
        let (upper, lower) = (settings.share("upper"), settings.share("lower"));
        Self::new(Meter::Cpu, upper, lower, settings.span("interval"))
    }

    /// On pressure, from the parameters `pressure` and `interval`; over at half of it.
    pub fn pressure(settings: &Settings) -> Self {
        let upper = settings.share("pressure");
        Self::new(Meter::Pressure, upper, Share::new(upper.get() / 2.0), settings.span("interval"))
    }

    const fn new(meter: Meter, upper: Share, lower: Share, interval: Span) -> Self {
        Self { meter, upper, lower, interval, overloaded: false }
    }

    /// A reading over one interval has come.
    pub fn read(&mut self, share: Share) {
        if share > self.upper {
            self.overloaded = true;
        } else if share < self.lower {
            self.overloaded = false;
        }
    }

    /// Whether it is overload.
    pub const fn overloaded(&self) -> bool {
        self.overloaded
    }

    /// What is to be read, and over which time a reading is to be averaged.
    pub const fn meter(&self) -> (Meter, Span) {
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
            cpu.read(Share::new(share));
            cpu.overloaded()
        });
        assert_eq!(states, [false, true, true, true, false, false]);
    }
}
