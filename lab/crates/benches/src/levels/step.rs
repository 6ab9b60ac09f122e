//! Measures a percentile goal across a step in load, on the available processors.
//!
//! Requests arrive at random times, whether or not earlier ones were answered (an open loop). The
//! rate is below the processors' capacity, then above it, then below it again. A third of the
//! requests are of the high level, whose 95th percentile is promised. If the high level's own load
//! exceeds the pool in the second phase, the promise cannot be kept. The result is then how soon
//! the pool reports that.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bywash_harness::splitmix64::SplitMix64;
use bywash_levels::{Goal, Level, Pool, Verdict};

use super::Burner;

/// The parameters of the experiment.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Number of processors, to which the load is relative.
    pub processors: u32,
    /// Number of threads of the pool.
    pub threads: u32,
    /// Mean CPU work of a request, in milliseconds.
    pub mean_ms: f64,
    /// Number of tasks of a request.
    pub tasks: usize,
    /// Fraction of the requests that are of the high level.
    pub high: f64,
    /// Load before and after the step, as a multiple of the processors' capacity.
    pub before: f64,
    /// Load during the step, as a multiple of the processors' capacity.
    pub between: f64,
    /// The promised 95th percentile of the high level's response times.
    pub within: Duration,
    /// Length of each of the three phases.
    pub lasts: Duration,
}

/// The result of one phase.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Load of the phase, as a multiple of the processors' capacity.
    pub load: f64,
    /// 95th percentile of the response times of the high level's requests that arrived in the
    /// phase, in milliseconds.
    pub p95_ms: f64,
    /// Mean response time of the low level's requests that arrived in the phase, in milliseconds.
    pub low_ms: f64,
    /// Time from the start of the phase until the pool first reported that the goal cannot be
    /// reached; `None` if the pool did not report it.
    pub infeasible: Option<Duration>,
    /// Number of requests of both levels that arrived in the phase.
    pub requests: usize,
}

/// An answered request: its phase, its level, and its response time in seconds.
type Answer = (usize, usize, f64);

/// Runs the three phases and returns their results in order.
///
/// # Panics
///
/// Panics if no thread can be started.
pub fn steps(step: &Step, burner: Burner, seed: u64) -> Vec<Phase> {
    let level = |most: u32| Level { max_threads: most, queue: 1_000_000, ..Level::PLAIN };
    let goal = Goal::Percentile { level: "high", share: 0.95, within: step.within };
    let pool = Pool::builder(step.threads)
        .level("high", level(step.threads))
        .level("low", level(1))
        .goal(goal)
        .build();
    let pool = pool.expect("the settings are constant and valid");
    let answers: Arc<Mutex<Vec<Answer>>> = Arc::default();
    let mut rng = SplitMix64::new(seed);
    let mut phases = Vec::new();
    let capacity = f64::from(step.processors) * 1000.0 / step.mean_ms;
    for (number, load) in [step.before, step.between, step.before].into_iter().enumerate() {
        let mut phase = Phase { load, p95_ms: 0.0, low_ms: 0.0, infeasible: None, requests: 0 };
        let begun = Instant::now();
        let mut next = 0.0;
        loop {
            next += rng.exponential(1.0 / (load * capacity));
            let at = Duration::from_secs_f64(next);
            if at >= step.lasts {
                break;
            }
            wait_until(begun + at, || {
                let goal = pool.stats().goal;
                if goal.is_some_and(|goal| goal.verdict == Verdict::Infeasible) {
                    phase.infeasible.get_or_insert(begun.elapsed());
                }
            });
            submit(step, burner, &pool, &mut rng, (begun + at, number), &answers);
            phase.requests += 1;
        }
        phases.push(phase);
    }
    let all: usize = phases.iter().map(|phase| phase.requests).sum();
    while answers.lock().expect("no task panics").len() < all {
        std::thread::sleep(Duration::from_millis(10));
    }
    let answers = answers.lock().expect("no task panics");
    for (number, phase) in phases.iter_mut().enumerate() {
        let of = |level: usize| {
            let mine = answers.iter().filter(move |a| a.0 == number && a.1 == level);
            let mut times: Vec<f64> = mine.map(|answer| answer.2 * 1e3).collect();
            times.sort_by(f64::total_cmp);
            times
        };
        let (high, low) = (of(0), of(1));
        phase.p95_ms = high[(high.len() - 1) * 95 / 100];
        phase.low_ms = low.iter().sum::<f64>() / low.len() as f64;
    }
    phases
}

/// Submits a request of `phase` that was due at `due`. Its response time counts from `due`.
fn submit(
    step: &Step,
    burner: Burner,
    pool: &Pool,
    rng: &mut SplitMix64,
    (due, phase): (Instant, usize),
    answers: &Arc<Mutex<Vec<Answer>>>,
) {
    let level = usize::from(rng.fraction() >= step.high);
    let each = rng.exponential(step.mean_ms) / step.tasks as f64;
    let (tasks, answers) = (step.tasks, Arc::clone(answers));
    let handed_in = pool.submit(["high", "low"][level], move |request| {
        request.scope(|scope| (0..tasks).for_each(|_| scope.spawn(move || burner.work(each))));
        let answer = (phase, level, due.elapsed().as_secs_f64());
        answers.lock().expect("no task panics").push(answer);
    });
    handed_in.expect("the queues have room for all requests");
}

/// Sleeps until `due`, and calls `look` repeatedly during that time.
fn wait_until(due: Instant, mut look: impl FnMut()) {
    const LOOK: Duration = Duration::from_millis(20);
    look();
    while let Some(left) = due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    {
        std::thread::sleep(left.min(LOOK));
        look();
    }
}
