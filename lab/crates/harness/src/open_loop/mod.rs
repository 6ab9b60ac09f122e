//! An open-loop load generator: it sends each request when it is due, whether or not earlier ones
//! were answered.
//!
//! Latency is measured from when a request was *due*. A proxy that stalls the load generator is
//! therefore charged for the requests that become due meanwhile (coordinated omission). The load
//! generator is one epoll thread. Requests are evenly spaced within a phase.

mod driver;
mod exchange;

use crate::stats;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A phase of constant request rate.
#[derive(Debug, Clone, Copy)]
pub struct Phase {
    /// Requests per second; 0 means that none are sent.
    pub rate: f64,
    /// Length of the phase.
    pub length: Duration,
}

impl Phase {
    /// Creates a phase with `rate` requests per second for `length`.
    pub fn new(rate: f64, length: Duration) -> Self {
        Self { rate, length }
    }

    fn count(&self) -> u32 {
        (self.rate * self.length.as_secs_f64()).round() as u32
    }
}

/// Time between the call that starts the load generator and its time 0, to start a thread and open
/// the first connections.
const AHEAD: Duration = Duration::from_millis(20);

/// The use of a connection after its request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// The given number of connections stays open and carries the requests in turn.
    Turns(usize),
    /// The connection is closed, so each request has its own connection.
    Never,
    /// Every second request opens a connection. The other requests reuse a connection that is open.
    Half,
}

/// The settings of an open-loop load.
#[derive(Debug, Clone)]
pub struct Load {
    /// The target's port on 127.0.0.1.
    pub port: u16,
    /// The phases, which follow one another.
    pub phases: Vec<Phase>,
    /// Time from when a request is due until the client abandons it.
    pub patience: Duration,
    /// The reuse of connections.
    pub reuse: Reuse,
    /// Indices of the source addresses ([`crate::client_socket::address`]) that connections use in
    /// turn. If empty, connections come from 127.0.0.1.
    pub sources: Range<usize>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A complete response with this status.
    Status(u16),
    /// The connection ended after a part of the response.
    Cut,
    /// The connection ended before any byte of the response.
    Lost,
    /// The connect was refused.
    Refused,
    /// The response was not valid HTTP.
    Garbled,
    /// The client's patience ended before the response was complete.
    Impatient,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::Cut => f.pad("cut"),
            Self::Lost => f.pad("lost"),
            Self::Refused => f.pad("refused"),
            Self::Garbled => f.pad("garbled"),
            Self::Impatient => f.pad("left"),
        }
    }
}

/// The outcome of one request.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// Time at which the request was due, since time 0 of the load.
    pub due: Duration,
    /// Delay from when the request was due until it was sent, which the load generator itself
    /// caused.
    pub late: Duration,
    /// Time from when the request was due until it ended.
    pub took: Duration,
    /// How the request ended.
    pub end: End,
}

/// A running load generator.
#[derive(Debug)]
pub struct Running {
    start: Instant,
    thread: JoinHandle<io::Result<Vec<Answer>>>,
}

impl Load {
    /// Starts the load generator on the caller's core. Its time 0 is shortly after this call.
    pub fn start(&self) -> Running {
        let (load, start) = (self.clone(), Instant::now() + AHEAD);
        Running { start, thread: thread::spawn(move || driver::run(&load, start)) }
    }

    /// Returns the total length of all phases.
    pub fn length(&self) -> Duration {
        self.phases.iter().map(|phase| phase.length).sum()
    }

    fn dues(&self) -> impl Iterator<Item = Duration> {
        let mut start = Duration::ZERO;
        self.phases.iter().flat_map(move |phase| {
            let (from, rate) = (start, phase.rate);
            start += phase.length;
            (0..phase.count()).map(move |n| from + Duration::from_secs_f64(f64::from(n) / rate))
        })
    }
}

impl Running {
    /// Returns the time since time 0 of the load, on the clock of [`Answer::due`].
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Waits until `time` has passed since time 0 of the load.
    pub fn wait_until(&self, time: Duration) {
        thread::sleep((self.start + time).saturating_duration_since(Instant::now()));
    }

    /// Waits until the last request has ended, and returns all outcomes in the order in which the
    /// requests ended.
    pub fn finish(self) -> io::Result<Vec<Answer>> {
        self.thread.join().map_err(|_| io::Error::other("the load panicked"))?
    }
}

/// Returns the outcomes of the requests that were due from `from` until before `to`.
pub fn within(answers: &[Answer], from: Duration, to: Duration) -> Vec<Answer> {
    let is_in = |answer: &&Answer| (from..to).contains(&answer.due);
    answers.iter().filter(is_in).copied().collect()
}

/// Returns the fraction of the requests that were answered with 200; `None` if `answers` is empty.
pub fn goodput(answers: &[Answer]) -> Option<f64> {
    let good = answers.iter().filter(|answer| answer.end == End::Status(200)).count();
    (!answers.is_empty()).then(|| good as f64 / answers.len() as f64)
}

/// Returns quantile `p` (from 0 to 1) of the response times of requests answered with 200, in µs;
/// `None` without such requests.
pub fn percentile_us(answers: &[Answer], p: f64) -> Option<f64> {
    let served = answers.iter().filter(|answer| answer.end == End::Status(200));
    let took: Vec<f64> = served.map(|answer| answer.took.as_secs_f64() * 1e6).collect();
    stats::percentile(&took, p)
}

/// Formats the 99th percentile of the delay that the load generator caused, in milliseconds, for a
/// table. Every response time includes this delay.
pub fn show_late_ms(answers: &[Answer]) -> String {
    let late: Vec<f64> = answers.iter().map(|answer| answer.late.as_secs_f64() * 1e3).collect();
    stats::percentile(&late, 0.99).map_or("-".into(), |ms| format!("{ms:.1}"))
}

/// Counts the requests by the way in which they ended.
pub fn ends(answers: &[Answer]) -> BTreeMap<End, usize> {
    let mut ends = BTreeMap::new();
    for answer in answers {
        *ends.entry(answer.end).or_default() += 1;
    }
    ends
}

/// Formats the counts of [`ends`], such as `200: 512, 503: 3`.
pub fn show_ends(answers: &[Answer]) -> String {
    let cells = ends(answers).into_iter().map(|(end, count)| format!("{end}: {count}"));
    cells.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::{Behaviour, Upstream};

    fn load(port: u16, reuse: Reuse) -> Load {
        let phases = vec![Phase::new(1000.0, Duration::from_millis(100))];
        Load { port, phases, patience: Duration::from_secs(5), reuse, sources: 0..0 }
    }

    #[test]
    fn phases_follow_each_other_and_each_has_its_rate() {
        let mut load = load(1, Reuse::Never);
        load.phases = [(4.0, 1), (0.0, 1), (2.0, 1)]
            .map(|(rate, seconds)| Phase::new(rate, Duration::from_secs(seconds)))
            .to_vec();
        let dues: Vec<u128> = load.dues().map(|due| due.as_millis()).collect();
        assert_eq!(dues, [0, 250, 500, 750, 2000, 2500]);
    }

    #[test]
    fn every_request_has_one_end_however_connections_are_used() {
        let upstream = Upstream::start().unwrap();
        for reuse in [Reuse::Turns(4), Reuse::Never, Reuse::Half] {
            let answers = load(upstream.port(), reuse).start().finish().unwrap();
            assert_eq!(show_ends(&answers), "200: 100", "{reuse:?}");
        }
    }

    #[test]
    fn what_is_no_whole_answer_is_told_apart() {
        let upstream = Upstream::start().unwrap();
        for (behaviour, end) in [
            (Behaviour::CutLength, End::Cut),
            (Behaviour::CutChunked, End::Cut),
            (Behaviour::HalfClose, End::Lost),
            (Behaviour::Garbage, End::Garbled),
        ] {
            upstream.set_behaviour(behaviour);
            let answers = load(upstream.port(), Reuse::Never).start().finish().unwrap();
            assert_eq!(show_ends(&answers), format!("{end}: 100"), "{behaviour:?}");
        }
    }

    #[test]
    fn a_client_whose_patience_is_over_leaves_and_the_others_are_still_sent() {
        let upstream = Upstream::start().unwrap();
        upstream.set_behaviour(Behaviour::Hang);
        let patience = Duration::from_millis(20);
        let load = Load { patience, ..load(upstream.port(), Reuse::Turns(1)) };
        let answers = load.start().finish().unwrap();
        assert_eq!(show_ends(&answers), "left: 100");
        assert!(answers.iter().all(|answer| answer.took >= patience));
    }

    #[test]
    fn a_port_nobody_listens_on_refuses() {
        let port = Upstream::start().unwrap().port();
        let answers = load(port, Reuse::Turns(4)).start().finish().unwrap();
        assert_eq!(show_ends(&answers), "refused: 100");
    }
}
