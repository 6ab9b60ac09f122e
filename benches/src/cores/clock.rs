//! CPU time of a thread, and what others had of the machine meanwhile.

use std::fs;
use std::time::Duration;

use crate::procfs::{self, MachineTicks};

/// CPU time that the calling thread has used.
///
/// # Panics
/// If `/proc` is not there: nothing can be measured without it.
pub(super) fn thread_cpu() -> Duration {
    // The kernel adds up a thread's time when it leaves the core, and at ticks of 4 ms: yielding
    // makes it do so now.
    std::thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat");
    let text = text.expect("Linux says what CPU time a thread has used");
    Duration::from_nanos(parse(&text).expect("the first field is nanoseconds"))
}

fn parse(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().next()?.parse().ok()
}

/// Watches the whole machine for a while.
pub(super) struct Quiet(Option<MachineTicks>);

impl Quiet {
    pub(super) fn start() -> Self {
        Self(procfs::machine_ticks().ok())
    }

    /// The share of the machine's time that was neither idle nor `own`. Counted in ticks of 10 ms.
    pub(super) fn disturbed(self, own: Duration) -> f64 {
        let Some((before, after)) = self.0.zip(procfs::machine_ticks().ok()) else { return 1.0 };
        let busy = after.worked + after.stolen - before.worked - before.stolen;
        let others = procfs::micros(busy) - own.as_secs_f64() * 1e6;
        (others / procfs::micros(after.total - before.total)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedstat_begins_with_the_time_on_a_core() {
        assert_eq!(parse("24554432 1093 7\n"), Some(24_554_432));
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_thread_that_works_uses_cpu_time() {
        let before = thread_cpu();
        let mut x = 1_u64;
        while thread_cpu() == before {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
    }
}
