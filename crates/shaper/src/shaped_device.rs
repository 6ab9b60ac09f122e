//! A value that keeps a device shaped for its lifetime.

use crate::error::ShaperError;
use crate::install::{check, install, remove};
use crate::plan::Plan;

/// Keeps a device shaped until it is dropped. If the process is killed, the classes stay installed
/// and keep working, and the next [`ShapedDevice::take`] finds them.
#[derive(Debug)]
#[must_use = "dropped, it removes what it has installed"]
pub struct ShapedDevice {
    plan: Plan,
    /// Whether the device was restored by [`Self::end`]. The classes on it may then belong to
    /// another process.
    ended: bool,
}

impl ShapedDevice {
    /// Installs `plan` on its device, with the errors of [`install`].
    pub fn take(plan: Plan) -> Result<Self, ShaperError> {
        install(&plan)?;
        Ok(Self { plan, ended: false })
    }

    /// Checks that the device is still shaped as planned. Nothing is repaired, because another
    /// program or the operator may have had a reason for the change.
    ///
    /// # Errors
    /// The difference from the plan, or the reason why the device cannot be read.
    pub fn check(&self) -> Result<(), ShaperError> {
        check(&self.plan)
    }

    /// Removes the classes from the device, and returns an error if that fails. Dropping the value
    /// does the same and ignores errors.
    pub fn end(mut self) -> Result<(), ShaperError> {
        self.ended = true;
        remove(self.plan.device()).map(drop)
    }
}

impl Drop for ShapedDevice {
    fn drop(&mut self) {
        if !self.ended {
            // There is no caller to return an error to. The next process finds the classes that are
            // left.
            let _ = remove(self.plan.device());
        }
    }
}
