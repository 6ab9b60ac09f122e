//! The termination policies of the catalogue, which decide how long a request may run.

use alloc::boxed::Box;

use bywash_units::TimeSpan;

use super::{Domain, Parameter, Policy};
use crate::terminate::{
    Fixed, Loss, Marginal, Never, Terminate, TerminationSettings, Terminations,
};

/// A termination policy of the catalogue.
pub type TerminationPolicy = Policy<Terminations>;

/// The name of the policy that stops no request.
const NEVER: &str = "never";

/// All termination policies. The first is the default. None of them stops a request whose class
/// does not allow it.
pub static TERMINATIONS: [TerminationPolicy; 4] = [
    Policy {
        name: "marginal",
        source: "bywash",
        about: "Stops a request that has run past the `run_max` of its class. When waiting \
                requests are about to be lost, it also stops a request that promises less than \
                half of what they promise for a second of service.",
        parameters: &[],
        build: |_| Box::new(Marginal::default()),
    },
    Policy {
        name: "loss",
        source: "paper 2, SERT",
        about: "Stops a request at a threshold between `run_min` and `run_max` of its class: the \
                more of the class's requests were lost in the last interval, the lower the \
                threshold.",
        parameters: &[
            Parameter {
                name: "alpha",
                domain: Domain::Number { min: 0.0, max: 100.0, default: 4.0 },
                why: "How fast the threshold falls as the loss rises; 1 is a straight line.",
            },
            Parameter {
                name: "low",
                domain: Domain::Ratio { min: 0.0, max: 1.0, default: 0.05 },
                why: "Loss up to which the threshold is `run_max`.",
            },
            Parameter {
                name: "high",
                domain: Domain::Ratio { min: 0.0, max: 1.0, default: 0.15 },
                why: "Loss from which on the threshold is `run_min`.",
            },
            Parameter {
                name: "interval",
                domain: Domain::TimeSpan {
                    min: TimeSpan::from_millis(100),
                    max: TimeSpan::from_secs(3600),
                    default: TimeSpan::from_secs(10),
                },
                why: "Time over which the loss is counted.",
            },
        ],
        build: |settings| Box::new(Loss::new(settings)),
    },
    Policy {
        name: "fixed",
        source: "paper 2, fixed thresholds",
        about: "Stops every request that has run past the `run_max` of its class, at any load.",
        parameters: &[],
        build: |_| Box::new(Fixed),
    },
    Policy {
        name: NEVER,
        source: "paper 2, AC",
        about: "Stops no request.",
        parameters: &[],
        build: |_| Box::new(Never),
    },
];

/// Returns the termination policy named `name`; `None` if there is none.
pub fn find_termination(name: &str) -> Option<&'static TerminationPolicy> {
    TERMINATIONS.iter().find(|policy| policy.name == name)
}

impl TerminationSettings {
    /// Returns the settings of the policy that stops no request.
    ///
    /// # Panics
    /// Panics if that policy is not in the catalogue, which is a mistake in the catalogue.
    pub fn never() -> Self {
        let never = find_termination(NEVER).and_then(|policy| policy.settings([]).ok());
        never.expect("it is in the list, and takes no parameters")
    }

    /// Returns whether these are the settings of the policy that stops no request.
    pub fn is_never(&self) -> bool {
        self.name() == NEVER
    }

    /// Builds the termination policy from these settings.
    pub fn termination(&self) -> Box<dyn Terminate> {
        (self.policy.build)(self)
    }
}

/// The settings of the first termination policy of the catalogue, with the default of each
/// parameter.
impl Default for TerminationSettings {
    fn default() -> Self {
        Self { policy: &TERMINATIONS[0], values: [].into() }
    }
}
