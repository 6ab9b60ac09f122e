//! What a rule says.

use std::ops::RangeInclusive;

use bywash_engine::throttle;
use bywash_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::elephant::{Elephant, Resource};
use crate::text;

/// What a rule grants the elephants that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    #[schemars(with = "String")]
    pub wait: Span,
    /// Bytes a second of all their answers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What a limit is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Limit<T> {
    /// So much.
    At(T),
    /// There is to be none.
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

/// `null` says something, and is not the same as nothing.
fn limit<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Limit<T>>, D::Error> {
    Ok(Some(Option::deserialize(from)?.map_or(Limit::Gone, Limit::At)))
}

/// What of a rule is to be otherwise than it would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// How many may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// How many may start in a second; `null`: as many as there is room for.
    #[serde(default, deserialize_with = "limit", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub rate: Option<Limit<f64>>,
    /// How many may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// How long, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Bytes a second; `null`: as many as go out.
    #[serde(default, deserialize_with = "limit", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub bytes: Option<Limit<u64>>,
}

impl Grants {
    /// What holds back the use of the resource that they fill, and what is usual otherwise:
    ///
    /// - Processors: as many at once as there are.
    /// - Bytes: as many a second as others leave of four fifths of the line, and a tenth of it at least. Each that runs
    ///   keeps a slot for as long as its answer takes, so there are few.
    /// - Slots: a fifth of them.
    /// - Others: one at once. What that does a trial has to show.
    pub fn proposed(elephant: &Elephant) -> Self {
        let whole = |number: f64| number.clamp(1.0, f64::from(Self::MOST)) as u32;
        let (at_once, bytes) = match elephant.consists_of {
            Resource::Processors => (whole(elephant.capacity.ceil()), None),
            Resource::Slots => (whole(elephant.capacity * Self::SLOTS), None),
            Resource::Bytes => (Self::ANSWERS, Some(Self::left(elephant))),
            Resource::Other => (1, None),
        };
        let usual = throttle::Rule::at_once(at_once);
        Self { at_once: usual.at_once, rate: None, queue: usual.queue, wait: usual.wait, bytes }
    }

    /// Bytes a second that others leave.
    fn left(elephant: &Elephant) -> u64 {
        let others = elephant.used * (1.0 - elephant.share);
        let left = elephant.capacity * (Self::LINE - others).max(Self::LEAST);
        (left as u64).clamp(*Self::BYTES.start(), *Self::BYTES.end())
    }

    /// Answers that go out at once.
    const ANSWERS: u32 = 8;
    /// Part of the slots.
    const SLOTS: f64 = 0.2;
    /// Of a line, what may be full.
    const LINE: f64 = 0.8;
    /// Of a line, what those have at least that are held back.
    const LEAST: f64 = 0.1;
    const MOST: u32 = 100_000;
    /// Bytes a second that can be kept to.
    const BYTES: RangeInclusive<u64> = 8_000..=4_000_000_000;

    /// These, but for what is to be otherwise.
    pub(crate) fn changed(self, change: Change) -> Self {
        Self {
            at_once: change.at_once.unwrap_or(self.at_once),
            rate: change.rate.map_or(self.rate, Limit::get),
            queue: change.queue.unwrap_or(self.queue),
            wait: change.wait_ms.map_or(self.wait, Span::from_millis),
            bytes: change.bytes.map_or(self.bytes, Limit::get),
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
