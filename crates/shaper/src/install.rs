//! Installs, checks and removes the classes of a device. The privileged program does this.
//!
//! This module keeps no state between two calls, neither in memory nor in a file: it asks the
//! kernel. The root is recognised by its handle, so the next process finds what a killed process
//! has left. The replaced discipline does not have to be saved. Only the kernel's default is ever
//! replaced, and the kernel installs it again when the root is removed.

use std::io::ErrorKind;

use crate::device::Device;
use crate::error::ShaperError;
use crate::htb::{self, Root};
use crate::netlink::Kernel;
use crate::plan::Plan;

/// Shapes the device of `plan` as planned.
///
/// Nothing changes if the plan is already installed. The root of another plan is replaced, and the
/// packets that wait in it are lost.
///
/// # Errors
/// If the device does not exist, the capability is missing, or another program has installed a
/// root. An incomplete installation is removed.
pub fn install(plan: &Plan) -> Result<(), ShaperError> {
    let mut at = DeviceHandle::find(plan.device())?;
    match at.root()? {
        Root::Ours { classes, default }
            if htb::is_as_wanted(&plan.classes(), &classes, default) =>
        {
            return Ok(());
        }
        Root::Ours { .. } => at.delete()?,
        Root::Foreign { kind, handle } => return Err(at.foreign(kind, handle)),
        Root::Default => {}
    }
    at.make_root()?;
    let made = plan.classes().iter().try_for_each(|class| at.make_class(class));
    if made.is_err() {
        // Return the first error and not that of the removal.
        let _ = at.delete();
    }
    made
}

/// Checks that the device of `plan` is shaped as planned. The check needs no capability.
///
/// # Errors
/// The difference from the plan, or the reason why the device cannot be read.
pub fn check(plan: &Plan) -> Result<(), ShaperError> {
    let mut at = DeviceHandle::find(plan.device())?;
    match at.root()? {
        Root::Ours { classes, default }
            if htb::is_as_wanted(&plan.classes(), &classes, default) =>
        {
            Ok(())
        }
        Root::Ours { .. } => Err(ShaperError::Different(plan.device().clone())),
        Root::Foreign { kind, handle } => Err(at.foreign(kind, handle)),
        Root::Default => Err(ShaperError::Missing(plan.device().clone())),
    }
}

/// Removes the root of this crate and its classes from a device. Returns whether there was one. The
/// root of another program stays, and is not an error.
///
/// # Errors
/// If the device does not exist, or the capability is missing.
pub fn remove(device: &Device) -> Result<bool, ShaperError> {
    let mut at = DeviceHandle::find(device)?;
    match at.root()? {
        Root::Ours { .. } => at.delete().map(|()| true),
        Root::Default | Root::Foreign { .. } => Ok(false),
    }
}

/// An existing device with its index, and a netlink socket to the kernel.
struct DeviceHandle<'a> {
    device: &'a Device,
    number: u32,
    kernel: Kernel,
}

impl<'a> DeviceHandle<'a> {
    fn find(device: &'a Device) -> Result<Self, ShaperError> {
        let wrong = |error| ShaperError::of(device, error);
        let kernel = Kernel::open().map_err(wrong)?;
        let number = kernel.device(device.as_str()).map_err(wrong)?;
        let number = number.ok_or_else(|| ShaperError::NoDevice(device.clone()))?;
        Ok(Self { device, number, kernel })
    }

    fn root(&mut self) -> Result<Root, ShaperError> {
        let root = htb::root(&mut self.kernel, self.number);
        root.map_err(|error| ShaperError::of(self.device, error))
    }

    fn make_root(&mut self) -> Result<(), ShaperError> {
        let made = htb::make_root(&mut self.kernel, self.number);
        made.map_err(|error| match error.kind() {
            // If the kernel does not know a kind, it returns "not found".
            ErrorKind::NotFound => ShaperError::NoHtb,
            _ => ShaperError::of(self.device, error),
        })
    }

    fn make_class(&mut self, class: &crate::plan::Class) -> Result<(), ShaperError> {
        let made = htb::make_class(&mut self.kernel, self.number, class);
        made.map_err(|error| ShaperError::of(self.device, error))
    }

    fn delete(&mut self) -> Result<(), ShaperError> {
        let deleted = htb::delete_root(&mut self.kernel, self.number);
        deleted.map_err(|error| ShaperError::of(self.device, error))
    }

    fn foreign(&self, kind: String, number: u32) -> ShaperError {
        ShaperError::Foreign { device: self.device.clone(), kind, number }
    }
}
