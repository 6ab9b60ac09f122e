//! Always the same number: the worker pool of seed 1, and what every proxy has as a setting.

use bywash_units::Time;

use super::{Ended, Limit, Load};
use crate::catalog::LimitSettings;

/// A number of slots that somebody knows to be right.
#[derive(Debug)]
pub struct Fixed {
    slots: u32,
}

impl Fixed {
    /// As the catalogue's parameters say.
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
