//! The report of the watch: how each resource was last read.

use bywash_units::TimeSpan;

/// The state of the watch when it last reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    pub(crate) resources: Vec<Looked>,
    pub(crate) missed: u64,
}

/// A resource, as last read.
#[derive(Clone, Debug)]
pub(crate) struct Looked {
    pub(crate) name: String,
    pub(crate) seen: TimeSpan,
    pub(crate) used: Option<f64>,
    pub(crate) trouble: Option<String>,
}

impl Sight {
    /// Returns for how long requests were compared with resources.
    pub(crate) fn seen(&self) -> TimeSpan {
        self.resources.iter().map(|one| one.seen).max().unwrap_or(TimeSpan::ZERO)
    }

    /// The number of requests that the watch was too slow to count.
    pub(crate) const fn missed(&self) -> u64 {
        self.missed
    }

    /// Returns the resources for operators.
    pub(crate) fn looked(&self) -> Vec<bywash_api::Looked> {
        let resource = |one: &Looked| bywash_api::Looked {
            name: one.name.clone(),
            seen_s: one.seen.as_secs_f64(),
            used: one.used,
            trouble: one.trouble.clone(),
        };
        self.resources.iter().map(resource).collect()
    }
}
