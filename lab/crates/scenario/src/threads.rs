//! Servers that run requests as tasks on threads.
//!
//! With `[servers.threads]` the workers are processors. A request consists of a number of tasks of
//! equal size, followed by a serial rest (to merge and to answer). The scheduler decides how many
//! threads the request has, and when. Only the simulator supports this.

use bywash_units::TimeSpan;
use serde::Deserialize;

use crate::error::ScenarioError;
use crate::text::span;

/// The scheduler that decides which threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadScheduler {
    /// The operating system. Each request has its threads from the start, and all threads share the
    /// processors evenly [paper 3.1].
    System,
    /// bywash's thread pool with levels of service; each class is one level.
    Levels,
}

/// How requests use the processors through threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Threads {
    /// The scheduler that decides which threads run.
    pub scheduler: ThreadScheduler,
    /// The share of a request's work that one thread does after the tasks, from 0 to 1.
    pub serial: f64,
    /// The goal of the levels of service; `None` without a goal. Only [`ThreadScheduler::Levels`]
    /// can have one.
    pub goal: Option<Promise>,
}

/// A goal of [`ThreadScheduler::Levels`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Promise {
    /// The mean response time of one class divided by that of another is at most `target`.
    Ratio {
        /// The index of the class that should be faster.
        fast: usize,
        /// The index of the class that the faster one is compared with.
        slow: usize,
        /// The maximum of the ratio.
        target: f64,
    },
    /// The goal that at least a share of a class's requests are answered within a time.
    Percentile {
        /// The index of the class.
        class: usize,
        /// The share of the class's requests that must be answered in time, from 0 to 1.
        share: f64,
        /// The maximum response time of these requests.
        within: TimeSpan,
    },
}

/// The structure of a class's requests, and the threads granted to them.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// The number of tasks of a request.
    #[serde(default = "one")]
    pub tasks: u32,
    /// The maximum number of threads that a request may have at a time.
    #[serde(default = "one")]
    pub most: u32,
    /// The minimum number of threads that a request has; used only by [`ThreadScheduler::Levels`].
    #[serde(default = "one")]
    pub least: u32,
    /// The weight by which classes share thread time; used only by [`ThreadScheduler::Levels`].
    #[serde(default = "full")]
    pub weight: f64,
    /// The minimum share of thread time that a class gets while it has work, from 0 to 1; used only
    /// by [`ThreadScheduler::Levels`].
    #[serde(default)]
    pub floor: f64,
}

const fn one() -> u32 {
    1
}

const fn full() -> f64 {
    1.0
}

impl Default for Parallel {
    fn default() -> Self {
        Self { tasks: 1, most: 1, least: 1, weight: 1.0, floor: 0.0 }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSpec {
    scheduler: ThreadScheduler,
    #[serde(default)]
    serial: f64,
    #[serde(default)]
    goal: Option<RawGoal>,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum RawGoal {
    Ratio { fast: String, slow: String, ratio: f64 },
    Percentile { class: String, share: f64, within: String },
}

impl RawSpec {
    pub(crate) fn resolve(
        &self,
        class: impl Fn(&str) -> Result<usize, ScenarioError>,
    ) -> Result<Threads, ScenarioError> {
        let senseless = |why: String| ScenarioError::Invalid(why);
        if !(0.0..1.0).contains(&self.serial) {
            return Err(senseless("servers.threads.serial must be at least 0 and below 1".into()));
        }
        let goal = match &self.goal {
            None => None,
            Some(RawGoal::Ratio { fast, slow, ratio }) => {
                Some(Promise::Ratio { fast: class(fast)?, slow: class(slow)?, target: *ratio })
            }
            Some(RawGoal::Percentile { class: name, share, within }) => {
                let within = span(within)?;
                Some(Promise::Percentile { class: class(name)?, share: *share, within })
            }
        };
        if goal.is_some() && self.scheduler == ThreadScheduler::System {
            let why = "servers.threads: the operating system cannot keep a goal; write scheduler = \
                       \"levels\"";
            return Err(senseless(why.into()));
        }
        Ok(Threads { scheduler: self.scheduler, serial: self.serial, goal })
    }
}

/// Checks the thread settings of a class. Fails with the first invalid one.
pub(crate) fn check(parallel: Parallel, class: &str) -> Result<(), ScenarioError> {
    let Parallel { tasks, most, least, weight, floor } = parallel;
    let right = (1..=1000).contains(&tasks)
        && (1..=1000).contains(&most)
        && (1..=most).contains(&least)
        && (1e-6..=1e6).contains(&weight)
        && (0.0..=1.0).contains(&floor);
    let why = || {
        format!(
            "parallel of `{class}`: tasks and most must be 1 to 1000, least 1 to most, weight 1e-6 \
             to 1e6, and floor 0 to 1"
        )
    };
    if right { Ok(()) } else { Err(ScenarioError::Invalid(why())) }
}
