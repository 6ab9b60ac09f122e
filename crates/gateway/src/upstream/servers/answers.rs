//! Which of a server's recent answers were errors (500 or more), and how that compares with the others.
//!
//! **Ejection.** A server stands out when at least [`Options::eject_share`](super::Options) of its recent answers were
//! errors, and at least [`TIMES`] the share of the others. The others' share is the lower median of their shares: two
//! broken servers among four do not hide each other, and servers that all fail alike do not stand out. Fewer than
//! [`LEAST`] recent answers say nothing of a server. Source: Envoy's outlier detection compares success rates with
//! those of the other hosts as well, there by standard deviations.
//!
//! **Load.** An error at once would make its server look idle. So it counts as running for as long as a successful
//! answer takes: the server has no more than its part of the requests until it stands out. In number that is
//! Little's law, as an exponential decay with the mean time of successes.

use bywash_units::{Span, Time};

/// Recent answers without which nothing is said.
const LEAST: f64 = 20.0;

/// Older answers count less with each new one, so that about so many count.
const MOST: f64 = 64.0;

/// The part of an answer that still counts after a second.
const KEPT: f64 = 0.95;

/// How many times the share of the others.
const TIMES: f64 = 5.0;

/// The longest time of a success that is learned from: streams last.
const LONGEST: Span = Span::from_secs(10);

/// The recent answers of one server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    all: f64,
    errors: f64,
    /// Until when older answers have been discounted.
    at: Time,
    /// Errors that count as running, at a moment.
    lasting: f64,
    since: Time,
}

/// A server among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// It has many more errors than they.
    Worse,
    Alike,
    /// There is too little to compare.
    Unknown,
}

/// How long a successful answer takes, of all servers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace(f64);

impl Pace {
    pub(super) fn learn(&mut self, took: Span) {
        let took = took.min(LONGEST).as_secs_f64();
        self.0 = if self.0 == 0.0 { took } else { self.0 + (took - self.0) / 32.0 };
    }
}

impl Answers {
    /// An answer has come that was no error.
    pub(super) fn good(&mut self, now: Time) {
        self.add(now, 0.0);
    }

    /// An error has come, that long after its request was sent.
    pub(super) fn bad(&mut self, now: Time, took: Span, pace: Pace) {
        self.add(now, 1.0);
        let rest = if pace.0 > 0.0 { 1.0 - took.as_secs_f64() / pace.0 } else { 0.0 };
        self.lasting = self.running(now, pace) + rest.max(0.0);
        self.since = now;
    }

    fn add(&mut self, now: Time, error: f64) {
        let seconds = now.since(self.at).as_secs_f64() as i32;
        if seconds > 0 {
            let kept = KEPT.powi(seconds);
            (self.all, self.errors) = (self.all * kept, self.errors * kept);
            self.at = now;
        }
        self.all += 1.0 - self.all / MOST;
        self.errors += error - self.errors / MOST;
    }

    /// Errors that count as running. Nothing is computed where there are none.
    pub(super) fn running(&self, now: Time, pace: Pace) -> f64 {
        if self.lasting == 0.0 || pace.0 == 0.0 {
            return 0.0;
        }
        self.lasting * (-now.since(self.since).as_secs_f64() / pace.0).exp()
    }

    /// The share of errors, if there are answers enough.
    pub(super) fn share(&self) -> Option<f64> {
        (self.all >= LEAST).then(|| self.errors / self.all)
    }
}

/// A share of errors among those of the others; `least`: from which on it can stand out.
pub(super) fn compare(
    share: Option<f64>,
    others: impl Iterator<Item = f64>,
    least: f64,
) -> Compared {
    let (mut shares, mut count) = ([0.0; super::MOST], 0);
    for (place, other) in shares.iter_mut().zip(others) {
        *place = other;
        count += 1;
    }
    let shares = &mut shares[..count];
    shares.sort_unstable_by(f64::total_cmp);
    let median = count.checked_sub(1).map(|last| shares[last / 2]);
    match share.zip(median) {
        Some((share, median)) if share >= least && share >= TIMES * median => Compared::Worse,
        Some(_) => Compared::Alike,
        None => Compared::Unknown,
    }
}
