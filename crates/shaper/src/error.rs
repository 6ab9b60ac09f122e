//! Errors of shaping a device.

use std::io;

use crate::device::Device;

/// The reason for which a device could not be shaped, or is not shaped as planned.
#[derive(Debug, thiserror::Error)]
pub enum ShaperError {
    /// The device does not exist, or no longer exists.
    #[error("there is no device {0}: `ip link` lists the devices")]
    NoDevice(Device),
    /// The device has a queueing discipline that another program has installed.
    #[error(
        "{device} has a queueing discipline that bywash has not installed, {kind} {}: bywash \
         leaves it alone; if it is not needed, remove it with `tc qdisc del dev {device} \
         root`", handle(*.number)
    )]
    Foreign {
        /// The shaped device.
        device: Device,
        /// The kind of the other discipline: `htb`, `fq_codel`, …
        kind: String,
        /// The handle of the other discipline, as the kernel's number.
        number: u32,
    },
    /// No lanes are installed on the device.
    #[error("no lanes are installed on {0}")]
    Missing(Device),
    /// The rates or classes on the device differ from the plan.
    #[error(
        "the lanes on {0} are not those that are wanted: `bywash shaper install` replaces them"
    )]
    Different(Device),
    /// The process lacks the capability `CAP_NET_ADMIN`.
    #[error("this process may not configure {0}: run it as root, or with CAP_NET_ADMIN")]
    NotPermitted(Device),
    /// The kernel was built without HTB, or its module is missing.
    #[error("this kernel has no HTB: load the module sch_htb")]
    NoHtb,
    /// The kernel returned another error.
    #[error("{device}: {source}")]
    Kernel {
        /// The device that was to be shaped.
        device: Device,
        /// The error that the kernel returned.
        source: io::Error,
    },
}

/// Formats a handle as `tc` does: its major number in hexadecimal, and a colon.
fn handle(number: u32) -> String {
    format!("{:x}:", number >> 16)
}

impl ShaperError {
    /// Converts the kernel's error for `device` into the reason that it indicates.
    pub(crate) fn of(device: &Device, source: io::Error) -> Self {
        let device = device.clone();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted(device),
            Some(libc::ENODEV) => Self::NoDevice(device),
            _ => Self::Kernel { device, source },
        }
    }
}
