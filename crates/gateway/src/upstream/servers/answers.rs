//! The fraction of errors (500 or more) among a server's recent responses, and its comparison with
//! the other servers.
//!
//! **Ejection.** A server stands out when at least [`Options::eject_share`](super::Options) of its
//! recent responses were errors, and its fraction is at least [`TIMES`] that of the others. The
//! others' fraction is the lower median of their fractions. So two broken servers among four do not
//! hide each other, and servers that all fail alike do not stand out. Fewer than [`LEAST`] recent
//! responses say nothing about a server. Source: Envoy's outlier detection also compares success
//! rates with those of the other hosts, by standard deviations.
//!
//! **Load.** A fast error would make its server look idle. So an error counts as running for as
//! long as a successful response takes, and the server gets no more than its share of the requests
//! until it stands out. In number that is Little's law, as an exponential decay with the mean time
//! of successes.

use bywash_units::{Time, TimeSpan};

/// The number of recent responses below which no fraction is computed.
const LEAST: f64 = 20.0;

/// The weight of older responses decreases with each new one, so that about this many count.
const MOST: f64 = 64.0;

/// The fraction of a response's weight that is left after a second.
const KEPT: f64 = 0.95;

/// The minimum ratio to the others' fraction.
const TIMES: f64 = 5.0;

/// The longest time of a success that the mean takes into account, because streams last.
const LONGEST: TimeSpan = TimeSpan::from_secs(10);

/// The recent responses of one server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    all: f64,
    errors: f64,
    /// The time up to which older responses have been discounted.
    at: Time,
    /// The number of errors that counted as running at the time `since`.
    lasting: f64,
    since: Time,
}

/// The result of comparing a server with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// The server has many more errors than the others.
    Worse,
    Alike,
    /// There is too little to compare.
    Unknown,
}

/// The mean time of a successful response in seconds, over all servers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServiceTime(f64);

impl ServiceTime {
    pub(super) fn learn(&mut self, took: TimeSpan) {
        let took = took.min(LONGEST).as_secs_f64();
        self.0 = if self.0 == 0.0 { took } else { self.0 + (took - self.0) / 32.0 };
    }
}

impl Answers {
    /// Records a response that was not an error.
    pub(super) fn good(&mut self, now: Time) {
        self.add(now, 0.0);
    }

    /// Records an error that came `took` after its request was sent.
    pub(super) fn bad(&mut self, now: Time, took: TimeSpan, service_time: ServiceTime) {
        self.add(now, 1.0);
        let rest =
            if service_time.0 > 0.0 { 1.0 - took.as_secs_f64() / service_time.0 } else { 0.0 };
        self.lasting = self.running(now, service_time) + rest.max(0.0);
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

    /// Returns the number of errors that count as running. Nothing is computed if there are none.
    pub(super) fn running(&self, now: Time, service_time: ServiceTime) -> f64 {
        if self.lasting == 0.0 || service_time.0 == 0.0 {
            return 0.0;
        }
        self.lasting * (-now.since(self.since).as_secs_f64() / service_time.0).exp()
    }

    /// Returns the fraction of errors, if there are enough responses.
    pub(super) fn share(&self) -> Option<f64> {
        (self.all >= LEAST).then(|| self.errors / self.all)
    }
}

/// Compares a fraction of errors with those of the others. `least`: the fraction from which on it
/// can stand out.
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
