//! Pressure on the CPU: the share of time in which at least one task was ready to run and had to
//! wait («some» of the kernel's pressure stall information).
//!
//! The pressure of the process's own control group if the kernel shows it, else that of the host.
//! What is read is the total since the start, so that a reading covers just the time since the
//! last one and not one of the kernel's windows.

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use bywash_units::Share;

/// Pressure between readings.
#[derive(Debug, Default)]
pub struct Pressure {
    last: Option<(Instant, u64)>,
}

const HOST: &str = "/proc/pressure/cpu";

impl Pressure {
    /// The share of time in which somebody waited since the last call; `None` at the first.
    ///
    /// # Errors
    /// When the kernel shows no pressure (it was built or started without), or in another form.
    pub fn read(&mut self) -> io::Result<Option<Share>> {
        let text = std::fs::read_to_string(own_file().unwrap_or_else(|| HOST.into()))
            .or_else(|_| std::fs::read_to_string(HOST))?;
        let stalled = parse(&text)
            .ok_or_else(|| io::Error::other("the file of pressure has no line `some … total=`"))?;
        let now = (Instant::now(), stalled);
        let before = self.last.replace(now);
        Ok(before.map(|(at, stalled)| {
            let passed = now.0.duration_since(at).as_secs_f64();
            Share::new(now.1.saturating_sub(stalled) as f64 / 1e6 / passed.max(1e-6))
        }))
    }
}

/// The pressure of this process's control group (version 2).
fn own_file() -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let file = PathBuf::from("/sys/fs/cgroup").join(group).join("cpu.pressure");
    file.exists().then_some(file)
}

/// Microseconds of `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`.
fn parse(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_some_is_what_counts() {
        let text = "some avg10=1.00 avg60=2.00 avg300=3.00 total=4567\nfull avg10=0.00 total=9\n";
        assert_eq!(parse(text), Some(4567));
        for strange in ["", "full total=1", "some avg10=1", "some total=-1"] {
            assert_eq!(parse(strange), None, "{strange:?}");
        }
    }
}
