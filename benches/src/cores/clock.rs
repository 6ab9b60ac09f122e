//! What the kernel says of a thread's time: on a core, and waiting for one.

use std::fs;
use std::iter::Sum;
use std::ops::{Add, Sub};
use std::thread;
use std::time::Duration;

/// Time of a thread, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// On a core.
    pub(super) cpu: Duration,
    /// Ready to run while the cores had something else to do.
    pub(super) kept: Duration,
}

impl Spent {
    /// By the calling thread so far.
    ///
    /// # Panics
    /// If `/proc` is not there: nothing can be measured without it.
    pub(super) fn so_far() -> Self {
        // The kernel adds up a thread's time when it leaves the core, and at ticks of 4 ms: yielding
        // makes it do so now.
        thread::yield_now();
        let text = fs::read_to_string("/proc/thread-self/schedstat");
        Self::parse(&text.expect("Linux reports a thread's times")).expect("they are two numbers")
    }

    fn parse(schedstat: &str) -> Option<Self> {
        let mut times = schedstat.split_ascii_whitespace().map(|field| field.parse().ok());
        let mut next = || times.next()?.map(Duration::from_nanos);
        Some(Self { cpu: next()?, kept: next()? })
    }

    /// The share of the time wanted that was spent waiting for a core.
    pub(super) fn waited(self) -> f64 {
        let [cpu, kept] = [self.cpu, self.kept].map(|time| time.as_secs_f64());
        kept / (cpu + kept)
    }
}

impl Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, kept: self.kept + other.kept }
    }
}

impl Sub for Spent {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        let since = |now: Duration, before| now.saturating_sub(before);
        Self { cpu: since(self.cpu, before.cpu), kept: since(self.kept, before.kept) }
    }
}

impl Sum for Spent {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::default(), Self::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedstat_begins_with_the_time_on_a_core_and_the_time_without() {
        let nanos = Duration::from_nanos;
        let spent = Spent { cpu: nanos(24_554_432), kept: nanos(1_093) };
        assert_eq!(Spent::parse("24554432 1093 7\n"), Some(spent));
        assert_eq!(Spent::parse(""), None);
    }

    #[test]
    fn a_thread_that_works_uses_cpu_time() {
        let before = Spent::so_far();
        let mut x = 1_u64;
        while (Spent::so_far() - before).cpu.is_zero() {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
    }
}
