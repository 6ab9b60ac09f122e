//! The concurrency policies of the catalogue, which decide how many requests run at once.
//!
//! Their parameters, settings and errors have the same types as those of the schedulers.

use alloc::boxed::Box;
use alloc::string::String;
use core::ops::RangeInclusive;

use bywash_units::TimeSpan;

use super::{Domain, Parameter, Policy};
use crate::limit::{Aimd, Fixed, Gradient2, Limit, LimitSettings, Limits, Slope, Vegas};

/// A concurrency policy of the catalogue.
pub type LimitPolicy = Policy<Limits>;

/// The largest accepted number of slots for any concurrency policy.
const MOST: u32 = 100_000;

const fn slots(name: &'static str, default: u32, why: &'static str) -> Parameter {
    Parameter { name, domain: Domain::Count { min: 1, max: MOST, default }, why }
}

const MIN: Parameter = slots("min", 1, "The lowest value of the limit.");
const MAX: Parameter = slots("max", 1000, "The highest value of the limit.");
const INITIAL: Parameter = slots("initial", 16, "The initial value of the limit.");
const WINDOW: Parameter = Parameter {
    name: "window",
    domain: Domain::TimeSpan {
        min: TimeSpan::from_millis(10),
        max: TimeSpan::from_secs(60),
        default: TimeSpan::from_secs(1),
    },
    why: "Time over which latency is averaged; at least ten answers.",
};

/// All concurrency policies. The first is the default.
pub static LIMITS: [LimitPolicy; 5] = [
    Policy {
        name: "fixed",
        source: "paper 1, the worker pool",
        about: "A fixed number of slots.",
        parameters: &[slots("slots", 16, "Requests that all servers together work on at once.")],
        build: |settings| Box::new(Fixed::new(settings)),
    },
    Policy {
        name: "slope",
        source: "bywash",
        about: "Finds the fewest slots that keep the application busy: by Little's law on latency \
                and throughput, tested by short runs with fewer slots.",
        parameters: &[
            MIN,
            MAX,
            INITIAL,
            Parameter {
                name: "probe",
                domain: Domain::TimeSpan {
                    min: TimeSpan::from_secs(1),
                    max: TimeSpan::from_secs(3600),
                    default: TimeSpan::from_secs(10),
                },
                why: "Time between two probes, which measure latency with fewer requests at once; \
                      up to three times as long while nothing changes.",
            },
        ],
        build: |settings| Box::new(Slope::new(settings)),
    },
    Policy {
        name: "aimd",
        source: "Netflix concurrency-limits, AIMDLimit",
        about: "Raises the limit by one with each answer in time while at least half of the slots \
                are in use, and lowers it with each answer that is too late.",
        parameters: &[
            MIN,
            MAX,
            INITIAL,
            Parameter {
                name: "too_slow",
                domain: Domain::TimeSpan {
                    min: TimeSpan::from_millis(1),
                    max: TimeSpan::from_secs(3600),
                    default: TimeSpan::from_secs(5),
                },
                why: "Latency above which an answer is too late.",
            },
            Parameter {
                name: "backoff",
                domain: Domain::Ratio { min: 0.5, max: 0.99, default: 0.9 },
                why: "Factor by which an answer that is too late multiplies the limit.",
            },
        ],
        build: |settings| Box::new(Aimd::new(settings)),
    },
    Policy {
        name: "vegas",
        source: "Netflix concurrency-limits, VegasLimit",
        about: "Estimates how many requests wait inside the application from how far latency is \
                above the lowest latency seen.",
        parameters: &[MIN, MAX, INITIAL, WINDOW],
        build: |settings| Box::new(Vegas::new(settings)),
    },
    Policy {
        name: "gradient2",
        source: "Netflix concurrency-limits, Gradient2Limit",
        about: "Sets the limit by comparing recent latency with its long-term average.",
        parameters: &[MIN, MAX, INITIAL, WINDOW],
        build: |settings| Box::new(Gradient2::new(settings)),
    },
];

/// Returns the concurrency policy with the name `name`; `None` if there is none.
pub fn find_limit(name: &str) -> Option<&'static LimitPolicy> {
    LIMITS.iter().find(|policy| policy.name == name)
}

impl LimitSettings {
    /// Returns the name of the parameter that sets the initial number of slots. Under `fixed` that
    /// number never changes.
    pub fn first(&self) -> &'static str {
        if self.has("slots") { "slots" } else { "initial" }
    }

    /// Returns the initial number of slots: the value of the parameter for it, clamped to the
    /// bounds.
    pub fn start(&self) -> u32 {
        self.count(self.first()).clamp(self.least(), self.most())
    }

    /// Returns a description of values that contradict each other: a minimum above the maximum, or
    /// an initial value outside the bounds. Returns `None` if there are none.
    pub fn contradiction(&self) -> Option<String> {
        if !self.has("min") || !self.has("max") {
            return None;
        }
        let (min, max, first) = (self.count("min"), self.count("max"), self.first());
        if min > max {
            return Some(alloc::format!("`min` {min} is above `max` {max}"));
        }
        // A policy without a parameter for the initial value chooses that value itself.
        let start = self.has(first).then(|| self.count(first));
        let start = start.filter(|start| !(min..=max).contains(start))?;
        Some(alloc::format!("`{first}` {start} is not between {min} and {max}"))
    }

    /// Returns these settings with `slots` as the initial number of slots. If the parameter does
    /// not accept that number, the settings are returned unchanged.
    #[must_use]
    pub fn starting_with(mut self, slots: u32) -> Self {
        // A number outside the parameter's range makes `set` fail, which changes nothing.
        let _ = self.set(self.first(), &alloc::format!("{slots}"));
        self
    }

    /// Builds the concurrency policy from these settings.
    pub fn limit(&self) -> Box<dyn Limit> {
        (self.policy.build)(self)
    }

    /// Returns the maximum number of slots that the limit can reach. Connections and file
    /// descriptors must suffice for it.
    pub fn most(&self) -> u32 {
        self.count(if self.has("max") { "max" } else { "slots" }).max(self.least())
    }

    /// Returns the minimum and the maximum number of slots. They are equal for a fixed limit.
    pub fn bounds(&self) -> RangeInclusive<u32> {
        let least = if self.has("min") { self.least() } else { self.most() };
        least..=self.most()
    }

    fn least(&self) -> u32 {
        if self.has("min") { self.count("min") } else { 1 }
    }

    fn has(&self, name: &str) -> bool {
        self.policy.parameters.iter().any(|parameter| parameter.name == name)
    }
}

/// Creates the settings of a fixed limit with this number of slots, at least 1.
impl From<u32> for LimitSettings {
    fn from(slots: u32) -> Self {
        let values = [super::Value::Count(slots.clamp(1, MOST))];
        Self { policy: &LIMITS[0], values: values.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_starts_where_its_defaults_say_and_names_its_most() {
        for policy in &LIMITS {
            let settings = policy.settings([]).unwrap();
            assert_eq!(settings.limit().slots(), settings.start());
            assert!(settings.most() >= settings.limit().slots(), "{}", policy.name);
            assert!(settings.bounds().contains(&settings.start()), "{}", policy.name);
        }
    }

    #[test]
    fn a_limit_starts_within_its_bounds() {
        for (bounds, start) in
            [([("min", "20"), ("max", "30")], 20), ([("min", "2"), ("max", "8")], 8)]
        {
            let settings = find_limit("slope").unwrap().settings(bounds).unwrap();
            assert_eq!((settings.start(), settings.limit().slots()), (start, start));
        }
    }

    #[test]
    fn numbers_that_cannot_be_together_are_told() {
        let slope = |given: &[(&str, &str)]| {
            let settings = find_limit("slope").unwrap().settings(given.iter().copied()).unwrap();
            settings.contradiction()
        };
        assert_eq!(slope(&[("initial", "3"), ("max", "3")]), None);
        assert!(slope(&[("initial", "3"), ("max", "2")]).unwrap().contains("between 1 and 2"));
        assert!(slope(&[("min", "5"), ("max", "2")]).unwrap().contains("above"));
        assert_eq!(LimitSettings::from(7).contradiction(), None);
    }

    #[test]
    fn a_number_is_the_fixed_limit_of_that_number() {
        let given = find_limit("fixed").unwrap().settings([("slots", "7")]).unwrap();
        assert_eq!(LimitSettings::from(7), given);
        assert_eq!(LimitSettings::from(0).limit().slots(), 1);
    }
}
