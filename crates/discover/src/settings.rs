//! The settings of a discovery.

use alloc::vec::Vec;

use bywash_units::TimeSpan;

/// The settings of a discovery.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The length of a window: a second, or longer if use is read less often.
    pub step: TimeSpan,
    /// The half-life of windows in the search for candidates.
    pub half_life: TimeSpan,
    /// How long after a window a request may end and still be counted in it.
    pub lag: TimeSpan,
    /// The resources, which are read together.
    pub resources: Vec<Resource>,
}

/// A resource.
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    /// The capacity, in seconds per second: two for two processors.
    pub capacity: f64,
    /// The use without any request, in seconds per second.
    pub idle: f64,
}

impl Settings {
    /// Returns settings with windows of a second and a half-life of half an hour. Requests of up to
    /// 30 s are counted completely.
    pub fn of(resources: Vec<Resource>) -> Self {
        let seconds = TimeSpan::from_secs;
        Self { step: seconds(1), half_life: seconds(1800), lag: seconds(30), resources }
    }

    /// Returns the use in a step beyond the idle use.
    pub(crate) fn beyond_idle(&self, used: &[f64]) -> Vec<f64> {
        let step = self.step.as_secs_f64();
        let both = used.iter().zip(&self.resources);
        both.map(|(used, resource)| used - resource.idle * step).collect()
    }
}
