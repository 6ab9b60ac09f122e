//! The processors of a host, from `/proc/stat`: `host/cpu`.
//!
//! Busy is time in programs, in the kernel and in interrupts. Waiting for a disk (iowait) is not: the
//! processor would have run anything else meanwhile. What the hypervisor gave to other machines (steal)
//! is not either: no request here has used it. On a host from which much is stolen there is therefore
//! less than the capacity.
//!
//! In a container it is the host's time unless something like lxcfs shows another file; the container's
//! own is [`Group`](super::Group)'s.

use super::resource::{Reading, Unit};
use super::source::{Clock, Root, Source, Taken, Unreadable};
use crate::cpu::{PER_SECOND, Ticks};

/// All processors of a host.
#[derive(Clone, Debug)]
pub struct Processors {
    root: Root,
}

const STAT: &str = "proc/stat";

impl Processors {
    /// Of the host whose `proc` that is.
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

/// How many a host has.
pub(super) fn count(root: &Root) -> Result<f64, Unreadable> {
    Ok(f64::from(ticks(root)?.processors))
}

fn ticks(root: &Root) -> Result<Ticks, Unreadable> {
    let stat = root.text(STAT)?;
    Ticks::parse(&stat).ok_or_else(|| root.form(STAT, "it begins with the line of all processors"))
}
