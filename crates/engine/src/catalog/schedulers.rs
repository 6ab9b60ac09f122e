//! The schedulers of the catalogue, which choose the waiting request that gets the next slot.

use alloc::boxed::Box;

use bywash_units::TimeSpan;

use super::{Domain, Parameter, Policy};
use crate::queue::{ByClass, Scheduler, SchedulerSettings, Single, session_first, value_index};
use crate::request::Class;

const CAPACITY: Parameter = Parameter {
    name: "capacity",
    domain: Domain::Count { min: 1, max: 1_000_000, default: 100 },
    why: "Places in the queue. More places mean longer waits, not more requests served.",
};
const UPPER: Parameter = Parameter {
    name: "upper",
    domain: Domain::Ratio { min: 0.0, max: 1.0, default: 0.90 },
    why: "CPU utilisation above which the newest requests go first.",
};
const LOWER: Parameter = Parameter {
    name: "lower",
    domain: Domain::Ratio { min: 0.0, max: 1.0, default: 0.75 },
    why: "CPU utilisation below which the oldest requests go first again.",
};
const INTERVAL: Parameter = Parameter {
    name: "interval",
    domain: Domain::TimeSpan {
        min: TimeSpan::from_millis(100),
        max: TimeSpan::from_secs(60),
        default: TimeSpan::from_secs(1),
    },
    why: "Time over which CPU utilisation is averaged.",
};
const BROWSING_CAPACITY: Parameter = Parameter {
    name: "browsing_capacity",
    domain: Domain::Count { min: 1, max: 1_000_000, default: 50 },
    why: "Places in the queue of each browsing class that sets no number of its own.",
};
const TRANSACTION_CAPACITY: Parameter = Parameter {
    name: "transaction_capacity",
    domain: Domain::Count { min: 1, max: 1_000_000, default: 25 },
    why: "Places in the queue of each transaction class that sets no number of its own.",
};

const FLOOR_SHARE: Parameter = Parameter {
    name: "floor_share",
    domain: Domain::Ratio { min: 0.0, max: 0.5, default: 0.02 },
    why: "Ratio of the dispatches that goes to the class that has waited longest.",
};
const PRINCIPAL_CAP: Parameter = Parameter {
    name: "principal_cap",
    domain: Domain::Count { min: 1, max: 1_000_000, default: 8 },
    why: "Maximum number of waiting requests of one session or address.",
};
const RUNNING_SHARE: Parameter = Parameter {
    name: "running_share",
    domain: Domain::Ratio { min: 0.01, max: 1.0, default: 0.5 },
    why: "Ratio of the slots that one session or address may hold while others wait; 1 for all.",
};
const RETRIES: Parameter = Parameter {
    name: "retries",
    domain: Domain::Choice(&["declared", "all", "none"]),
    why: "Which retries rank below first attempts of their kind: those that declare themselves \
          (declared), also those that the gateway recognises (all), or none.",
};
const SIGNAL: Parameter = Parameter {
    name: "signal",
    domain: Domain::Choice(&["head-age", "sojourn", "loss", "cpu", "pressure"]),
    why: "The measurement that detects overload: the age of the oldest waiting request, the lowest \
          waiting time of those served, the share of arrivals lost, the CPU utilisation, or the \
          CPU pressure.",
};
const PATIENCE: Parameter = Parameter {
    name: "patience",
    domain: Domain::TimeSpan {
        min: TimeSpan::from_millis(10),
        max: TimeSpan::from_secs(3600),
        default: TimeSpan::from_secs(20),
    },
    why: "Median patience of clients; for head-age and sojourn, a tenth of it is overload.",
};
const PRESSURE: Parameter = Parameter {
    name: "pressure",
    domain: Domain::Ratio { min: 0.0, max: 1.0, default: 0.40 },
    why: "CPU pressure above which the newest requests go first, until it falls to half of that.",
};
const LOSS: Parameter = Parameter {
    name: "loss",
    domain: Domain::Ratio { min: 0.0, max: 1.0, default: 0.05 },
    why: "Loss above which the newest requests go first, until it falls to a fifth of that.",
};
/// The parameters of the schedulers that rank requests and evict the worst.
const RANKED: &[Parameter] = &[
    CAPACITY,
    FLOOR_SHARE,
    PRINCIPAL_CAP,
    RUNNING_SHARE,
    RETRIES,
    SIGNAL,
    PATIENCE,
    UPPER,
    LOWER,
    PRESSURE,
    LOSS,
    INTERVAL,
];

/// All schedulers. The first is the default.
pub static POLICIES: [Policy; 5] = [
    Policy {
        name: "session-first",
        source: "bywash",
        about: "Transactions of proven sessions first, then sessions in progress, then new ones; \
                when the queue is full, the worst waiting request is evicted.",
        parameters: RANKED,
        build: session_first,
    },
    Policy {
        name: "value-index",
        source: "bywash",
        about: "Highest expected revenue per second of work first, learned from what sessions do \
                and from their entry signals; when the queue is full, the worst waiting request is \
                evicted.",
        parameters: RANKED,
        build: value_index,
    },
    Policy {
        name: "lifo-pri",
        source: "paper 1, LIFO-Pri",
        about: "A queue per class: transactions first, then the highest length × utility; browsing \
                goes newest first while the CPU is overloaded.",
        parameters: &[BROWSING_CAPACITY, TRANSACTION_CAPACITY, UPPER, LOWER, INTERVAL],
        build: |settings, classes| Box::new(ByClass::lifo_pri(settings, classes)),
    },
    Policy {
        name: "always-fifo",
        source: "paper 1, 8Q-AF",
        about: "A queue per class: transactions first, then the highest length × utility; always \
                oldest first.",
        parameters: &[BROWSING_CAPACITY, TRANSACTION_CAPACITY],
        build: |settings, classes| Box::new(ByClass::always_fifo(settings, classes)),
    },
    Policy {
        name: "single-queue",
        source: "paper 1, SQ",
        about: "One queue for all requests, as in a server without overload control.",
        parameters: &[
            CAPACITY,
            Parameter {
                name: "order",
                domain: Domain::Choice(&["fifo", "lifo"]),
                why: "Whether the oldest or the newest request goes first.",
            },
        ],
        build: |settings, _| Box::new(Single::new(settings)),
    },
];

/// Returns the scheduler named `name`; `None` if there is none.
pub fn find(name: &str) -> Option<&'static Policy> {
    POLICIES.iter().find(|policy| policy.name == name)
}

impl SchedulerSettings {
    /// Builds the scheduler from these settings for these classes.
    pub fn scheduler(&self, classes: &[Class]) -> Box<dyn Scheduler> {
        (self.policy.build)(self, classes)
    }

    /// Builds a scheduler for `classes` from these settings, for
    /// [`Engine::reconfigure`](crate::Engine::reconfigure). Returns `None` if the present scheduler
    /// can stay. `was` and `had` are the settings and the classes of the present scheduler.
    pub fn changed_scheduler(
        &self,
        classes: &[Class],
        was: &Self,
        had: &[Class],
    ) -> Option<Box<dyn Scheduler>> {
        let same_classes = classes.len() == had.len()
            && classes.iter().zip(had).all(|(class, other)| class.ranks_like(other));
        (!same_classes || self != was).then(|| self.scheduler(classes))
    }
}
