//! The counts of the requests of one template.

use bywash_units::TimeSpan;
use serde::Serialize;

use crate::request::{End, Request};
use crate::times::Times;

/// The number of levels of load. Each level stands for twice the load of the one before.
pub(crate) const LEVELS: usize = 24;
/// The maximum length in bytes of a target that is kept as a sample.
const SHOWN: usize = 200;

/// The minimum number of redirections that count. Fewer may be chance, such as redirections to a
/// login.
const MIN_REDIRECTIONS: u64 = 3;
/// The maximum ratio of answers to redirections. Beyond it, the redirections may lead to a login.
const LOGIN_REDIRECTION_RATIO: u64 = 10;

/// The answers to visitors' requests of one template, by status. Only requests with an unsafe
/// method count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Answers {
    /// The number of answers with status 200.
    pub(crate) shown: u64,
    /// The number of answers with status 302 or 303.
    pub(crate) redirected: u64,
}

impl Answers {
    fn add(&mut self, status: u16) {
        self.shown += u64::from(status == 200);
        self.redirected += u64::from(matches!(status, 302 | 303));
    }

    /// Returns whether the answers suggest that only redirections are orders. They do if at least a
    /// tenth of the answers are redirections, and others are pages.
    pub(crate) fn differ_by_redirection(self) -> bool {
        let Self { shown, redirected } = self;
        shown > 0
            && redirected >= MIN_REDIRECTIONS
            && LOGIN_REDIRECTION_RATIO * redirected >= shown + redirected
    }
}

/// The counts of one template.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    /// The number of requests by robots.
    pub(crate) robots: u64,
    /// The number of successful requests by visitors.
    pub(crate) success: u64,
    /// The number of requests that were refused, failed, or were answered with 5xx.
    pub(crate) errors: u64,
    /// The number of requests whose client left.
    pub(crate) left: u64,
    pub(crate) files: u64,
    /// The number of requests with an unsafe method.
    pub(crate) unsafe_: u64,
    pub(crate) answers: Answers,
    pub(crate) service: Times,
    /// The number of requests with a known service time, and its total in seconds, by level of
    /// load.
    pub(crate) levels: Box<[(u64, f64); LEVELS]>,
    /// The method and the target of one request, as a sample.
    pub(crate) sample: Option<(Box<str>, Box<str>)>,
}

impl Tally {
    /// Adds a request. `level` is the level of load at its arrival.
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

    /// Adds the counts of another template, which is merged into this one.
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

    /// Returns the number of requests by visitors, without those by robots.
    pub(crate) const fn visits(&self) -> u64 {
        self.requests - self.robots
    }

    /// Returns the number of orders, if this is the template of the order.
    pub(crate) fn orders(&self) -> u64 {
        if self.answers.differ_by_redirection() { self.answers.redirected } else { self.success }
    }

    /// Returns whether most requests of the template are for files.
    pub(crate) fn is_file(&self) -> bool {
        2 * self.files > self.requests
    }

    /// Returns the mean service time in seconds; 0 if none is known.
    pub(crate) fn mean(&self) -> f64 {
        let (count, sum) =
            self.levels.iter().fold((0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        if count == 0 { 0.0 } else { sum / count as f64 }
    }

    /// Returns the mean service time of requests at this level of load or below. If there are too
    /// few such requests, returns the mean over all levels. Returns `None` if no service time is
    /// known.
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
