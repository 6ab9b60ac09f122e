//! Locks and counters for shared state. Every normal build uses those of the standard library.
//!
//! Tests built by `make shuttle`, with `--cfg shuttle`, use those of the library `shuttle` instead.
//! It runs threads on random and on priority-based schedules (Burckhardt et al., "A randomized
//! scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010). The tests named
//! `schedules` run the same code on many such schedules. A deadlock fails the test, and so does a
//! thread that is never woken.
//!
//! Shuttle does not show memory orders weaker than sequential consistency. Therefore everything
//! here that depends on an order is under a lock. Relaxed atomics are used only for counts on which
//! no decision depends.

#[cfg(not(all(test, shuttle)))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(all(test, shuttle))]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};

/// Runs `scene` on many schedules of its threads. Half of them are uniformly random, and half are
/// priority-based with three changes of priority. The environment variable `SCHEDULES` sets their
/// number.
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
