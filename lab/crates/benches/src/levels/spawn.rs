//! Measures the cost to spawn and join tasks, compared with rayon in the same run.
//!
//! Tasks are empty, so that only the pool is measured. Each kind of use is measured in rounds, in
//! which the pool and rayon take turns. Disturbances on the machine therefore affect both. The
//! result is the median, over the rounds, of the ratio of their times.

use std::hint::black_box;
use std::sync::mpsc;
use std::time::Instant;

use bywash_harness::stats::Spread;
use bywash_levels::{Level, Pool, Request};

/// The cost of one kind of use of a pool.
#[derive(Debug)]
pub struct Cost {
    /// Description of the kind of use.
    pub what: &'static str,
    /// Time of one use of bywash's thread pool, in nanoseconds.
    pub ours: Spread,
    /// Time of one use of rayon, in nanoseconds.
    pub rayon: Spread,
    /// Ratio of bywash's time to rayon's, over the rounds.
    pub ratio: Spread,
}

const TASKS: usize = 1000;

/// Measures all kinds of use, each in `rounds` rounds on `threads` threads.
///
/// # Panics
///
/// Panics if no thread can be started.
pub fn costs(threads: usize, rounds: usize) -> Vec<Cost> {
    let width = threads as u32;
    let wide = Level { max_threads: width, ..Level::PLAIN };
    let pool = Pool::builder(width).level("wide", wide).level("one", Level::PLAIN).build();
    let pool = pool.expect("the settings are constant and valid");
    let rayon = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let rayon = rayon.expect("threads can be started");
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let alone = alone.expect("threads can be started");
    let turn = |level: &str| pool.request(level).expect("the pool accepts the request");
    let spawn = |level: &'static str| move |times: usize| scopes(turn(level), times);
    vec![
        compare(
            "spawn and join an empty task, of 1,000, one thread",
            rounds,
            100,
            TASKS,
            spawn("one"),
            |times| alone.install(|| rayon_scopes(times)),
        ),
        compare(
            "spawn and join an empty task, of 1,000, all threads",
            rounds,
            100,
            TASKS,
            spawn("wide"),
            |times| rayon.install(|| rayon_scopes(times)),
        ),
        compare(
            "an index of a loop over 1,000,000",
            rounds,
            2,
            1_000_000,
            |times| {
                let mut turn = turn("wide");
                (0..times).for_each(|_| turn.parallel_for(0..1_000_000, nothing));
            },
            |times| {
                use rayon::prelude::*;
                rayon.install(|| {
                    (0..times).for_each(|_| (0..1_000_000_usize).into_par_iter().for_each(nothing));
                });
            },
        ),
        compare(
            "a request of one task that its caller runs, rayon's in its pool",
            rounds,
            2000,
            1,
            |times| {
                (0..times).for_each(|_| turn("wide").scope(|scope| scope.spawn(|| nothing(1))));
            },
            |times| {
                let task = || rayon::scope(|scope| scope.spawn(|_| nothing(1)));
                (0..times).for_each(|_| rayon.install(task));
            },
        ),
        compare(
            "a request of one task that the pool runs, to its answer",
            rounds,
            2000,
            1,
            |times| (0..times).for_each(|_| submitted(&pool)),
            |times| (0..times).for_each(|_| rayon.install(|| nothing(1))),
        ),
    ]
}

fn submitted(pool: &Pool) {
    let (done, answered) = mpsc::sync_channel(1);
    let job = move |_: &mut Request| {
        nothing(1);
        done.send(()).expect("the caller waits");
    };
    pool.submit("wide", job).expect("the queue has room");
    answered.recv().expect("the task does not panic");
}

fn scopes(mut request: Request, times: usize) {
    for _ in 0..times {
        request.scope(|scope| (0..TASKS).for_each(|i| scope.spawn(move || nothing(i))));
    }
}

fn rayon_scopes(times: usize) {
    for _ in 0..times {
        rayon::scope(|scope| (0..TASKS).for_each(|i| scope.spawn(move |_| nothing(i))));
    }
}

/// A task that does nothing, so that only spawning and joining are measured.
fn nothing(i: usize) {
    black_box(i);
}

/// Measures two functions in turn. In each round, each function runs `times` times and spawns
/// `tasks` tasks each time.
fn compare(
    what: &'static str,
    rounds: usize,
    times: usize,
    tasks: usize,
    ours: impl Fn(usize),
    rayon: impl Fn(usize),
) -> Cost {
    let nanoseconds = |run: &dyn Fn(usize)| {
        let begun = Instant::now();
        run(times);
        begun.elapsed().as_nanos() as f64 / (times * tasks) as f64
    };
    // Run both functions once before the measurement, so that their memory and threads exist.
    nanoseconds(&ours);
    nanoseconds(&rayon);
    let pairs: Vec<(f64, f64)> =
        (0..rounds).map(|_| (nanoseconds(&ours), nanoseconds(&rayon))).collect();
    let spread = |of: fn(&(f64, f64)) -> f64| {
        Spread::of(pairs.iter().map(of)).expect("there is at least one round")
    };
    Cost {
        what,
        ours: spread(|pair| pair.0),
        rayon: spread(|pair| pair.1),
        ratio: spread(|pair| pair.0 / pair.1),
    }
}
