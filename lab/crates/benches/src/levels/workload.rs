//! The ratio of two levels' response times under clients that ask again as soon as they are answered: the seed's way
//! beside a pool that has the goal [paper 3.11].
//!
//! Clients are threads of this process. Each asks for one request after the other, of either level with even chance; a
//! request is ten tasks, as the seed's with ten concepts, of a size drawn from an exponential distribution.
//!
//! A client waits for its turn and has the tasks run itself, as the thread of a connection does, or submits them to the
//! pool's threads. When a slot changes hands the first must be woken before the slot is of use; the second have only to
//! look for more.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use bywash_harness::splitmix64::SplitMix64;
use bywash_levels::{Builder, Goal, GoalStats, Level, Pool, Request};

use super::Burner;

/// Who runs a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Execution {
    /// Its client, when its turn comes.
    Request,
    /// The pool's threads.
    Submit,
}

/// What is played.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Threads of the pool that has the goal.
    pub threads: u32,
    /// Who runs a request.
    pub execution: Execution,
    /// Threads of a request of the high level.
    pub most: u32,
    /// Requests that run at a time in parity.
    pub concurrency: u32,
    /// Tasks of a request.
    pub tasks: usize,
    /// Mean work of a request, milliseconds.
    pub mean_ms: f64,
    /// Ratio wanted.
    pub target: f64,
    /// How long each cell is measured.
    pub lasts: Duration,
}

/// What a number of clients came to in one way.
#[derive(Clone, Copy, Debug)]
pub struct ClientsResult {
    /// Mean response times of the high and the low level, seconds.
    pub means: [f64; 2],
    /// Standard deviation over mean, of both.
    pub deviations: [f64; 2],
    /// Requests in a second.
    pub throughput: f64,
    /// The goal at the end, if there was one.
    pub goal: Option<GoalStats>,
}

impl ClientsResult {
    /// Response time of the high level over that of the low one.
    pub fn ratio(&self) -> f64 {
        self.means[0] / self.means[1]
    }
}

/// Of `clients`: in parity, and with the goal.
///
/// # Panics
///
/// If no thread can be started.
pub fn ratios(
    workload: &Workload,
    burner: Burner,
    clients: usize,
    round: u64,
) -> [ClientsResult; 2] {
    let high = Level { max_threads: workload.most, ..Level::PLAIN };
    let builder = || Pool::builder(workload.threads).level("high", high).level("low", Level::PLAIN);
    let goal = Goal::Ratio { fast: "high", slow: "low", target: workload.target };
    let play = |builder: Builder| {
        play(
            workload,
            burner,
            clients,
            round,
            &builder.build().expect("the settings are constant and valid"),
        )
    };
    let (parity, goal) = (builder().parity(workload.concurrency), builder().goal(goal));
    // First is the one, then the other.
    if round.is_multiple_of(2) {
        [play(parity), play(goal)]
    } else {
        let goal = play(goal);
        [play(parity), goal]
    }
}

/// Answers before this share of the time do not count: the controller is on its way, and queues build up.
const UNCOUNTED: f64 = 0.25;

fn play(
    workload: &Workload,
    burner: Burner,
    clients: usize,
    round: u64,
    pool: &Pool,
) -> ClientsResult {
    let begun = Instant::now();
    let from = begun + workload.lasts.mul_f64(UNCOUNTED);
    let end = from + workload.lasts;
    let client = |number: usize| {
        let mut rng = SplitMix64::new(round << 32 | number as u64);
        let mut seen: [Vec<f64>; 2] = Default::default();
        while Instant::now() < end {
            let level = usize::from(rng.fraction() < 0.5);
            let each = rng.exponential(workload.mean_ms) / workload.tasks as f64;
            let asked = Instant::now();
            answer(workload, pool, ["high", "low"][level], move || burner.work(each));
            let answered = Instant::now();
            if answered >= from && answered < end {
                seen[level].push((answered - asked).as_secs_f64());
            }
        }
        seen
    };
    let client = &client;
    let all: Vec<[Vec<f64>; 2]> = std::thread::scope(|threads| {
        let running: Vec<_> =
            (0..clients).map(|number| threads.spawn(move || client(number))).collect();
        running
            .into_iter()
            .map(|thread| thread.join().expect("no client's thread panics"))
            .collect()
    });
    let of = |level: usize| all.iter().flat_map(move |seen| seen[level].iter().copied());
    let answers = [of(0).count(), of(1).count()];
    let mean = |level: usize| of(level).sum::<f64>() / answers[level] as f64;
    let deviation = |level: usize| {
        let mean = mean(level);
        let variance = of(level).map(|one| (one - mean).powi(2)).sum::<f64>();
        (variance / answers[level] as f64).sqrt() / mean
    };
    ClientsResult {
        means: [mean(0), mean(1)],
        deviations: [deviation(0), deviation(1)],
        throughput: (answers[0] + answers[1]) as f64 / workload.lasts.as_secs_f64(),
        goal: pool.stats().goal,
    }
}

/// A request of as many tasks as the workload says, from its coming to its answer.
fn answer(
    workload: &Workload,
    pool: &Pool,
    level: &str,
    task: impl Fn() + Copy + Send + Sync + 'static,
) {
    let tasks = workload.tasks;
    let run =
        move |turn: &mut Request| turn.scope(|scope| (0..tasks).for_each(|_| scope.spawn(task)));
    match workload.execution {
        Execution::Request => {
            run(&mut pool.request(level).expect("the queues have room for all requests"));
        }
        Execution::Submit => {
            let (done, answered) = mpsc::sync_channel(1);
            let job = move |turn: &mut Request| {
                run(turn);
                done.send(()).expect("the client waits");
            };
            pool.submit(level, job).expect("the queues have room for all requests");
            answered.recv().expect("no task panics");
        }
    }
}
