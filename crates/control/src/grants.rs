//! What a rule says.

use std::ops::RangeInclusive;

use bywash_engine::throttle;
use bywash_units::{Rate, Span};
use serde::{Deserialize, Serialize};

use crate::elephant::Elephant;
use crate::text;

/// What a rule grants the elephants that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grants {
    /// How many may run at once.
    pub at_once: u32,
    /// How many may start in a second; as many as there is room for if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// How many may wait.
    pub queue: u32,
    /// Who would have to wait longer is refused.
    #[serde(with = "text")]
    pub wait: Span,
    /// Bytes a second of all their answers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What of a rule is to be otherwise than it would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// How many may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// How many may start in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// How many may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// How long, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl Grants {
    /// As many at once as the resource has processors, and what is usual otherwise.
    pub fn proposed(elephant: &Elephant) -> Self {
        let processors = elephant.capacity.ceil().clamp(1.0, f64::from(Self::MOST)) as u32;
        let usual = throttle::Rule::at_once(processors);
        Self {
            at_once: usual.at_once,
            rate: None,
            queue: usual.queue,
            wait: usual.wait,
            bytes: None,
        }
    }

    const MOST: u32 = 100_000;
    /// Bytes a second that can be kept to.
    const BYTES: RangeInclusive<u64> = 8_000..=4_000_000_000;

    /// These, but for what is to be otherwise.
    pub(crate) fn changed(self, change: Change) -> Self {
        Self {
            at_once: change.at_once.unwrap_or(self.at_once),
            rate: change.rate.or(self.rate),
            queue: change.queue.unwrap_or(self.queue),
            wait: change.wait_ms.map_or(self.wait, Span::from_millis),
            bytes: change.bytes.or(self.bytes),
        }
    }

    /// What is wrong with them, if anything is.
    pub fn wrong(&self) -> Option<&'static str> {
        if !(1..=Self::MOST).contains(&self.at_once) {
            Some("1 to 100000 may run at once")
        } else if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e6)) {
            Some("a rate is above 0 and up to 1000000 a second")
        } else if self.queue > Self::MOST {
            Some("up to 100000 may wait")
        } else if self.wait > Span::from_secs(3600) {
            Some("nobody waits longer than an hour (1h)")
        } else if self.bytes.is_some_and(|bytes| !Self::BYTES.contains(&bytes)) {
            Some("8000 to 4000000000 bytes a second may go through")
        } else {
            None
        }
    }

    /// As the engine knows them.
    pub fn rule(&self) -> throttle::Rule {
        throttle::Rule {
            at_once: self.at_once,
            rate: self.rate.map(Rate::per_second),
            queue: self.queue,
            wait: self.wait,
        }
    }
}
