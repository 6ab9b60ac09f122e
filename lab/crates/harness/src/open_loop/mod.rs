//! An open loop: requests come when they are due, whether or not those before were answered.
//!
//! What is measured is the time from when a request was *due*, so that a proxy which holds up the
//! load is not spared what comes meanwhile (coordinated omission). One epoll thread; requests are
//! evenly spaced within a phase.

mod driver;
mod exchange;

use crate::stats;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// So many requests per second for so long.
#[derive(Debug, Clone, Copy)]
pub struct Phase {
    /// Requests per second; none come if it is 0.
    pub rate: f64,
    /// For how long.
    pub length: Duration,
}

impl Phase {
    /// `rate` requests per second for `length`.
    pub fn new(rate: f64, length: Duration) -> Self {
        Self { rate, length }
    }

    fn count(&self) -> u32 {
        (self.rate * self.length.as_secs_f64()).round() as u32
    }
}

/// Time to start a thread and open the first connections.
const AHEAD: Duration = Duration::from_millis(20);

/// What happens to a connection once its request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// It carries the next but so many requests: connections take turns.
    Turns(usize),
    /// It is closed: every request comes by a connection of its own.
    Never,
    /// Every second request is the first of its connection, and these are used again.
    Half,
}

/// A load.
#[derive(Debug, Clone)]
pub struct Load {
    /// Where to.
    pub port: u16,
    /// When.
    pub phases: Vec<Phase>,
    /// Clients leave without an answer after so long.
    pub patience: Duration,
    /// How connections are used.
    pub reuse: Reuse,
    /// Numbers of [`crate::client_socket::address`] from which connections come in turns; the usual address if
    /// there are none.
    pub sources: Range<usize>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// By a whole answer with this status.
    Status(u16),
    /// By the end of its connection in the middle of the answer.
    Cut,
    /// By the end of its connection before any answer.
    Lost,
    /// It could not connect.
    Refused,
    /// By what is no answer of HTTP.
    Garbled,
    /// Its client had waited long enough.
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

/// What became of one request.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// When it was due, from the start of the load.
    pub due: Duration,
    /// How much later than due it was sent: the load's own fault.
    pub late: Duration,
    /// From when it was due to its end.
    pub took: Duration,
    /// How it ended.
    pub end: End,
}

/// A running load.
#[derive(Debug)]
pub struct Running {
    start: Instant,
    thread: JoinHandle<io::Result<Vec<Answer>>>,
}

impl Load {
    /// Starts it, on the caller's core; time 0 is a moment from now.
    pub fn start(&self) -> Running {
        let (load, start) = (self.clone(), Instant::now() + AHEAD);
        Running { start, thread: thread::spawn(move || driver::run(&load, start)) }
    }

    /// From the first request to the last.
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
    /// The time of the load now, on the clock of [`Answer::due`].
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Waits until that time.
    pub fn wait_until(&self, time: Duration) {
        thread::sleep((self.start + time).saturating_duration_since(Instant::now()));
    }

    /// Waits for the last answer; all of them, in the order in which they ended.
    pub fn finish(self) -> io::Result<Vec<Answer>> {
        self.thread.join().map_err(|_| io::Error::other("the load panicked"))?
    }
}

/// Those due from `from` until before `to`.
pub fn within(answers: &[Answer], from: Duration, to: Duration) -> Vec<Answer> {
    let is_in = |answer: &&Answer| (from..to).contains(&answer.due);
    answers.iter().filter(is_in).copied().collect()
}

/// The share that was answered with 200; `None` of none.
pub fn goodput(answers: &[Answer]) -> Option<f64> {
    let good = answers.iter().filter(|answer| answer.end == End::Status(200)).count();
    (!answers.is_empty()).then(|| good as f64 / answers.len() as f64)
}

/// The time below or at which the share `p` of those answered with 200 took, in µs.
pub fn percentile_us(answers: &[Answer], p: f64) -> Option<f64> {
    let served = answers.iter().filter(|answer| answer.end == End::Status(200));
    let took: Vec<f64> = served.map(|answer| answer.took.as_secs_f64() * 1e6).collect();
    stats::percentile(&took, p)
}

/// How late the load itself was, at worst in 99 of 100, for a table: what it adds to every time.
pub fn show_late_ms(answers: &[Answer]) -> String {
    let late: Vec<f64> = answers.iter().map(|answer| answer.late.as_secs_f64() * 1e3).collect();
    stats::percentile(&late, 0.99).map_or("-".into(), |ms| format!("{ms:.1}"))
}

/// How many ended how.
pub fn ends(answers: &[Answer]) -> BTreeMap<End, usize> {
    let mut ends = BTreeMap::new();
    for answer in answers {
        *ends.entry(answer.end).or_default() += 1;
    }
    ends
}

/// The same in words: `200: 512, 503: 3`.
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
