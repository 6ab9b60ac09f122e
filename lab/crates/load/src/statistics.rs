//! The statistics of one live run: the counts of requests, the load generator's lag, and the load
//! generator's own failures.

use bywash_scenario::{Attempt, Ending, Of, Scenario, Tally, Visitor};
use bywash_units::{Time, TimeSpan};
use hdrhistogram::Histogram;

use crate::verdict::Flaws;

/// The progress of a run. Its counts are over all classes, since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// The time since the run began.
    pub elapsed: TimeSpan,
    /// The offered load ρ now; 0 after the last arrival.
    pub rho_now: f64,
    /// The number of visitors whose session is in progress.
    pub active: u64,
    /// The number of requests made, retries included.
    pub generated: u64,
    /// The number of requests answered while the client waited.
    pub completed: u64,
    /// The number of requests that clients gave up.
    pub timed_out: u64,
    /// The number of requests that the server side refused.
    pub dropped: u64,
    /// The number of requests that the server side stopped while they ran.
    pub terminated: u64,
    /// The number of requests answered with an error or not at all.
    pub failed: u64,
    /// The number of orders confirmed.
    pub orders: u64,
}

/// An order that a visitor saw confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// The number of the visitor.
    pub visitor: u64,
    /// The response time of the confirmation.
    pub response: TimeSpan,
}

/// The statistics of a run, while it is in progress.
#[derive(Debug)]
pub(crate) struct Statistics {
    pub(crate) tally: Tally,
    pub(crate) flaws: Flaws,
    /// The orders that visitors saw confirmed.
    pub(crate) confirmed: Vec<Confirmed>,
    /// The lag of all actions: the time from when an action is due until it is executed, in
    /// microseconds.
    lag: Histogram<u64>,
    counts: Progress,
}

impl Statistics {
    pub(crate) fn new(tally: Tally) -> Self {
        // The range is 1 µs to an hour, at two significant digits.
        let lag = Histogram::new_with_bounds(1, 3_600_000_000, 2)
            .expect("constant bounds, low < high, 2 digits");
        Self {
            tally,
            flaws: Flaws::default(),
            confirmed: Vec::new(),
            lag,
            counts: Progress::default(),
        }
    }

    /// Records that a visitor arrives at `start`, while the offered load is `rho_now`.
    pub(crate) fn session(
        &mut self,
        scenario: &Scenario,
        visitor: &Visitor,
        start: Time,
        rho_now: f64,
    ) {
        self.counts.active += 1;
        self.tally.session(scenario, visitor, start, rho_now);
    }

    /// Records that a visitor is gone. `not_generated` of the visitor's planned requests were never
    /// made.
    pub(crate) fn session_over(&mut self, not_generated: u64) {
        self.counts.active -= 1;
        self.tally.session_over(not_generated);
    }

    /// Records that a session ended before the run was over. `lasted` is its duration.
    pub(crate) fn session_ended(&mut self, lasted: TimeSpan) {
        self.tally.session_ended(lasted);
    }

    /// Records that an action was executed `lag` after it was due.
    pub(crate) fn record_lag(&mut self, lag: TimeSpan) {
        self.lag.saturating_record(lag.as_micros());
    }

    /// Returns the lag of the load generator at `quantile`, from 0 to 1.
    pub(crate) fn lag(&self, quantile: f64) -> TimeSpan {
        TimeSpan::from_micros(self.lag.value_at_quantile(quantile))
    }

    /// Records that a request of `class` is made at `at`.
    pub(crate) fn generated(&mut self, class: usize, at: Time) {
        self.counts.generated += 1;
        self.tally.generated(class, at);
    }

    /// Records the end of a request at `at`. `response` is the time since the request was due.
    pub(crate) fn ended(
        &mut self,
        attempt: &Attempt,
        at: Time,
        response: TimeSpan,
        ending: Ending,
    ) {
        let count = match ending {
            Ending::Completed => &mut self.counts.completed,
            Ending::TimedOut => &mut self.counts.timed_out,
            Ending::Dropped => &mut self.counts.dropped,
            Ending::Terminated => &mut self.counts.terminated,
            Ending::Failed => &mut self.counts.failed,
        };
        *count += 1;
        let of = Of { class: attempt.class, order: attempt.order };
        self.tally.ended(of, at, response, ending);
        if ending == Ending::Completed {
            self.tally.useful(at, attempt.demand);
        }
    }

    /// Records the target's total busy time before and after the run; `None` if the target does not
    /// report it.
    pub(crate) fn busy(&mut self, before_and_after: Option<(TimeSpan, TimeSpan)>) {
        match before_and_after {
            Some((before, after)) => {
                let worked = after.as_nanos().saturating_sub(before.as_nanos());
                self.tally.worked(TimeSpan::from_nanos(worked));
            }
            None => self.tally.wasted_unknown(),
        }
    }

    /// Returns the progress of the run at the time `elapsed` since its start.
    pub(crate) fn progress(&self, elapsed: TimeSpan, rho_now: f64) -> Progress {
        Progress { elapsed, rho_now, orders: self.tally.orders(), ..self.counts }
    }
}
