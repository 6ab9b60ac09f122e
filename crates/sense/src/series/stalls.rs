//! Measures how long tasks had to wait for the processors, for disks or for memory, from the
//! kernel's pressure stall information: `host/pressure/cpu/some`, `cgroup/NAME/pressure/io/full`.
//!
//! "Some" is the time in which at least one task waited. "Full" is the time in which all tasks with
//! work to do waited. The totals are read instead of the kernel's averages, so that a use covers
//! exactly its window. "Full" is undefined for the processors of a host (the kernel's
//! `Documentation/accounting/psi.rst`) and is left out.

use super::groups::Group;
use super::resource::{Reading, Unit};
use super::source::{Clock, Root, Source, Taken, Unreadable};
use crate::pressure::Stalled;

/// A [`Source`] that measures the pressure on a host or on a control group.
#[derive(Clone, Debug)]
pub struct Stalls {
    root: Root,
    what: String,
    group: Option<Group>,
}

impl Stalls {
    /// Creates a source for all tasks of the host in `root`.
    pub fn host(root: Root) -> Self {
        Self { root, what: "/proc/pressure".to_owned(), group: None }
    }

    /// Creates a source for the tasks of a control group. Only groups of version 2 have pressure
    /// files.
    pub fn group(group: Group) -> Self {
        let what = format!("pressure of {}", group.name());
        Self { root: group.root().clone(), what, group: Some(group) }
    }

    fn path(&self, of: &str) -> String {
        match &self.group {
            None => format!("proc/pressure/{of}"),
            Some(group) => group.unified(&format!("{of}.pressure")),
        }
    }

    fn resource(&self, of: &str, kind: &str) -> String {
        match &self.group {
            None => format!("host/pressure/{of}/{kind}"),
            Some(group) => group.resource(&format!("pressure/{of}/{kind}")),
        }
    }
}

impl Source for Stalls {
    fn name(&self) -> &str {
        &self.what
    }

    fn read(&mut self, clock: &Clock) -> Result<Option<Taken>, Unreadable> {
        let mut readings = Vec::new();
        let at = clock.now();
        for of in ["cpu", "io", "memory"] {
            let path = self.path(of);
            let stalled = Stalled::parse(&self.root.text(&path)?)
                .ok_or_else(|| self.root.form(&path, "a line `some … total=MICROSECONDS`"))?;
            let full = stalled.full.filter(|_| of != "cpu" || self.group.is_some());
            for (kind, total) in [("some", Some(stalled.some)), ("full", full)] {
                let Some(total) = total else { continue };
                readings.push(reading(self.resource(of, kind), total as f64 / 1e6));
            }
        }
        Ok(Some(Taken { at, readings }))
    }
}

/// Returns the counter reading of the resource `name`, for which tasks waited `waited` seconds in
/// total. Its capacity is one second per second.
pub(super) fn reading(name: String, waited: f64) -> Reading {
    Reading::counter(name, Unit::Seconds, waited).of(Some(1.0))
}
