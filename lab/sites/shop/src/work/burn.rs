//! Occupies a worker for exactly the demand of a request.
//!
//! The two methods ([`Burner`]) compute the end of the work once, at the start, so that errors of
//! single steps do not add up. Between steps they check whether the work was aborted.

use std::fs::File;
use std::hint::spin_loop;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use crate::Burn;

/// The maximum expected delay with which a sleeping thread wakes: the kernel's timer slack of 50
/// µs, and another 50 µs until a processor is free. The thread ends its sleep earlier by this time,
/// and spins for the rest.
const OVERSLEEP: Duration = Duration::from_micros(100);

/// The CPU time that a thread spins between two readings of its clock. Each reading is a system
/// call of a few µs.
const SPIN: Duration = Duration::from_micros(200);

/// The error of work that was aborted before its demand was spent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Aborted;

/// The method by which a worker spends the demand of a request. The worker's own thread must create
/// it.
#[derive(Debug)]
pub(super) enum Burner {
    Timer,
    Cpu(ThreadClock),
}

impl Burner {
    pub(super) fn new(burn: Burn) -> Self {
        match burn {
            Burn::Timer => Self::Timer,
            Burn::Cpu => Self::Cpu(ThreadClock::new()),
        }
    }

    /// Occupies this thread for `demand`. Calls `is_aborted` before every step, and fails as soon
    /// as `is_aborted` returns true. With [`Burner::Timer`], no step is longer than `step`.
    pub(super) fn burn(
        &self,
        demand: Duration,
        step: Duration,
        is_aborted: impl Fn() -> bool,
    ) -> Result<(), Aborted> {
        match self {
            Self::Timer => wait_until(Instant::now() + demand, step, is_aborted),
            Self::Cpu(clock) => clock.spin_until(clock.now() + demand, is_aborted),
        }
    }
}

fn wait_until(end: Instant, step: Duration, is_aborted: impl Fn() -> bool) -> Result<(), Aborted> {
    loop {
        if is_aborted() {
            return Err(Aborted);
        }
        let left = end.saturating_duration_since(Instant::now()).saturating_sub(OVERSLEEP);
        if left.is_zero() {
            break;
        }
        thread::sleep(left.min(step));
    }
    spin(end);
    Ok(())
}

fn spin(end: Instant) {
    while Instant::now() < end {
        spin_loop();
    }
}

/// A clock of the CPU time of the thread that created it.
///
/// The time is read from `/proc/thread-self/schedstat`, whose first number is nanoseconds on a
/// processor (Linux, Documentation/scheduler/sched-stats.rst). `clock_gettime` would need unsafe
/// code. If the kernel does not offer this file, the clock uses elapsed time. Elapsed time equals
/// CPU time while there are no more workers than processors.
#[derive(Debug)]
pub(super) struct ThreadClock {
    schedstat: Option<File>,
    made: Instant,
}

impl ThreadClock {
    fn new() -> Self {
        let schedstat = File::open("/proc/thread-self/schedstat").ok();
        Self { schedstat, made: Instant::now() }
    }

    fn spin_until(&self, end: Duration, is_aborted: impl Fn() -> bool) -> Result<(), Aborted> {
        loop {
            if is_aborted() {
                return Err(Aborted);
            }
            let left = end.saturating_sub(self.now());
            if left.is_zero() {
                return Ok(());
            }
            spin(Instant::now() + left.min(SPIN));
        }
    }

    fn now(&self) -> Duration {
        self.schedstat.as_ref().and_then(on_processor).unwrap_or_else(|| self.made.elapsed())
    }
}

fn on_processor(schedstat: &File) -> Option<Duration> {
    let mut text = [0; 64];
    let length = schedstat.read_at(&mut text, 0).ok()?;
    let first = text[..length].split(u8::is_ascii_whitespace).next()?;
    str::from_utf8(first).ok()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const STEP: Duration = Duration::from_millis(5);

    #[test]
    fn a_demand_is_never_cut_short() {
        for burn in [Burn::Timer, Burn::Cpu] {
            let begun = Instant::now();
            let demand = Duration::from_millis(12);
            Burner::new(burn).burn(demand, STEP, || false).unwrap();
            assert!(begun.elapsed() >= demand, "{burn:?}");
        }
    }

    #[test]
    fn work_is_broken_off_at_the_next_look() {
        for burn in [Burn::Timer, Burn::Cpu] {
            let looks = Cell::new(0);
            let third = || looks.replace(looks.get() + 1) == 2;
            let outcome = Burner::new(burn).burn(Duration::from_secs(60), STEP, third);
            assert_eq!((outcome, looks.get()), (Err(Aborted), 3), "{burn:?}");
        }
    }

    #[test]
    fn even_no_demand_is_looked_at_once() {
        for burn in [Burn::Timer, Burn::Cpu] {
            assert_eq!(Burner::new(burn).burn(Duration::ZERO, STEP, || true), Err(Aborted));
        }
    }
}
