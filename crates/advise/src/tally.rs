//! Counts of the requests of one template.

use bywash_units::TimeSpan;
use serde::Serialize;

use crate::request::{End, Request};
use crate::times::Times;

/// The number of levels of load; each is twice the one before.
pub(crate) const LEVELS: usize = 24;
/// The most bytes of a target that is kept as an example.
const SHOWN: usize = 200;

/// Fewer redirections may be chance, such as those to a login.
const SOME: u64 = 3;
/// If fewer than one of this many answers are redirections, they may be those to a login as well.
const ONE_OF: u64 = 10;

/// Answers to visitors' requests of one template with an unsafe method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Answers {
    /// Answers with 200.
    pub(crate) shown: u64,
    /// Answers with 302 or 303.
    pub(crate) redirected: u64,
}

impl Answers {
    fn add(&mut self, status: u16) {
        self.shown += u64::from(status == 200);
        self.redirected += u64::from(matches!(status, 302 | 303));
    }

    /// Returns whether only a redirection is an order, because some answers are redirections and
    /// others are pages.
    pub(crate) fn differ_by_redirection(self) -> bool {
        let Self { shown, redirected } = self;
        shown > 0 && redirected >= SOME && ONE_OF * redirected >= shown + redirected
    }
}

/// Counts of one template.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    /// Requests of robots.
    pub(crate) robots: u64,
    /// Successful requests of visitors.
    pub(crate) success: u64,
    /// Requests that were refused, failed, or were answered with 5xx.
    pub(crate) errors: u64,
    /// Requests whose client left.
    pub(crate) left: u64,
    /// Requests for files.
    pub(crate) files: u64,
    /// Requests with an unsafe method.
    pub(crate) unsafe_: u64,
    pub(crate) answers: Answers,
    pub(crate) service: Times,
    /// The number of requests and their total seconds, by level of load.
    pub(crate) levels: Box<[(u64, f64); LEVELS]>,
    /// Method and target of one request.
    pub(crate) sample: Option<(Box<str>, Box<str>)>,
}

impl Tally {
    /// Adds a request at this level of load.
    pub(crate) fn add(&mut self, request: &Request<'_>, is_file: bool, level: usize) {
        self.requests += 1;
        let is_visit = !request.is_of_robot();
        self.robots += u64::from(!is_visit);
        self.success += u64::from(is_visit && request.is_success());
        self.files += u64::from(is_file);
        self.unsafe_ += u64::from(!request.is_safe());
        if let End::Answered(status) = request.end
            && is_visit
            && !request.is_safe()
        {
            self.answers.add(status);
        }
        match request.end {
            End::Refused | End::Failed | End::Answered(500..) => self.errors += 1,
            End::Left => self.left += 1,
            End::Answered(_) | End::Untold => {
                if let Some(service) = request.service {
                    self.service.add(service);
                    let (count, sum) = &mut self.levels[level.min(LEVELS - 1)];
                    *count += 1;
                    *sum += service.as_secs_f64();
                }
            }
        }
        if self.sample.is_none() && request.is_good() {
            let target = request.target;
            if target.len() <= SHOWN {
                self.sample = Some((request.method.into(), target.into()));
            }
        }
    }

    /// Adds the counts of another template.
    pub(crate) fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        self.robots += other.robots;
        self.success += other.success;
        self.errors += other.errors;
        self.left += other.left;
        self.files += other.files;
        self.unsafe_ += other.unsafe_;
        self.answers.shown += other.answers.shown;
        self.answers.redirected += other.answers.redirected;
        self.service.merge(other.service);
        for (own, others) in self.levels.iter_mut().zip(other.levels.iter()) {
            own.0 += others.0;
            own.1 += others.1;
        }
        self.sample = self.sample.take().or(other.sample);
    }

    /// Returns the number of requests that are not of robots.
    pub(crate) const fn visits(&self) -> u64 {
        self.requests - self.robots
    }

    /// Returns the number of orders if this is the template of the order.
    pub(crate) fn orders(&self) -> u64 {
        if self.answers.differ_by_redirection() { self.answers.redirected } else { self.success }
    }

    /// Returns whether most requests are for files.
    pub(crate) fn is_file(&self) -> bool {
        2 * self.files > self.requests
    }

    /// Returns the mean service time in seconds; 0 if none is known.
    pub(crate) fn mean(&self) -> f64 {
        let (count, sum) =
            self.levels.iter().fold((0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        if count == 0 { 0.0 } else { sum / count as f64 }
    }

    /// Returns the mean service time at or below this level of load; over all levels if there were
    /// too few.
    pub(crate) fn light(&self, level: usize) -> Option<TimeSpan> {
        const ENOUGH: u64 = 10;
        let some = self.levels.iter().take(level + 1);
        let (count, sum) = some.fold((0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        if count >= ENOUGH {
            return Some(TimeSpan::from_secs_f64(sum / count as f64));
        }
        self.service.mean()
    }
}
