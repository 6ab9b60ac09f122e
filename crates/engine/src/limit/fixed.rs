//! The concurrency policy `fixed`: a constant number of slots, as the worker pool of paper 1 and
//! every proxy have it.

use bywash_units::Time;

use super::LimitSettings;
use super::{Ended, Limit, Load};

/// The concurrency policy `fixed`, for operators who know the right number of slots.
#[derive(Debug)]
pub struct Fixed {
    slots: u32,
}

impl Fixed {
    /// Creates the limit from `settings`, the values of its parameters.
    pub fn new(settings: &LimitSettings) -> Self {
        Self { slots: settings.count("slots") }
    }
}

impl Limit for Fixed {
    fn slots(&self) -> u32 {
        self.slots
    }

    fn ended(&mut self, _: Time, _: Load, _: Ended) {}
}
