//! A device that is shaped for the lifetime of a value.

use crate::error::ShaperError;
use crate::install::{check, install, remove};
use crate::plan::Plan;

/// Keeps a device shaped until it is dropped. If the process is killed, the classes stay installed
/// and keep working, and the next [`ShapedDevice::take`] finds them.
#[derive(Debug)]
#[must_use = "dropped, it removes what it has installed"]
pub struct ShapedDevice {
    plan: Plan,
    /// Whether the device was released. The classes on it may then belong to another process.
    ended: bool,
}

impl ShapedDevice {
    /// Installs the plan; see [`install`].
    pub fn take(plan: Plan) -> Result<Self, ShaperError> {
        install(&plan)?;
        Ok(Self { plan, ended: false })
    }

    /// Checks that everything is still as planned. Nothing is repaired, because another program or
    /// the operator may have had a reason to change it.
    ///
    /// # Errors
    /// The difference from the plan.
    pub fn check(&self) -> Result<(), ShaperError> {
        check(&self.plan)
    }

    /// Restores the device, and returns an error if that fails.
    pub fn end(mut self) -> Result<(), ShaperError> {
        self.ended = true;
        remove(self.plan.device()).map(drop)
    }
}

impl Drop for ShapedDevice {
    fn drop(&mut self) {
        if !self.ended {
            // There is no caller to return an error to. The next process will find what is left.
            let _ = remove(self.plan.device());
        }
    }
}
