//! A floor: so that no one starves, a share of what is given goes to who would not get it.

use bywash_units::Share;

/// Earns `share` of a floor dispatch with every dispatch, and says when one is due.
#[derive(Debug)]
pub(crate) struct Floor {
    share: Share,
    earned: f64,
}

impl Floor {
    pub(crate) const fn new(share: Share) -> Self {
        Self { share, earned: 0.0 }
    }

    /// Something is given: whether this is due to the floor.
    pub(crate) fn due(&mut self) -> bool {
        self.earned += self.share.get();
        let due = self.earned >= 1.0;
        if due {
            self.earned -= 1.0;
        }
        due
    }
}
