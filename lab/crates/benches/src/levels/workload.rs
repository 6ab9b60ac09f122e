//! Measures the ratio of the response times of two levels of service, with closed-loop clients.
//! Compares the paper's method (parity mode) with a thread pool that has the ratio as its goal
//! [paper 3.11].
//!
//! Clients are threads of this process. Each sends one request after the other, of either level
//! with equal probability. A request consists of ten tasks, as in the paper with ten concepts.
//! Their size is drawn from an exponential distribution.
//!
//! A client either waits for its turn and runs the tasks itself, as a connection's thread does, or
//! submits them to the pool's threads. In the first case, a slot that becomes free stays unused
//! until the next client's thread has woken up. In the second case, the pool's thread takes the
//! next task itself.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use bywash_harness::splitmix64::SplitMix64;
use bywash_levels::{Builder, Goal, GoalStats, Level, Pool, Request};

use super::Burner;

/// The thread that runs a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Execution {
    /// Run it on the client's thread, when its turn comes
    Request,
    /// Run it on the pool's threads
    Submit,
}

/// The parameters of the experiment.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Number of threads of the pool that has the goal.
    pub threads: u32,
    /// The thread that runs a request.
    pub execution: Execution,
    /// Maximum number of threads for one request of the high level.
    pub most: u32,
    /// Maximum number of requests that run at the same time in parity mode.
    pub concurrency: u32,
    /// Number of tasks of a request.
    pub tasks: usize,
    /// Mean CPU work of a request, in milliseconds.
    pub mean_ms: f64,
    /// Promised mean response time of the high level, divided by that of the low level.
    pub target: f64,
    /// Length of each measurement.
    pub lasts: Duration,
}

/// The result of one method with some number of clients.
#[derive(Clone, Copy, Debug)]
pub struct ClientsResult {
    /// Mean response times of the high and the low level, in seconds.
    pub means: [f64; 2],
    /// Standard deviation of the response times divided by their mean, for the high and the low
    /// level.
    pub deviations: [f64; 2],
    /// Requests answered per second, of both levels.
    pub throughput: f64,
    /// The state of the goal at the end; `None` for a pool without a goal.
    pub goal: Option<GoalStats>,
}

impl ClientsResult {
    /// Returns the mean response time of the high level divided by that of the low level.
    pub fn ratio(&self) -> f64 {
        self.means[0] / self.means[1]
    }
}

/// Returns the results for `clients` clients: with parity mode, and with the goal.
///
/// # Panics
///
/// Panics if no thread can be started.
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
    // The order of the methods alternates from round to round.
    if round.is_multiple_of(2) {
        [play(parity), play(goal)]
    } else {
        let goal = play(goal);
        [play(parity), goal]
    }
}

/// The time at the start that is not counted, as a fraction of the measured time. In it the
/// controller converges and queues build up.
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

/// Sends a request of the workload at `level` to the pool, and waits until it is answered.
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
