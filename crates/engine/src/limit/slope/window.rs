//! What is seen of the application while one limit holds.
//!
//! A window is as long as it must be for its mean to be known to a tenth: with exponential services
//! that is a hundred answers. How many it takes is told by the windows before it: one that stopped
//! when it looked precise would stop early by chance, and those that lack heavy requests do. Answers
//! that come in the first moments
//! after the limit has changed are of the limit before, and do not count.

use alloc::vec;
use alloc::vec::Vec;

use bywash_units::{Span, Time};

use super::bases::{Bases, OfClass};
use crate::limit::{Ended, Load, Way};
use crate::request::ClassSet;

/// Answers below which nothing is said.
pub(super) const LEAST: u32 = 10;
/// The most that an answer may count for, as a multiple of one with exponential services.
const WILD: f64 = 20.0;
/// Weight of a window in the spread of answers.
const SPREAD: f64 = 0.3;
/// A window of imprecise answers ends after so many latencies and so long.
const LONG: (f64, Span) = (60.0, Span::from_secs(3));
/// One in ten answers may find nobody waiting in a window that is full.
const FULL: f64 = 0.9;

/// A window that is not over.
#[derive(Debug)]
pub(super) struct Window {
    /// What ends before is of the limit before.
    counts_from: Time,
    answers: u32,
    timed_out: u32,
    found_full: u32,
    sums: Sums,
    of_class: Vec<OfClass>,
    running: u32,
    running_since: Time,
    /// Seconds that requests ran, all together.
    ran: f64,
    /// Square of the relative error of a window of one answer, over the windows of late.
    spread: f64,
}

/// Of latencies x in seconds and bases b of the same requests.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    all: f64,
    x: f64,
    b: f64,
    xx: f64,
    xb: f64,
    bb: f64,
}

/// What a window has shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Mean number of requests that ran.
    pub(super) load: f64,
    /// Mean latency in seconds.
    pub(super) latency: f64,
    /// The same as a multiple of the bases.
    pub(super) inflation: f64,
    /// Square of the relative error of that.
    pub(super) error: f64,
    /// Whether somebody waited for a slot nearly all the time.
    pub(super) full: bool,
    /// The part of the requests that timed out.
    pub(super) timed_out: f64,
    /// Requests that were seen.
    pub(super) requests: u32,
}

impl Window {
    pub(super) fn new() -> Self {
        Self {
            counts_from: Time::ZERO,
            answers: 0,
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

    /// A new window, in which counts what ends `after` this moment or later.
    pub(super) fn begin(&mut self, after: Time) {
        if self.answers >= LEAST {
            let spread = (self.error() * f64::from(self.answers)).min(WILD);
            self.spread += SPREAD * (spread - self.spread);
        }
        self.of_class.fill(OfClass::default());
        self.counts_from = after;
        (self.answers, self.timed_out, self.found_full) = (0, 0, 0);
        (self.sums, self.ran) = (Sums::default(), 0.0);
    }

    /// From now on so many run.
    pub(super) fn runs(&mut self, now: Time, running: u32) {
        let from = self.running_since.max(self.counts_from);
        self.ran += now.since(from).as_secs_f64() * f64::from(self.running);
        (self.running, self.running_since) = (running, now);
    }

    /// A request has ended.
    pub(super) fn ended(&mut self, now: Time, load: Load, ended: Ended, bases: &Bases) {
        if now < self.counts_from || ended.way == Way::Void {
            return;
        }
        self.found_full += u32::from(load.is_full);
        if ended.way == Way::TimedOut {
            self.timed_out += 1;
            return;
        }
        self.answers += 1;
        // A virtual clock may say that it took no time; a mean of that is no divisor.
        let x = ended.took.as_secs_f64().max(1e-9);
        self.sums.all += x;
        let of_class = &mut self.of_class[ended.class.index()];
        of_class.answers += 1;
        of_class.took += x;
        if let Some(b) = bases.of(ended.class) {
            self.sums.add(x, b);
        }
    }

    /// For how long it has counted.
    fn length(&self, now: Time) -> Span {
        now.since(self.counts_from)
    }

    /// Whether it has shown what it can: its mean is as `precise` as wanted (square of the relative
    /// error), or it has lasted long. `least` is the shortest that it may be.
    pub(super) fn is_over(&self, now: Time, least: Span, precise: f64) -> bool {
        let requests = self.requests();
        if requests < LEAST || self.length(now) < least.max(self.latency_times(4.0)) {
            return false;
        }
        let enough = f64::from(self.answers) * precise >= self.spread;
        enough || self.length(now) >= self.latency_times(LONG.0).max(LONG.1)
    }

    pub(super) const fn requests(&self) -> u32 {
        self.answers + self.timed_out
    }

    fn latency(&self) -> f64 {
        self.sums.all / f64::from(self.answers.max(1))
    }

    fn latency_times(&self, times: f64) -> Span {
        Span::from_secs_f64(self.latency() * times)
    }

    fn inflation(&self) -> f64 {
        if self.sums.b > 0.0 { (self.sums.x / self.sums.b).max(1e-6) } else { 1.0 }
    }

    fn error(&self) -> f64 {
        if self.sums.x > 0.0 {
            self.sums.error(self.inflation())
        } else {
            1.0 / f64::from(self.answers.max(1))
        }
    }

    /// What it has shown until now.
    pub(super) fn seen(&mut self, now: Time) -> Seen {
        self.runs(now, self.running);
        let requests = f64::from(self.requests().max(1));
        Seen {
            load: (self.ran / self.length(now).as_secs_f64().max(1e-9)).max(1e-3),
            latency: self.latency(),
            inflation: self.inflation(),
            error: self.error(),
            full: f64::from(self.found_full) >= FULL * requests,
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

    /// Square of the relative error of the ratio R of the sums: Σ(x − R·b)²/(Σx)². Where most
    /// of x is waiting the answers are alike, and chance is in how much work was done meanwhile:
    /// Σb²/(Σb)².
    fn error(&self, ratio: f64) -> f64 {
        let squares = self.xx - 2.0 * ratio * self.xb + ratio * ratio * self.bb;
        (squares / (self.x * self.x)).max(self.bb / (self.b * self.b))
    }
}
