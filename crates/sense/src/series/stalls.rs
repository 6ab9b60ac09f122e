//! For how long tasks had to wait for the processors, for disks or for memory, from the kernel's
//! pressure stall information: `host/pressure/cpu/some`, `cgroup/NAME/pressure/io/full`.
//!
//! «Some»: at least one waited, «full»: all did that had anything to do. The totals are read and not
//! the kernel's averages, so that a use covers just its window. «Full» of a host's processors means
//! nothing (the kernel's `Documentation/accounting/psi.rst`) and is left out.

use super::groups::Group;
use super::resource::{Reading, Unit};
use super::source::{Clock, Root, Source, Taken, Unreadable};
use crate::pressure::Stalled;

/// Of a host, or of a control group.
#[derive(Clone, Debug)]
pub struct Stalls {
    root: Root,
    what: String,
    group: Option<Group>,
}

impl Stalls {
    /// Of all tasks of a host.
    pub fn host(root: Root) -> Self {
        Self { root, what: "/proc/pressure".to_owned(), group: None }
    }

    /// Of the tasks of a control group; version 2 only has them.
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
                .ok_or_else(|| self.root.form(&path, "a line is `some … total=` microseconds"))?;
            let full = stalled.full.filter(|_| of != "cpu" || self.group.is_some());
            for (kind, total) in [("some", Some(stalled.some)), ("full", full)] {
                let Some(total) = total else { continue };
                readings.push(reading(self.resource(of, kind), total as f64 / 1e6));
            }
        }
        Ok(Some(Taken { at, readings }))
    }
}

/// In every second there is one to wait in.
pub(super) fn reading(name: String, waited: f64) -> Reading {
    Reading::counter(name, Unit::Seconds, waited).of(Some(1.0))
}
