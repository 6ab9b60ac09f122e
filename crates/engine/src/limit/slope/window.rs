//! Measurements of the application during a window, in which the limit does not change.
//!
//! A window is long enough for its mean latency to be known to a tenth. With exponential service
//! times that takes a hundred answers. The length of a window is derived from earlier windows. A
//! window that ended as soon as it looked precise would end early by chance: windows that lack
//! heavy requests look precise. Answers in the first moments after a change of the limit belong to
//! the earlier limit and do not count.
//!
//! A client may leave before the application has answered. Then the policy knows for how long its
//! request ran, but not for how long it would have run. So the inflation is the total running time
//! of all requests, divided by the sum of the bases of those that were answered. This is the
//! maximum-likelihood estimate for exponential times that are cut off. Answers alone would mislead
//! if the limit is so high that most clients leave: they are the few requests that are quick by
//! chance.

use alloc::vec;
use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};

use super::bases::{Bases, OfClass};
use crate::limit::{Completion, Ended, Load};
use crate::request::ClassSet;

/// The minimum number of answers in a window for a conclusion.
pub(super) const LEAST: u32 = 10;
/// The maximum spread that one window may show (see `Window::spread`). With exponential service
/// times the spread is 1.
const MAX_SPREAD: f64 = 20.0;
/// The weight of the newest window in the smoothed spread.
const SPREAD: f64 = 0.3;
/// The number of mean latencies after which a window ends although its mean is not precise. Such a
/// window lasts for [`MIN_LENGTH`] at least.
const LONG_LATENCIES: f64 = 60.0;
/// The minimum length of a window whose mean is not precise; see [`LONG_LATENCIES`].
const MIN_LENGTH: TimeSpan = TimeSpan::from_secs(3);
/// The minimum fraction of full ends for a window to count as full. An end of a request is full if
/// another request waits for a slot at that moment.
const FULL_WINDOW: f64 = 0.9;

/// A window that has not ended, with its counts so far.
#[derive(Debug)]
pub(super) struct Window {
    /// The time from which on requests count. A request that ends earlier belongs to the earlier
    /// limit.
    counts_from: Time,
    answers: u32,
    /// The number of requests in the window whose clients left before the answer.
    left: u32,
    timed_out: u32,
    found_full: u32,
    sums: Sums,
    of_class: Vec<OfClass>,
    running: u32,
    running_since: Time,
    /// The total running time of all requests in the window, in request-seconds.
    ran: f64,
    /// The square of the relative error of a mean over one answer, smoothed over recent windows.
    /// With n answers the square of the error is an n-th of this.
    spread: f64,
}

/// The sums over the answered requests of a window: of their latencies x and of their bases b, both
/// in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    all: f64,
    x: f64,
    b: f64,
    xx: f64,
    xb: f64,
    bb: f64,
}

/// The results of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// The mean number of requests that ran at once.
    pub(super) load: f64,
    /// The mean latency of the requests in the window, in seconds.
    pub(super) latency: f64,
    /// The inflation: the mean latency as a multiple of the base.
    pub(super) inflation: f64,
    /// The square of the relative error of `inflation`.
    pub(super) error: f64,
    /// Whether another request waited for a slot nearly all the time ([`FULL_WINDOW`]).
    pub(super) full: bool,
    /// The number of requests in the window that were answered.
    pub(super) answers: u32,
    /// The fraction of the window's requests whose clients left before the answer.
    pub(super) left: f64,
    /// The fraction of the window's requests that timed out.
    pub(super) timed_out: f64,
    /// The number of requests in the window that ended, in whatever way.
    pub(super) requests: u32,
}

impl Window {
    pub(super) fn new() -> Self {
        Self {
            counts_from: Time::ZERO,
            answers: 0,
            left: 0,
            timed_out: 0,
            found_full: 0,
            sums: Sums::default(),
            of_class: vec![OfClass::default(); ClassSet::MOST],
            running: 0,
            running_since: Time::ZERO,
            ran: 0.0,
            spread: 1.0,
        }
    }

    /// Ends the present window, learns its spread, and begins a new window. Requests that end
    /// before the time `after` do not count in the new window.
    pub(super) fn begin(&mut self, after: Time) {
        if self.measured() >= LEAST {
            let spread = (self.error() * f64::from(self.measured())).min(MAX_SPREAD);
            self.spread += SPREAD * (spread - self.spread);
        }
        self.of_class.fill(OfClass::default());
        self.counts_from = after;
        (self.answers, self.left, self.timed_out, self.found_full) = (0, 0, 0, 0);
        (self.sums, self.ran) = (Sums::default(), 0.0);
    }

    /// Updates the running time of all requests, and sets the number of requests that run from
    /// `now` on.
    pub(super) fn runs(&mut self, now: Time, running: u32) {
        let from = self.running_since.max(self.counts_from);
        self.ran += now.since(from).as_secs_f64() * f64::from(self.running);
        (self.running, self.running_since) = (running, now);
    }

    /// Counts a request that has ended. Requests that end before `counts_from` are ignored.
    pub(super) fn ended(&mut self, now: Time, load: Load, ended: Ended, bases: &Bases) {
        if now < self.counts_from || ended.completion == Completion::Void {
            return;
        }
        self.found_full += u32::from(load.is_full);
        if ended.completion == Completion::TimedOut {
            self.timed_out += 1;
            return;
        }
        // A virtual clock may show that no time passed, but a later divisor must not be zero.
        let x = ended.took.as_secs_f64().max(1e-9);
        self.sums.all += x;
        let of_class = &mut self.of_class[ended.class.index()];
        of_class.took += x;
        let base = bases.of(ended.class);
        if ended.completion == Completion::Left {
            self.left += 1;
            if base.is_some() {
                self.sums.add_time(x);
            }
            return;
        }
        self.answers += 1;
        of_class.answers += 1;
        if let Some(b) = base {
            self.sums.add(x, b);
        }
    }

    /// Returns the number of requests whose running time is known, even if it was cut off.
    const fn measured(&self) -> u32 {
        self.answers + self.left
    }

    /// Returns for how long the window has been counting.
    fn length(&self, now: Time) -> TimeSpan {
        now.since(self.counts_from)
    }

    /// Returns whether the window is over: its mean is precise, or the window has lasted long
    /// enough although its mean is not precise. `precise` is the square of the relative error to
    /// reach. `least` is the minimum length of the window.
    pub(super) fn is_over(&self, now: Time, least: TimeSpan, precise: f64) -> bool {
        let requests = self.requests();
        if requests < LEAST || self.length(now) < least.max(self.latency_times(4.0)) {
            return false;
        }
        let enough = f64::from(self.measured()) * precise >= self.spread;
        enough || self.length(now) >= self.latency_times(LONG_LATENCIES).max(MIN_LENGTH)
    }

    pub(super) const fn requests(&self) -> u32 {
        self.measured() + self.timed_out
    }

    /// Returns the mean latency of the requests so far, in seconds.
    fn latency(&self) -> f64 {
        self.sums.all / f64::from(self.measured().max(1))
    }

    fn latency_times(&self, times: f64) -> TimeSpan {
        TimeSpan::from_secs_f64(self.latency() * times)
    }

    fn inflation(&self) -> f64 {
        if self.sums.b > 0.0 { (self.sums.x / self.sums.b).max(1e-6) } else { 1.0 }
    }

    fn error(&self) -> f64 {
        if self.sums.x > 0.0 {
            self.sums.error(self.inflation())
        } else {
            1.0 / f64::from(self.measured().max(1))
        }
    }

    /// Returns the results of the window up to `now`.
    pub(super) fn seen(&mut self, now: Time) -> Seen {
        self.runs(now, self.running);
        let requests = f64::from(self.requests().max(1));
        Seen {
            load: (self.ran / self.length(now).as_secs_f64().max(1e-9)).max(1e-3),
            latency: self.latency(),
            inflation: self.inflation(),
            error: self.error(),
            full: f64::from(self.found_full) >= FULL_WINDOW * requests,
            answers: self.answers,
            left: f64::from(self.left) / requests,
            timed_out: f64::from(self.timed_out) / requests,
            requests: self.requests(),
        }
    }

    pub(super) fn of_class(&self) -> &[OfClass] {
        &self.of_class
    }
}

impl Sums {
    fn add(&mut self, x: f64, b: f64) {
        self.x += x;
        self.b += b;
        self.xx += x * x;
        self.xb += x * b;
        self.bb += b * b;
    }

    /// Adds a request whose client left after `x` seconds. Its running time counts, but no answer
    /// does.
    fn add_time(&mut self, x: f64) {
        self.x += x;
        self.xx += x * x;
    }

    /// Returns the square of the relative error of R, the ratio of Σx to Σb. x is the latency of a
    /// request and b its base. The result is Σ(x − R·b)²/(Σx)², and at least Σb²/(Σb)². The second
    /// term matters if most of x is waiting. Then latencies are alike, and chance lies in the
    /// amount of work that was done in the meantime.
    fn error(&self, ratio: f64) -> f64 {
        let squares = self.xx - 2.0 * ratio * self.xb + ratio * ratio * self.bb;
        let least = if self.b > 0.0 { self.bb / (self.b * self.b) } else { 1.0 };
        (squares / (self.x * self.x)).max(least)
    }
}
