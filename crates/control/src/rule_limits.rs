//! The content of a rule: the limits that it sets.

use std::ops::RangeInclusive;

use bywash_engine::throttle;
use bywash_units::{Rate, TimeSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::elephant::{Elephant, Resource};
use crate::text;

/// The limits that a rule sets for the requests that it applies to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleLimits {
    /// The maximum number of requests that run at once.
    pub max_concurrency: u32,
    /// The maximum number of requests that start per second. If absent, there is no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The maximum number of requests that wait.
    pub queue: u32,
    /// The maximum time that a request waits. A request that would have to wait longer is rejected.
    #[serde(with = "text")]
    #[schemars(with = "String")]
    pub wait: TimeSpan,
    /// The maximum number of bytes per second of all responses together. If absent, there is no
    /// such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// A new value for an optional limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Limit<T> {
    /// The limit is set to this value.
    At(T),
    /// The limit is removed.
    Gone,
}

impl<T: Copy> Limit<T> {
    const fn get(self) -> Option<T> {
        match self {
            Self::At(limit) => Some(limit),
            Self::Gone => None,
        }
    }
}

/// Deserializes a limit whose field is present. The value `null` removes the limit, whereas an
/// absent field leaves it as it is.
fn limit<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Limit<T>>, D::Error> {
    Ok(Some(Option::deserialize(from)?.map_or(Limit::Gone, Limit::At)))
}

/// Changes to the limits of a rule. An absent field leaves its limit as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The maximum number of requests that run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// The maximum number of requests that start per second. `null` removes the limit.
    #[serde(default, deserialize_with = "limit", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub rate: Option<Limit<f64>>,
    /// The maximum number of requests that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// The maximum time that a request waits, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// The maximum number of bytes per second of all responses together. `null` removes the limit.
    #[serde(default, deserialize_with = "limit", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub bytes: Option<Limit<u64>>,
}

impl RuleLimits {
    /// Returns the limits that bywash proposes. One of them restricts the use of the resource that
    /// the elephant fills; the others have default values.
    ///
    /// - Processors: as many requests at once as there are processors.
    /// - Bytes: four fifths of the line's capacity minus the use by other requests, but at least a
    ///   tenth of the capacity. Few requests may run at once, because each keeps a slot until its
    ///   response is complete.
    /// - Slots: a fifth of the slots.
    /// - Other resources: one request at once. The effect has to be measured by a trial.
    pub fn proposed(elephant: &Elephant) -> Self {
        let whole = |number: f64| number.clamp(1.0, f64::from(Self::MOST)) as u32;
        let (max_concurrency, bytes) = match elephant.consists_of {
            Resource::Processors => (whole(elephant.capacity.ceil()), None),
            Resource::Slots => (whole(elephant.capacity * Self::SLOTS), None),
            Resource::Bytes => (Self::ANSWERS, Some(Self::left(elephant))),
            Resource::Other => (1, None),
        };
        let usual = throttle::Rule::max_concurrency(max_concurrency);
        Self {
            max_concurrency: usual.max_concurrency,
            rate: None,
            queue: usual.queue,
            wait: usual.wait,
            bytes,
        }
    }

    /// Returns the proposed limit on the bytes of all responses together, in bytes per second.
    fn left(elephant: &Elephant) -> u64 {
        let others = elephant.used * (1.0 - elephant.share);
        let left = elephant.capacity * (Self::MAX_LINE_SHARE - others).max(Self::MIN_LINE_SHARE);
        (left as u64).clamp(*Self::BYTES.start(), *Self::BYTES.end())
    }

    /// The proposed number of responses that are sent at once, for a rule that limits bytes.
    const ANSWERS: u32 = 8;
    /// The proposed fraction of all slots, for a rule that limits slots.
    const SLOTS: f64 = 0.2;
    /// The fraction of a line that all requests together may use.
    const MAX_LINE_SHARE: f64 = 0.8;
    /// The minimum fraction of a line that the requests under a rule get.
    const MIN_LINE_SHARE: f64 = 0.1;
    const MOST: u32 = 100_000;
    /// The range of byte limits that the gateway can apply, in bytes per second.
    const BYTES: RangeInclusive<u64> = 8_000..=4_000_000_000;

    /// Returns these limits with `change` applied.
    pub(crate) fn changed(self, change: Change) -> Self {
        Self {
            max_concurrency: change.max_concurrency.unwrap_or(self.max_concurrency),
            rate: change.rate.map_or(self.rate, Limit::get),
            queue: change.queue.unwrap_or(self.queue),
            wait: change.wait_ms.map_or(self.wait, TimeSpan::from_millis),
            bytes: change.bytes.map_or(self.bytes, Limit::get),
        }
    }

    /// Returns why these limits are invalid; `None` if they are valid.
    pub fn wrong(&self) -> Option<&'static str> {
        if !(1..=Self::MOST).contains(&self.max_concurrency) {
            Some("1 to 100000 requests may run at once")
        } else if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e6)) {
            Some("a rate must be above 0 and at most 1000000 a second")
        } else if self.queue > Self::MOST {
            Some("at most 100000 requests may wait")
        } else if self.wait > TimeSpan::from_secs(3600) {
            Some("a request may wait an hour (1h) at most")
        } else if self.bytes.is_some_and(|bytes| !Self::BYTES.contains(&bytes)) {
            Some("the limit on bytes must be from 8000 to 4000000000 a second")
        } else {
            None
        }
    }

    /// Returns the limits on waiting and running requests, in the engine's form.
    pub fn rule(&self) -> throttle::Rule {
        throttle::Rule {
            max_concurrency: self.max_concurrency,
            rate: self.rate.map(Rate::per_second),
            queue: self.queue,
            wait: self.wait,
        }
    }
}
