//! A floor: a share of the dispatches goes to requests that would otherwise starve.

use bywash_units::Ratio;

/// Earns `share` of a floor dispatch with every dispatch, and reports when one is due.
#[derive(Debug)]
pub(crate) struct Floor {
    share: Ratio,
    earned: f64,
}

impl Floor {
    pub(crate) const fn new(share: Ratio) -> Self {
        Self { share, earned: 0.0 }
    }

    /// Counts a dispatch. Returns whether it is due to the floor.
    pub(crate) fn due(&mut self) -> bool {
        self.earned += self.share.get();
        let due = self.earned >= 1.0;
        if due {
            self.earned -= 1.0;
        }
        due
    }
}
