//! Measures the busy time of a host's processors from `/proc/stat`: `host/cpu`, in seconds.
//!
//! Time in programs, in the kernel and in interrupts is busy. Time that waits for a disk (iowait)
//! is not busy, because the processor would have run any other task. Time that the hypervisor gave
//! to other virtual machines (steal) is not busy either, because no request on this host has used
//! it. So a host with much steal has less than its nominal capacity.
//!
//! In a container, the times are those of the host, unless a tool such as lxcfs provides another
//! file. See [`Group`](super::Group) for the times of the container.

use super::resource::{Reading, Unit};
use super::source::{Clock, Root, Source, Taken, Unreadable};
use crate::cpu::{PER_SECOND, Ticks};

/// A [`Source`] that measures all processors of a host together.
#[derive(Clone, Debug)]
pub struct Processors {
    root: Root,
}

const STAT: &str = "proc/stat";

impl Processors {
    /// Creates a source for the host whose `proc` folder is in `root`.
    pub const fn new(root: Root) -> Self {
        Self { root }
    }
}

impl Source for Processors {
    fn name(&self) -> &'static str {
        "/proc/stat"
    }

    fn read(&mut self, clock: &Clock) -> Result<Option<Taken>, Unreadable> {
        let ticks = ticks(&self.root)?;
        let busy = ticks.busy as f64 / PER_SECOND;
        let reading = Reading::counter("host/cpu".to_owned(), Unit::Seconds, busy)
            .of(Some(f64::from(ticks.processors)));
        Ok(Some(Taken { at: clock.now(), readings: vec![reading] }))
    }
}

/// Returns the number of processors of a host, from `/proc/stat`.
pub(super) fn count(root: &Root) -> Result<f64, Unreadable> {
    Ok(f64::from(ticks(root)?.processors))
}

fn ticks(root: &Root) -> Result<Ticks, Unreadable> {
    let stat = root.text(STAT)?;
    Ticks::parse(&stat).ok_or_else(|| root.form(STAT, "the line of all processors first"))
}
