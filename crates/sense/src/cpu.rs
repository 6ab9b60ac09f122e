//! Measures the CPU utilisation of this host from `/proc/stat`.

use std::io;

use bywash_units::Ratio;

/// A meter of the CPU utilisation of this host between two calls of [`Cpu::read`].
#[derive(Debug, Default)]
pub struct Cpu {
    last: Option<Ticks>,
}

/// The number of clock ticks per second in the files of `/proc`: the kernel's `USER_HZ`. It does
/// not depend on the kernel's own clock, and is 100 on every Linux architecture that Rust's
/// standard library supports.
pub(crate) const PER_SECOND: f64 = 100.0;

/// The total CPU time of all processors since boot, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// The ticks spent in programs, in the kernel and in interrupts.
    pub(crate) busy: u64,
    /// The ticks in which a task was ready to run, but the hypervisor ran another virtual machine
    /// ("steal").
    pub(crate) stolen: u64,
    /// The total number of ticks, including those spent idle and waiting for disks.
    pub(crate) all: u64,
    pub(crate) processors: u32,
}

impl Cpu {
    /// Returns the fraction of CPU time that was in use since the last call, or `None` at the first
    /// call. Time that the hypervisor gave to other virtual machines counts as used, because this
    /// host cannot have it.
    ///
    /// # Errors
    /// Returns an error if `/proc/stat` cannot be read or has another form.
    pub fn read(&mut self) -> io::Result<Option<Ratio>> {
        let now = Ticks::parse(&std::fs::read_to_string("/proc/stat")?).ok_or_else(|| {
            io::Error::other("/proc/stat does not begin with a line of cpu times")
        })?;
        let before = self.last.replace(now);
        Ok(before.and_then(|before| between(before, now)))
    }
}

fn between(before: Ticks, now: Ticks) -> Option<Ratio> {
    let all = now.all.checked_sub(before.all).filter(|all| *all > 0)?;
    let used = (now.busy + now.stolen).saturating_sub(before.busy + before.stolen);
    Some(Ratio::new(used as f64 / all as f64))
}

impl Ticks {
    /// Parses the content of `/proc/stat`: `cpu  user nice system idle iowait irq softirq steal
    /// guest guest_nice`, followed by a line for each processor. The columns `idle` and `iowait` do
    /// not count as use. The column `guest` is already part of `user` (`proc_stat(5)`). Returns
    /// `None` if the content has another form.
    pub(crate) fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let times: Vec<u64> =
            line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let all = times.iter().try_fold(0_u64, |sum, time| sum.checked_add(*time))?;
        let stolen = times.get(7).copied().unwrap_or(0);
        let idle = times.get(3)? + times.get(4).unwrap_or(&0);
        let is_one = |line: &&str| {
            line.strip_prefix("cpu")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let processors = stat.lines().skip(1).take_while(is_one).count() as u32;
        Some(Self { busy: all - idle - stolen, stolen, all, processors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_disks_is_not_use() {
        let before = Ticks::parse("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2").unwrap();
        let after = Ticks::parse("cpu  150 0 120 880 50 0 0 0 99 99\n").unwrap();
        let share = between(before, after).unwrap();
        assert!((share.get() - 0.35).abs() < 1e-9, "{share}");
    }

    #[test]
    fn what_the_hypervisor_gave_to_others_is_told_apart() {
        let stat = "cpu  10 1 5 100 7 2 3 40 9 9\ncpu0 1\ncpu1 1\nintr 5\ncpu2 1\n";
        let ticks = Ticks::parse(stat).unwrap();
        assert_eq!(ticks, Ticks { busy: 21, stolen: 40, all: 168, processors: 2 });
    }

    #[test]
    fn a_strange_file_is_no_reading() {
        let most = u64::MAX;
        let too_much = format!("cpu  {most} {most} {most} {most} {most} 0 0 0");
        for text in ["", "cpu", "cpu  a b c d", "intr 5", "cpu  1 2 3", "cpu  1 -2 3 4", &too_much]
        {
            assert_eq!(Ticks::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_first_reading_of_this_machine_has_nothing_to_compare_with() {
        assert_eq!(Cpu::default().read().unwrap(), None);
    }
}
