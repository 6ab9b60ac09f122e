//! Throttles of a policy: which classes are throttled, and how.
//!
//! In a gateway, an operator approves a rule for the route that causes the load. In a scenario, the
//! policy names the throttled classes. The engine's module `throttle` defines the effect of a rule.
//! The alternative of paper 5 is a delay [paper 5.6]: the server answers immediately, but the
//! client gets the answer later by the delay.

use bywash_units::{Rate, TimeSpan};
use serde::Deserialize;

use crate::error::ScenarioError;
use crate::text::span;

/// A throttle of one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttle {
    /// The index of the throttled class.
    pub class: usize,
    /// The maximum number of requests of the class that run at the same time; `None` for no
    /// maximum.
    pub max_concurrency: Option<u32>,
    /// The maximum number of requests of the class that start per second; `None` for no maximum.
    pub rate: Option<Rate>,
    /// The maximum number of requests of the class that wait because of the throttle. Further
    /// requests are refused.
    pub queue: u32,
    /// The maximum time that a request waits because of the throttle. A request that would have to
    /// wait longer is refused.
    pub wait: TimeSpan,
    /// The time by which each answer to the class is delayed.
    pub delay: TimeSpan,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSpec {
    class: String,
    #[serde(default)]
    max_concurrency: Option<u32>,
    #[serde(default)]
    rate: Option<f64>,
    #[serde(default)]
    queue: Option<u32>,
    #[serde(default)]
    wait: Option<String>,
    #[serde(default)]
    delay: Option<String>,
}

/// The largest number of concurrent or waiting requests that a scenario file may set.
const MOST: u32 = 100_000;

impl RawSpec {
    pub(crate) fn resolve(
        &self,
        find: impl Fn(&str) -> Result<usize, ScenarioError>,
    ) -> Result<Throttle, ScenarioError> {
        let class = find(&self.class)?;
        let refuse = |why: &str| {
            Err(ScenarioError::Invalid(format!("the throttle of `{}` {why}", self.class)))
        };
        let span = |text: &Option<String>| text.as_deref().map(span).transpose();
        if self.max_concurrency.is_none() && self.delay.is_none() {
            return refuse("needs `max_concurrency` or `delay`");
        }
        let has_lane = self.max_concurrency.is_some();
        if !has_lane && (self.rate.is_some() || self.queue.is_some() || self.wait.is_some()) {
            return refuse("needs `max_concurrency` if it has `rate`, `queue` or `wait`");
        }
        if self.max_concurrency.is_some_and(|many| !(1..=MOST).contains(&many))
            || self.queue.is_some_and(|many| many > MOST)
        {
            return refuse(
                "needs a `max_concurrency` from 1 to 100000 and a `queue` of at most 100000",
            );
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e6)) {
            return refuse("needs a `rate` above 0 and at most 1000000 per second");
        }
        Ok(Throttle {
            class,
            max_concurrency: self.max_concurrency,
            rate: self.rate.map(Rate::per_second),
            queue: self.queue.unwrap_or(100),
            wait: span(&self.wait)?.unwrap_or(TimeSpan::from_secs(10)),
            delay: span(&self.delay)?.unwrap_or(TimeSpan::ZERO),
        })
    }
}
