//! The report of the watch for elephants: how each resource was last read.

use bywash_units::TimeSpan;

/// A report of the watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchReport {
    /// The resources that the watch reads, and the slots if requests are counted.
    pub(crate) resources: Vec<ResourceReport>,
    /// The total number of requests that the watch was too slow to count.
    pub(crate) missed: u64,
}

/// The state of one resource in a report.
#[derive(Clone, Debug)]
pub(crate) struct ResourceReport {
    pub(crate) name: String,
    /// The total time for which the resource was observed.
    pub(crate) seen: TimeSpan,
    /// The fraction of the resource's capacity that was used; `None` if nothing was observed yet.
    pub(crate) used: Option<f64>,
    /// The reason why the resource cannot be read; `None` if it can.
    pub(crate) trouble: Option<String>,
}

impl WatchReport {
    /// Returns the time for which requests were compared with the use of resources: that of the
    /// resource observed for longest. Zero if there are no resources.
    pub(crate) fn seen(&self) -> TimeSpan {
        self.resources.iter().map(|one| one.seen).max().unwrap_or(TimeSpan::ZERO)
    }

    /// Returns the total number of requests that the watch was too slow to count.
    pub(crate) const fn missed(&self) -> u64 {
        self.missed
    }

    /// Returns the state of each resource, for operators.
    pub(crate) fn resource_reports(&self) -> Vec<bywash_api::WatchedResource> {
        let resource = |one: &ResourceReport| bywash_api::WatchedResource {
            name: one.name.clone(),
            seen_s: one.seen.as_secs_f64(),
            used: one.used,
            trouble: one.trouble.clone(),
        };
        self.resources.iter().map(resource).collect()
    }
}
