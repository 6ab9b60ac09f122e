//! The locks and counters of what threads share: the standard library's, whatever is built.
//!
//! `make shuttle` builds the tests with `--cfg shuttle`. Then, and only then, they are those of
//! the library `shuttle` (random and priority-based orders of threads: Burckhardt et al., "A
//! randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010), and the
//! tests named `schedules` run the very same code on one order of the threads' turns after the
//! other. A deadlock there, or a thread that nobody wakes, is a failed test. What shuttle does not
//! show: orders of memory weaker than sequential consistency. All that depends on an order here is
//! under a lock; what is relaxed is a count that nobody decides by.

#[cfg(not(all(test, shuttle)))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(all(test, shuttle))]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};

/// Runs `scene` on many orders of its threads' turns, half of them drawn evenly and half by
/// priorities with three changes; `SCHEDULES` says how many.
#[cfg(all(test, shuttle))]
pub(crate) fn explore(name: &str, scene: fn()) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
    use shuttle::{Config, Runner};

    fn run(scheduler: impl Scheduler + 'static, scene: fn()) -> usize {
        Runner::new(scheduler, Config::new()).run(scene)
    }
    let wanted = std::env::var("SCHEDULES").ok().and_then(|text| text.parse().ok());
    let half = (wanted.unwrap_or(10_000) / 2).max(1);
    let explored = run(RandomScheduler::new(half), scene) + run(PctScheduler::new(3, half), scene);
    println!("{name}: {explored} schedules");
}
