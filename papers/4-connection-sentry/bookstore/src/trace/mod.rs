//! Generates a trace with as many sessions and requests as that of paper 4.
//!
//! The paper replays parts of a trace of a real bookstore, which is not available: 123,664 requests
//! in 3,177 sessions [paper 4.5]. The generated trace has exactly these two numbers. Its mix of
//! services is that of the requests served at light load (Table 4, three clients). All other
//! properties are our own choice, and the constants below state them.
//!
//! Each line is one request. Lines are ordered by session, then by the order of requests in the
//! session. Lines that begin with `#` are comments:
//!
//! ```text
//! 17 @412903 home /            session 17 begins 412,903 ms after the trace does
//! 17 +85 file /file/4120       85 ms after the answer to the request before
//! 17 +9120 search /search?q=harbour
//! ```
//!
//! The third word is the class of the request: the name of its [`Service`], which determines the
//! HTTP method.

mod session;
mod statistics;

use std::io;

use bywash_scenario::{Distribution, Stream};
use bywash_units::TimeSpan;

use crate::Service;
use crate::books::below;
use session::distribute;
pub use statistics::Statistics;

/// The number of sessions in the paper's trace.
pub const SESSIONS: usize = 3_177;

/// The number of requests in the paper's trace.
pub const REQUESTS: usize = 123_664;

/// The services of the trace with their shares: the number of requests of each that the paper's
/// server completed at light load (Table 4, three clients, standard Unix).
const MIX: [(Service, usize); 5] = [
    (Service::Home, 225),
    (Service::Browse, 25),
    (Service::Search, 402),
    (Service::File, 660),
    (Service::Select, 38),
];

/// The number of sessions that end with an order, which is one in twenty. (The paper says "just a
/// few".)
const BUYERS: usize = 159;

/// The number of sessions that put a book into a cart and do not order it. The number is our
/// choice.
const HESITANT: usize = 159;

/// The distribution of the number of requests in a session. The type is one of times, so one second
/// stands for one request. Most sessions are short and a few are very long. The mean is the
/// paper's, and the shape is our choice.
const LENGTH: Distribution =
    Distribution::Lognormal { mean: TimeSpan::from_millis(38_920), cv: 1.2 };

/// The distribution of the time between the answer to a page and the next request for a page.
const THINK: Distribution = Distribution::Lognormal { mean: TimeSpan::from_secs(12), cv: 1.5 };

/// The distribution of the time between the previous answer and the request for a file, which
/// belongs to the page before it.
const FETCH: Distribution = Distribution::Exponential(TimeSpan::from_millis(100));

/// The length of the trace in milliseconds. Sessions begin at random within this day, with the same
/// probability at any time.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The random streams of a trace. Each is used for one purpose only.
#[derive(Clone, Copy)]
enum Purpose {
    Length = 11,
    Mix,
    Arrivals,
    Session,
}

/// One request of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The time between the previous answer and this request. For the first request of a session,
    /// the time since the start of the trace.
    pub wait: TimeSpan,
    /// The service that is requested.
    pub service: Service,
    /// The path of the request with its query.
    pub target: String,
}

/// All requests of a trace, grouped by session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    sessions: Vec<Vec<Request>>,
}

impl Trace {
    /// Generates the trace of the seed `seed`. The same seed gives the same trace on every machine.
    pub fn generate(seed: u64) -> Self {
        let lengths = lengths(&mut stream(seed, Purpose::Length));
        let mut arrivals = stream(seed, Purpose::Arrivals);
        let mut begins: Vec<_> = (0..SESSIONS).map(|_| below(DAY_MS, &mut arrivals)).collect();
        begins.sort_unstable();
        let mixes = distribute(&lengths, shuffled_services(&mut stream(seed, Purpose::Mix)));
        let sessions =
            mixes.into_iter().zip(begins).zip(0_u64..).map(|((services, begin), number)| {
                let mut rng = Stream::new(seed, Purpose::Session as u64, number);
                session::session(&services, TimeSpan::from_millis(begin), &mut rng)
            });
        Self { sessions: sessions.collect() }
    }

    /// Returns the requests of each session, in the order in which the sessions begin.
    pub fn sessions(&self) -> &[Vec<Request>] {
        &self.sessions
    }

    /// Writes the trace as text, in the format that this module describes.
    pub fn write(&self, mut to: impl io::Write) -> io::Result<()> {
        writeln!(
            to,
            "# session, time (@: ms after the start of the trace, +: ms after the previous \
             answer), class, path"
        )?;
        for (number, session) in (1_u32..).zip(&self.sessions) {
            let mut sign = '@';
            for Request { wait, service, target } in session {
                writeln!(to, "{number} {sign}{} {} {target}", wait.as_millis(), service.name())?;
                sign = '+';
            }
        }
        to.flush()
    }

    /// Returns statistics of the trace, to be read by people.
    pub fn statistics(&self) -> Statistics {
        Statistics::of(self)
    }
}

fn stream(seed: u64, purpose: Purpose) -> Stream {
    Stream::new(seed, purpose as u64, 0)
}

/// Returns the number of requests in each session. The numbers are drawn, then scaled so that their
/// sum is [`REQUESTS`].
fn lengths(rng: &mut Stream) -> Vec<usize> {
    let drawn: Vec<_> = (0..SESSIONS).map(|_| LENGTH.draw(rng).as_secs_f64()).collect();
    // Every session has at least one request. The others are distributed in proportion to the drawn
    // lengths.
    let scale = (REQUESTS - SESSIONS) as f64 / drawn.iter().sum::<f64>();
    let mut lengths = Vec::with_capacity(SESSIONS);
    let (mut exact, mut given) = (0.0, 0);
    for length in drawn {
        // The remainder of the rounding is carried over to the next session.
        exact += length * scale;
        let extra = exact as usize - given;
        given += extra;
        lengths.push(1 + extra);
    }
    // Because of floating-point errors, one request may be missing at the end. The last session
    // gets it.
    if let Some(last) = lengths.last_mut() {
        *last += REQUESTS - SESSIONS - given;
    }
    lengths
}

/// Returns the services of all requests in random order, except the first page of each session, the
/// additions to carts and the orders.
fn shuffled_services(rng: &mut Stream) -> Vec<Service> {
    let mut services: Vec<_> = totals()
        .into_iter()
        .flat_map(|(service, count)| {
            let first = if service == Service::Home { SESSIONS } else { 0 };
            std::iter::repeat_n(service, count - first)
        })
        .collect();
    for place in (1..services.len()).rev() {
        services.swap(place, below(place as u64 + 1, rng) as usize);
    }
    services
}

/// Returns the total number of requests of each service of the mix. The remainder of rounding goes
/// to files.
fn totals() -> [(Service, usize); 5] {
    let all = REQUESTS - (BUYERS + HESITANT) - BUYERS;
    let parts: usize = MIX.iter().map(|(_, part)| part).sum();
    let mut totals = MIX.map(|(service, part)| (service, all * part / parts));
    let given: usize = totals.iter().map(|(_, count)| count).sum();
    for (service, count) in &mut totals {
        if *service == Service::File {
            *count += all - given;
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_sessions_and_requests_as_in_the_seed_whatever_is_drawn() {
        for seed in [0, 1, 4, u64::MAX] {
            let trace = Trace::generate(seed);
            assert_eq!(trace.sessions.len(), SESSIONS, "seed {seed}");
            assert_eq!(trace.sessions.iter().map(Vec::len).sum::<usize>(), REQUESTS, "seed {seed}");
            assert!(trace.sessions.iter().all(|session| !session.is_empty()), "seed {seed}");
        }
    }

    #[test]
    fn the_mix_is_that_of_the_seed() {
        let trace = Trace::generate(4);
        let statistics = trace.statistics();
        let all = REQUESTS as f64;
        for (service, part) in MIX {
            let share = statistics.count(service) as f64 / all;
            assert!((share - part as f64 / 1_350.0).abs() < 0.003, "{}: {share}", service.name());
        }
        assert_eq!((statistics.count(Service::Cart), statistics.count(Service::Buy)), (318, 159));
    }

    #[test]
    fn the_same_seed_gives_the_same_trace_and_another_another() {
        assert_eq!(Trace::generate(4), Trace::generate(4));
        assert_ne!(Trace::generate(4), Trace::generate(5));
    }

    #[test]
    fn every_line_is_as_it_is_described() {
        let mut text = Vec::new();
        Trace::generate(4).write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines.len(), REQUESTS);
        let mut before = "0";
        for line in lines {
            let words: Vec<_> = line.split(' ').collect();
            let [session, when, class, path] = words[..] else { panic!("{line}") };
            let sign = if session == before { '+' } else { '@' };
            before = session;
            assert!(when.strip_prefix(sign).is_some_and(|ms| ms.parse::<u64>().is_ok()), "{line}");
            let service = Service::at(path.split('?').next().unwrap()).unwrap();
            assert_eq!(service.name(), class, "{line}");
        }
    }
}
