//! A device that is shaped for as long as somebody holds it.

use crate::error::ShaperError;
use crate::install::{check, install, remove};
use crate::plan::Plan;

/// Shaped until this is dropped. A process that is killed leaves its work behind, which goes on
/// without it, and which the next [`Held::take`] finds.
#[derive(Debug)]
#[must_use = "dropped, it removes what it has installed"]
pub struct Held {
    plan: Plan,
    /// What is on the device from then on may be the next one's.
    ended: bool,
}

impl Held {
    /// Installs what is planned; see [`install`].
    pub fn take(plan: Plan) -> Result<Self, ShaperError> {
        install(&plan)?;
        Ok(Self { plan, ended: false })
    }

    /// Whether everything is still as planned. Nothing is repaired: whoever has changed it may have
    /// had a reason.
    ///
    /// # Errors
    /// What there is instead.
    pub fn check(&self) -> Result<(), ShaperError> {
        check(&self.plan)
    }

    /// Leaves the device as it was found, and says if that fails.
    pub fn end(mut self) -> Result<(), ShaperError> {
        self.ended = true;
        remove(self.plan.device()).map(drop)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.ended {
            // Nobody is there to tell; the next one will find what is left.
            let _ = remove(self.plan.device());
        }
    }
}
