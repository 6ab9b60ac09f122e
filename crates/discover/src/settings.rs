//! The settings of a discovery.

use alloc::vec::Vec;

use bywash_units::TimeSpan;

/// The settings of a [`Discovery`](crate::Discovery).
#[derive(Clone, Debug)]
pub struct Settings {
    /// The length of a short window. It is a second, or longer if the use of resources is read less
    /// often.
    pub step: TimeSpan,
    /// The half-life of the weights of windows in the search for candidates.
    pub half_life: TimeSpan,
    /// The time from the end of a window until it closes. A request that ends after that is not
    /// counted in the window.
    pub lag: TimeSpan,
    /// The resources whose use is observed. They are all read at the same times.
    pub resources: Vec<Resource>,
}

/// A resource that requests use, such as the processors of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    /// The capacity, in seconds of the resource per second: 2 for two processors.
    pub capacity: f64,
    /// The use without any request, in seconds of the resource per second.
    pub idle: f64,
}

impl Settings {
    /// Creates settings with windows of one second, a half-life of half an hour and a lag of 30 s.
    /// Therefore requests of up to 30 s are counted completely.
    pub fn of(resources: Vec<Resource>) -> Self {
        let seconds = TimeSpan::from_secs;
        Self { step: seconds(1), half_life: seconds(1800), lag: seconds(30), resources }
    }

    /// Returns the use of each resource in one step beyond its idle use.
    pub(crate) fn beyond_idle(&self, used: &[f64]) -> Vec<f64> {
        let step = self.step.as_secs_f64();
        let both = used.iter().zip(&self.resources);
        both.map(|(used, resource)| used - resource.idle * step).collect()
    }
}
