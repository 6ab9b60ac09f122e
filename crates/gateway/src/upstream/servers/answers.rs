//! The fraction of errors (status 500 or more) among a server's recent responses, and its
//! comparison with those of the other servers.
//!
//! **Ejection.** A server compares as worse if both conditions hold:
//! - At least [`Options::eject_share`](super::Options) of its recent responses were errors.
//! - This fraction is at least [`TIMES`] the fraction of the others, which is the lower median of
//!   their fractions.
//!
//! Therefore two broken servers among four do not hide each other, and servers that all fail alike
//! do not compare as worse. Fewer than [`LEAST`] recent responses say nothing about a server.
//! Source: Envoy's outlier detection also compares success rates with those of the other hosts, by
//! standard deviations.
//!
//! **Load.** A fast error would make its server look idle. So an error counts as running for as
//! long as a successful response takes. Until it is ejected, the server then gets no more than its
//! share of the requests. By Little's law, the number of errors that count as running decays
//! exponentially with the mean time of successes.

use bywash_units::{Time, TimeSpan};

/// The minimum sum of the weights of the recent responses for which a fraction is computed.
const LEAST: f64 = 20.0;

/// The maximum sum of the weights of the recent responses. Each new response reduces the weight of
/// the older ones.
const MOST: f64 = 64.0;

/// The fraction of a response's weight that is left one second later.
const KEPT: f64 = 0.95;

/// The minimum ratio of a server's fraction of errors to that of the others for the server to
/// compare as worse.
const TIMES: f64 = 5.0;

/// The maximum time with which a success enters the mean. Streams may last much longer.
const LONGEST: TimeSpan = TimeSpan::from_secs(10);

/// The weighted counts of one server's recent responses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    all: f64,
    errors: f64,
    /// The time up to which the weights of older responses have been reduced.
    at: Time,
    /// The number of errors that counted as running at the time `since`.
    lasting: f64,
    since: Time,
}

/// The result of comparing a server's fraction of errors with those of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// The server has a far greater fraction of errors than the others.
    Worse,
    Alike,
    /// There are too few responses or servers to compare.
    Unknown,
}

/// The mean time of successful responses in seconds, over all servers.
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

    /// Records an error. `took` is the time from the choice of the server for the request to the
    /// error.
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

    /// Returns the number of errors that count as running now, which decays with time.
    pub(super) fn running(&self, now: Time, service_time: ServiceTime) -> f64 {
        if self.lasting == 0.0 || service_time.0 == 0.0 {
            return 0.0;
        }
        self.lasting * (-now.since(self.since).as_secs_f64() / service_time.0).exp()
    }

    /// Returns the fraction of errors among recent responses. Returns `None` if there are too few
    /// responses.
    pub(super) fn share(&self) -> Option<f64> {
        (self.all >= LEAST).then(|| self.errors / self.all)
    }
}

/// Compares `share`, a server's fraction of errors, with those of the others. Below `least` the
/// server never compares as worse.
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
