//! The second part of a run. It replays the forwarded bytes to each origin, and sends the live
//! cases through the gateway to that origin.

use super::answers;
use super::front::Front;
use super::messages::{Gathered, LiveCase, Sample};
use super::observed::ObservedRequest;
use super::origin::{Origin, OriginPaths};
use super::progress::Progress;
use super::replay::{self, OriginConnection, Replay};
use super::results::{OriginTally, Results, Stage};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Number of parallel connections to an origin.
const HANDS: usize = 4;
/// Time limit for a live case. In the first part, all live cases ended without a time limit.
const LIVE_BOUND: Duration = Duration::from_secs(3);

/// Runs both tests with one origin, the replay and the live cases, and returns the results.
pub fn run_origin(
    origin: &Origin,
    paths: &OriginPaths,
    version: &str,
    front: &Front,
    gathered: &Gathered,
    until: Instant,
) -> io::Result<Results> {
    let mut program = origin.start(paths)?;
    let mut results = Results::default();
    let mut tally =
        OriginTally { name: origin.name.into(), version: version.into(), ..OriginTally::default() };
    let mut samples: Vec<&Sample> = gathered.samples.values().collect();
    samples.sort_by(|one, other| one.source.cmp(&other.source));
    for (sample, replay) in replay_all(program.port(), origin.name, &samples, until)? {
        let Some(replay) = replay else {
            tally.left_out += 1;
            continue;
        };
        tally.count(&replay);
        let stage = Stage::Origin(origin.name.into());
        results.find(&sample.source, stage, &replay.faults, &sample.bytes);
    }
    results.findings.sort_by(|one, other| one.source.cmp(&other.source));
    tally.live = live(front, program.port(), origin.name, &gathered.live, until, &mut results)?;
    tally.faults = results.findings.len();
    if !program.runs() {
        return Err(io::Error::other(format!(
            "{} ended unexpectedly:\n{}",
            origin.name,
            program.log()
        )));
    }
    results.origins.push(tally);
    Ok(results)
}

impl OriginTally {
    fn count(&mut self, replay: &Replay) {
        self.streams += 1;
        self.agreed += replay.agreed;
        self.refused += replay.refused.len();
        self.own += replay.own;
        self.beyond += replay.beyond;
    }
}

type Replayed<'a> = Vec<(&'a Sample, Option<Replay>)>;

fn replay_all<'a>(
    port: u16,
    name: &str,
    samples: &[&'a Sample],
    until: Instant,
) -> io::Result<Replayed<'a>> {
    let (next, progress) = (AtomicUsize::new(0), Progress::new(name, samples.len()));
    let work = || {
        let mut done = Vec::new();
        while let Some(sample) = samples.get(next.fetch_add(1, Ordering::Relaxed)) {
            let in_time = Instant::now() < until;
            let replay = in_time.then(|| replay::replay(port, &sample.bytes, &sample.reading));
            done.push((*sample, replay.transpose()?));
            progress.step();
        }
        Ok(done)
    };
    let parts: Vec<io::Result<Replayed<'a>>> = thread::scope(|scope| {
        let hands: Vec<_> = (0..HANDS).map(|_| scope.spawn(work)).collect();
        let join = |hand: thread::ScopedJoinHandle<'_, _>| {
            hand.join().unwrap_or_else(|_| Err(io::Error::other("a replay panicked")))
        };
        hands.into_iter().map(join).collect()
    });
    Ok(parts.into_iter().collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Sends the live cases through the gateway, and records how the origin's reading differs from the
/// reference's. Returns the number of cases sent.
fn live(
    front: &Front,
    upstream: u16,
    name: &str,
    cases: &[LiveCase],
    until: Instant,
    results: &mut Results,
) -> io::Result<usize> {
    let Some(gateway) = front.start(upstream)? else { return Ok(0) };
    let mut sent = 0;
    for case in cases.iter().take_while(|_| Instant::now() < until) {
        let mut connection = OriginConnection::open(gateway.port())?;
        connection.send(&case.message);
        let bytes = connection.rest(LIVE_BOUND)?;
        let what = differences(case, &bytes, connection.has_ended());
        results.find(&case.source, Stage::Live(name.into()), &what, &case.message);
        sent += 1;
    }
    Ok(sent)
}

fn differences(case: &LiveCase, bytes: &[u8], ended: bool) -> Vec<String> {
    let heads: Vec<bool> = case.requests.iter().map(|r| r.method == b"HEAD").collect();
    let (answers, _) = answers::all(bytes, &heads, ended);
    let mut requests = case.requests.iter();
    let mut differences = Vec::new();
    for answer in answers.iter().filter(|answer| !answer.is_interim()) {
        match (requests.next(), ObservedRequest::of(answer)) {
            (Some(request), Some(observed)) => differences.extend(observed.differs(request)),
            (None, Some(_)) => {
                differences.push("the origin sees a request that was not sent".into());
            }
            (_, None) => {}
        }
    }
    differences
}
