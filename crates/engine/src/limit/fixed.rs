//! A constant limit: the worker pool of paper 1, and a setting of every proxy.

use bywash_units::Time;

use super::LimitSettings;
use super::{Ended, Limit, Load};

/// A number of slots that the operator knows to be right.
#[derive(Debug)]
pub struct Fixed {
    slots: u32,
}

impl Fixed {
    /// Creates the limit from the catalogue's parameters.
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
