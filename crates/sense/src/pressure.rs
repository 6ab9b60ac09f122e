//! Measures CPU pressure: the fraction of time in which at least one task was ready to run and had
//! to wait ("some" in the kernel's pressure stall information).
//!
//! The pressure is that of the process's own control group if the kernel provides it, otherwise
//! that of the host. A reading is computed from the total since boot. So it covers exactly the time
//! since the last reading, and not one of the kernel's averaging windows.

use std::io;
use std::time::Instant;

use bywash_units::Ratio;

use crate::grant::own_file;

/// A meter of the CPU pressure between two calls of [`Pressure::read`].
#[derive(Debug, Default)]
pub struct Pressure {
    last: Option<(Instant, u64)>,
}

const HOST: &str = "/proc/pressure/cpu";

impl Pressure {
    /// Returns the fraction of time since the last call in which at least one task waited, or
    /// `None` at the first call.
    ///
    /// # Errors
    /// Returns an error if the kernel provides no pressure because it was built or booted without
    /// it, or if the file has another form.
    pub fn read(&mut self) -> io::Result<Option<Ratio>> {
        let text = std::fs::read_to_string(own_file("cpu.pressure").unwrap_or_else(|| HOST.into()))
            .or_else(|_| std::fs::read_to_string(HOST))?;
        let stalled = Stalled::parse(&text)
            .ok_or_else(|| io::Error::other("the file of pressure has no line `some … total=`"))?;
        let now = (Instant::now(), stalled.some);
        let before = self.last.replace(now);
        Ok(before.map(|(at, stalled)| {
            let passed = now.0.duration_since(at).as_secs_f64();
            Ratio::new(now.1.saturating_sub(stalled) as f64 / 1e6 / passed.max(1e-6))
        }))
    }
}

/// The total time since boot for which tasks had to wait, from a file of pressure stall
/// information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stalled {
    /// The total time in microseconds in which at least one task waited.
    pub(crate) some: u64,
    /// The total time in microseconds in which all tasks with work to do waited, if the kernel
    /// reports it.
    pub(crate) full: Option<u64>,
}

impl Stalled {
    /// Parses `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`, and an optional line `full` of
    /// the same form. Returns `None` if the line `some` is missing or has another form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let total = |kind: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
            line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
        };
        Some(Self { some: total("some ")?, full: total("full ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_are_what_counts() {
        let text = "some avg10=1.00 avg60=2.00 avg300=3.00 total=4567\nfull avg10=0.00 total=9\n";
        assert_eq!(Stalled::parse(text), Some(Stalled { some: 4567, full: Some(9) }));
        assert_eq!(Stalled::parse("some total=1\n").unwrap().full, None, "as older kernels say");
        for strange in ["", "full total=1", "some avg10=1", "some total=-1"] {
            assert_eq!(Stalled::parse(strange), None, "{strange:?}");
        }
    }
}
