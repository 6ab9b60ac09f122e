//! The floor share: a share of the dispatches goes to requests that would otherwise starve.

use bywash_units::Ratio;

/// The counter of the floor share. Each dispatch adds `share` to `earned`. The dispatch that brings
/// `earned` to 1 belongs to the floor share.
#[derive(Debug)]
pub(crate) struct Floor {
    share: Ratio,
    earned: f64,
}

impl Floor {
    pub(crate) const fn new(share: Ratio) -> Self {
        Self { share, earned: 0.0 }
    }

    /// Counts a dispatch. Returns whether this dispatch belongs to the floor share.
    pub(crate) fn due(&mut self) -> bool {
        self.earned += self.share.get();
        let due = self.earned >= 1.0;
        if due {
            self.earned -= 1.0;
        }
        due
    }
}
