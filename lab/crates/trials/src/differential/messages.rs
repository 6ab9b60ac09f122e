//! The first part of a run: sends every case and its mutations through the gateway to the recorder.
//! Each case is sent alone, and again with a canary after it.

use super::corpus::{Case, Expect, Refusal};
use super::front::Front;
use super::lane::{Lane, Patience, Stream, Trial};
use super::mutation;
use super::progress::Progress;
use super::reading::{self, Reading, Request, Speaker, Tail};
use super::results::{Results, Source, Stage};
use super::verdict::{self, Sent};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for a response that the case requires. It is long, because the machine may be busy.
const PATIENT: Duration = Duration::from_secs(3);
/// Time limit for a message that may be incomplete, to which a gateway sends no response.
const IMPATIENT: Duration = Duration::from_millis(150);

/// The messages to send, and how.
#[derive(Debug, Clone)]
pub struct MessagePlan<'a> {
    /// The gateway under test.
    pub front: &'a Front,
    /// The cases of the corpus.
    pub cases: &'a [Case],
    /// Number of mutations of each case.
    pub mutations: usize,
    /// Seed of the mutations.
    pub seed: u64,
    /// Number of gateways that run in parallel. Each has its own [`Lane`].
    pub lanes: usize,
    /// Time after which no more mutations are sent.
    pub until: Instant,
}

/// The bytes that a gateway forwarded on one connection, to be replayed to origins.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The first message that made the gateway forward these bytes.
    pub source: Source,
    /// All bytes of the connection.
    pub bytes: Vec<u8>,
    /// The reference's reading of the bytes.
    pub reading: Reading,
}

/// A case that is sent again, through the gateway to each origin. The connection can end normally
/// after the case.
#[derive(Debug, Clone)]
pub struct LiveCase {
    /// The corpus case.
    pub source: Source,
    /// The bytes of the case, followed by the canary.
    pub message: Vec<u8>,
    /// The requests that the gateway forwarded for the case.
    pub requests: Vec<Request>,
}

/// The output of the first part of a run, which sends all messages through the gateway to the
/// recorder. The second part (the module `parties`) replays it to each origin.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Results of the first part.
    pub results: Results,
    /// One sample for each distinct sequence of bytes that was forwarded on a connection.
    pub samples: HashMap<Vec<u8>, Sample>,
    /// Cases to send to origins behind the gateway.
    pub live: Vec<LiveCase>,
}

impl MessagePlan<'_> {
    /// Sends all messages, and returns what the gateways forwarded.
    pub fn fire(&self) -> io::Result<Gathered> {
        let next = AtomicUsize::new(0);
        let progress = Progress::new("cases", self.cases.len());
        let parts = thread::scope(|scope| {
            let lanes: Vec<_> = (0..self.lanes.max(1))
                .map(|_| scope.spawn(|| self.lane(&next, &progress)))
                .collect();
            let join = |lane: thread::ScopedJoinHandle<'_, _>| {
                lane.join().map_err(|_| io::Error::other("a worker panicked"))?
            };
            lanes.into_iter().map(join).collect::<io::Result<Vec<Gathered>>>()
        })?;
        let mut all = Gathered::default();
        for part in parts {
            all.results.join(part.results);
            all.samples.extend(part.samples);
            all.live.extend(part.live);
        }
        all.results.findings.sort_by(|one, other| one.source.cmp(&other.source));
        all.live.sort_by(|one, other| one.source.cmp(&other.source));
        Ok(all)
    }

    fn lane(&self, next: &AtomicUsize, progress: &Progress) -> io::Result<Gathered> {
        let mut sender =
            MessageSender { lane: Lane::open(self.front)?, found: Gathered::default() };
        while let Some(case) = self.cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            sender.alone(case)?;
            sender.followed(case)?;
            for number in 1..=self.mutations {
                if Instant::now() > self.until {
                    sender.found.results.left_out += 1;
                    continue;
                }
                let mut rng = mutation::rng(self.seed, &case.name, number);
                let other = &self.cases[rng.below(self.cases.len() as u64) as usize].bytes;
                let message = mutation::mutate(&case.bytes, other, &mut rng);
                sender.mutation(case, number, &message)?;
            }
            progress.step();
        }
        Ok(sender.found)
    }
}

struct MessageSender {
    lane: Option<Lane>,
    found: Gathered,
}

impl MessageSender {
    /// Sends a case as it is in the corpus, and checks that its expectation is met.
    fn alone(&mut self, case: &Case) -> io::Result<()> {
        let reading = reading::read(&case.bytes, Speaker::Client);
        let sent = Sent { bytes: &case.bytes, reading: &reading };
        let trial = self.send(&sent, patience(case.expect))?;
        let source = source(case, 0);
        // Without a gateway between client and origin, no message is refused, so expectations do
        // not apply.
        let why =
            if self.lane.is_some() { verdict::unmet(case, &sent, &trial) } else { Vec::new() };
        let tally = self.found.results.classes.entry(case.class.clone()).or_default();
        tally.cases += 1;
        tally.refused += usize::from(trial.requests().next().is_none());
        tally.unmet += usize::from(!why.is_empty());
        self.found.results.find(&source, Stage::Expectation, &why, &case.bytes);
        self.check(&source, &sent, &trial);
        Ok(())
    }

    fn followed(&mut self, case: &Case) -> io::Result<()> {
        let message = verdict::followed(&case.bytes);
        let reading = reading::read(&message, Speaker::Client);
        let sent = Sent { bytes: &message, reading: &reading };
        let trial = self.send(&sent, Patience { answers: None, limit: 2 * IMPATIENT })?;
        let source = source(case, 0);
        self.check(&source, &sent, &trial);
        let requests: Vec<Request> = trial.requests().cloned().collect();
        // If a client names no host, a gateway may insert the upstream's host, which differs from
        // run to run.
        let same_host = |request: &Request| {
            let host = request.host().unwrap_or_default();
            host.is_empty() || message.windows(host.len()).any(|part| part == host)
        };
        let whole = |stream: &Stream| stream.reading.tail == Tail::Nothing;
        let again = trial.closed && trial.streams.iter().all(whole);
        if again && !requests.is_empty() && requests.iter().all(same_host) {
            self.found.live.push(LiveCase { source, message, requests });
        }
        Ok(())
    }

    fn mutation(&mut self, case: &Case, number: usize, message: &[u8]) -> io::Result<()> {
        let message = verdict::followed(message);
        let reading = reading::read(&message, Speaker::Client);
        let sent = Sent { bytes: &message, reading: &reading };
        let trial = self.send(&sent, Patience { answers: None, limit: IMPATIENT })?;
        let tally = self.found.results.classes.entry(case.class.clone()).or_default();
        tally.mutations += 1;
        tally.mutations_refused += usize::from(trial.requests().next().is_none());
        self.check(&source(case, number), &sent, &trial);
        Ok(())
    }

    fn send(&mut self, sent: &Sent<'_>, patience: Patience) -> io::Result<Trial> {
        if let Some(lane) = &mut self.lane {
            return lane.run(sent.bytes, &heads(sent.reading), patience);
        }
        let (bytes, reading) = (sent.bytes.to_vec(), sent.reading.clone());
        let arrivals = (0..reading.requests.len()).collect();
        let streams = vec![Stream { bytes, reading, arrivals, kept: false }];
        Ok(Trial { answers: Vec::new(), closed: false, streams })
    }

    /// Checks the forwarded bytes and keeps them for the replay to origins.
    fn check(&mut self, source: &Source, sent: &Sent<'_>, trial: &Trial) {
        if self.lane.is_some() {
            let (faults, beyond) = verdict::faults(sent, trial);
            let tally = self.found.results.classes.entry(source.class.clone()).or_default();
            tally.beyond += usize::from(beyond > 0);
            tally.faulty += usize::from(!faults.is_empty());
            self.found.results.find(source, Stage::Forwarded, &faults, sent.bytes);
            if beyond > 0
                && let Tail::Fault { what, .. } = sent.reading.tail
            {
                let what = format!("{beyond} requests forwarded after {what}");
                self.found.results.find(source, Stage::Beyond, &[what], sent.bytes);
            }
        }
        for stream in &trial.streams {
            let (bytes, reading) = (stream.bytes.clone(), stream.reading.clone());
            let sample = || Sample { source: source.clone(), bytes, reading };
            self.found.samples.entry(kind(&stream.bytes)).or_insert_with(sample);
        }
    }
}

fn source(case: &Case, mutation: usize) -> Source {
    Source { class: case.class.clone(), case: case.name.clone(), mutation }
}

/// Returns the time to wait for the result that `expect` describes: long for a required response,
/// short if no response is expected.
fn patience(expect: Expect) -> Patience {
    match expect {
        Expect::Exactly { forwarded, refusal: None } => {
            Patience { answers: Some(forwarded), limit: PATIENT }
        }
        Expect::Exactly { refusal: Some(Refusal::Status(_) | Refusal::ClientError), .. } => {
            Patience { answers: None, limit: PATIENT }
        }
        Expect::Exactly { refusal: Some(Refusal::Anyhow), .. } | Expect::Either => {
            Patience { answers: None, limit: 2 * IMPATIENT }
        }
    }
}

/// Returns for each request of a message whether its method is HEAD. Answers to HEAD have no body.
fn heads(reading: &Reading) -> Vec<bool> {
    reading.requests.iter().map(|request| request.method == b"HEAD").collect()
}

/// Returns the forwarded bytes without the header field `bywash-request`, whose value is unique for
/// each request. Two connections whose bytes differ only in this field therefore count as one.
fn kind(bytes: &[u8]) -> Vec<u8> {
    const NAME: &[u8] = b"bywash-request:";
    let named =
        |line: &&[u8]| line.get(..NAME.len()).is_some_and(|start| start.eq_ignore_ascii_case(NAME));
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !named(line))
        .flatten()
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_different_names_are_of_one_kind() {
        let one = b"GET / HTTP/1.1\r\nHost: a\r\nBywash-Request: 1\r\n\r\n";
        let two = b"GET / HTTP/1.1\r\nHost: a\r\nbywash-request: 2\r\n\r\n";
        assert_eq!(kind(one), kind(two));
        assert_ne!(kind(one), kind(b"GET / HTTP/1.1\r\nHost: b\r\nBywash-Request: 1\r\n\r\n"));
    }
}
