//! How much of the CPU time of this host was in use, from `/proc/stat`.

use std::io;

use bywash_units::Share;

/// CPU utilisation between readings.
#[derive(Debug, Default)]
pub struct Cpu {
    last: Option<Jiffies>,
}

/// CPU time since boot, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Jiffies {
    busy: u64,
    all: u64,
}

impl Cpu {
    /// The share of CPU time in use since the last call; `None` at the first.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read or has another form.
    pub fn read(&mut self) -> io::Result<Option<Share>> {
        let now = parse(&std::fs::read_to_string("/proc/stat")?).ok_or_else(|| {
            io::Error::other("/proc/stat does not begin with a line of cpu times")
        })?;
        let before = self.last.replace(now);
        Ok(before.and_then(|before| between(before, now)))
    }
}

fn between(before: Jiffies, now: Jiffies) -> Option<Share> {
    let all = now.all.checked_sub(before.all).filter(|all| *all > 0)?;
    Some(Share::new(now.busy.saturating_sub(before.busy) as f64 / all as f64))
}

/// `cpu  user nice system idle iowait irq softirq steal guest guest_nice`: idle and iowait are
/// not in use; guest time is in user time already.
fn parse(stat: &str) -> Option<Jiffies> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let times: Vec<u64> =
        line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let all = times.iter().sum();
    let idle = times.get(3)? + times.get(4).unwrap_or(&0);
    Some(Jiffies { busy: all - idle, all })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_disks_is_not_use() {
        let before = parse("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2").unwrap();
        let after = parse("cpu  150 0 120 880 50 0 0 0 99 99\n").unwrap();
        let share = between(before, after).unwrap();
        assert!((share.get() - 0.35).abs() < 1e-9, "{share}");
    }

    #[test]
    fn a_strange_file_is_no_reading() {
        for text in ["", "cpu", "cpu  a b c d", "intr 5", "cpu  1 2 3"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_first_reading_of_this_machine_has_nothing_to_compare_with() {
        assert_eq!(Cpu::default().read().unwrap(), None);
    }
}
