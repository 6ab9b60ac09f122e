//! Installing, checking and removing: what the privileged program does.
//!
//! Nothing is remembered between two calls, and no file says what was done: the kernel is asked. Our
//! root is known by its number, so a process that was killed leaves nothing that the next one would
//! not find, and what it replaced needs no note, because only what the kernel chooses by itself is
//! ever replaced, and it does so again when ours goes.

use std::io::ErrorKind;

use crate::device::Device;
use crate::error::ShaperError;
use crate::htb::{self, Root};
use crate::netlink::Kernel;
use crate::plan::Plan;

/// Has the device shaped as planned. What is installed already as wanted is left as it is; ours from
/// another plan is replaced, for which the packets that wait in it are lost, as on a bad line.
///
/// # Errors
/// When there is no such device, no right, or something there that somebody else has installed. What
/// could be made only in part is removed.
pub fn install(plan: &Plan) -> Result<(), ShaperError> {
    let mut at = Place::find(plan.device())?;
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
        // The first error is the one to tell.
        let _ = at.delete();
    }
    made
}

/// Whether the device is shaped as planned.
///
/// # Errors
/// What there is instead. It needs no rights.
pub fn check(plan: &Plan) -> Result<(), ShaperError> {
    let mut at = Place::find(plan.device())?;
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

/// Leaves the device as it was found. True if there was something of ours to remove; what others
/// have installed stays.
///
/// # Errors
/// When there is no such device, or no right.
pub fn remove(device: &Device) -> Result<bool, ShaperError> {
    let mut at = Place::find(device)?;
    match at.root()? {
        Root::Ours { .. } => at.delete().map(|()| true),
        Root::Default | Root::Foreign { .. } => Ok(false),
    }
}

/// A device that is there, and the way to the kernel.
struct Place<'a> {
    device: &'a Device,
    number: u32,
    kernel: Kernel,
}

impl<'a> Place<'a> {
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
            // Of a kind that it does not know, the kernel says that there is no such thing.
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
