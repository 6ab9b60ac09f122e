//! The summary of the last 15 minutes: few numbers, so that a gateway can send them to another one.

use bywash_engine::Outcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::row::Row;

/// The length of a step in milliseconds.
const STEP_MS: u64 = 10_000;

/// The requests of all classes over the last 15 minutes, in steps of ten seconds. All lists have
/// the same length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistorySummary {
    /// The length of a step in seconds.
    pub step_s: u32,
    /// The wall-clock time at the end of each step, in milliseconds since 1970. It is a multiple of
    /// the length, so that the steps of several gateways have the same times. Steps in which the
    /// gateway read no counts are missing. After the clock was set back, times occur again.
    pub at_ms: Vec<u64>,
    /// The number of requests per second that were answered, in time or late.
    pub answered_per_s: Vec<f32>,
    /// The number of requests per second with the outcome `shed`, `throttled` or `expired`.
    pub refused_per_s: Vec<f32>,
    /// The mean number of requests that waited for a slot.
    pub waiting: Vec<f32>,
}

/// The sums over the rows of one step.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// The wall-clock time at the end of the step, in milliseconds since 1970.
    at: u64,
    rows: u64,
    /// The total length of the rows, in milliseconds.
    lasted: u64,
    answered: u64,
    refused: u64,
    waiting: u64,
}

impl HistorySummary {
    /// Summarizes rows of one second. Leaves out the step of the last row, because it may not have
    /// ended yet.
    pub(crate) fn of<'r>(rows: impl Iterator<Item = &'r Row>) -> Self {
        let mut summary = Self { step_s: (STEP_MS / 1000) as u32, ..Self::default() };
        let mut step = Step::default();
        for row in rows {
            // A stored row may have any time.
            let at = row.at.div_ceil(STEP_MS).saturating_mul(STEP_MS);
            if at != step.at {
                summary.push(step);
                step = Step { at, ..Step::default() };
            }
            step.add(row);
        }
        summary
    }

    fn push(&mut self, step: Step) {
        if step.rows == 0 {
            return;
        }
        let per_s = |count: u64| (count as f64 * 1e3 / step.lasted.max(1) as f64) as f32;
        self.at_ms.push(step.at);
        self.answered_per_s.push(per_s(step.answered));
        self.refused_per_s.push(per_s(step.refused));
        self.waiting.push((step.waiting as f64 / step.rows as f64) as f32);
    }
}

impl Step {
    fn add(&mut self, row: &Row) {
        self.rows += 1;
        self.lasted += u64::from(row.lasted);
        self.waiting += u64::from(row.gauges.engine.waiting);
        for (_, class) in &row.classes {
            for (outcome, count) in Outcome::ALL.into_iter().zip(class.outcomes) {
                match outcome {
                    Outcome::Served | Outcome::Late => self.answered += u64::from(count),
                    Outcome::Shed | Outcome::Throttled | Outcome::Expired => {
                        self.refused += u64::from(count);
                    }
                    Outcome::Terminated | Outcome::Orphaned | Outcome::UpstreamError => {}
                }
            }
        }
    }
}
