//! Overload by CPU utilisation, with two thresholds.
//!
//! Source: seed 1, «Set Service Discipline of Browsing Queues». Above the upper threshold it is
//! overload, below the lower one it is not, between them nothing changes. Blind where the
//! bottleneck is a connection pool or a database on another machine, and in a container whose
//! quota the reading does not know: then use the age of the head of the queue.

use bywash_units::{Share, Span};

use crate::catalog::Settings;

/// Two thresholds on CPU utilisation.
#[derive(Debug)]
pub struct Cpu {
    upper: Share,
    lower: Share,
    interval: Span,
    overloaded: bool,
}

impl Cpu {
    /// From the parameters `upper`, `lower` and `interval`.
    pub fn new(settings: &Settings) -> Self {
        Self {
            upper: settings.share("upper"),
            lower: settings.share("lower"),
            interval: settings.span("interval"),
            overloaded: false,
        }
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

    /// How long a reading is to be averaged over.
    pub const fn interval(&self) -> Span {
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;

    #[test]
    fn between_the_thresholds_nothing_changes() {
        let policy = catalog::find("lifo-pri").expect("lifo-pri is in the catalogue");
        let mut cpu = Cpu::new(&policy.settings([("upper", "0.9"), ("lower", "0.5")]).unwrap());
        let states = [0.7, 0.95, 0.7, 0.5, 0.4, 0.7].map(|share| {
            cpu.read(Share::new(share));
            cpu.overloaded()
        });
        assert_eq!(states, [false, true, true, true, false, false]);
    }
}
