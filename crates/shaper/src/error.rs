//! Why a device is not shaped as wanted.

use std::io;

use crate::device::Device;

/// Why a device could not be shaped, is not, or not as wanted.
#[derive(Debug, thiserror::Error)]
pub enum ShaperError {
    /// There is no such device, or not any more.
    #[error("there is no device {0}: `ip link` lists those that there are")]
    NoDevice(Device),
    /// Somebody else has installed something there.
    #[error(
        "{device} has a queueing discipline that is not ours, {kind} {}: it is left alone; if nobody \
         needs it, remove it with `tc qdisc del dev {device} root`", handle(*.number)
    )]
    Foreign {
        /// Where.
        device: Device,
        /// `htb`, `fq_codel`, …
        kind: String,
        /// Its handle.
        number: u32,
    },
    /// Nothing of ours is there.
    #[error("nothing is installed on {0}")]
    Missing(Device),
    /// Ours is there, with other rates or classes than are wanted.
    #[error("what is installed on {0} is not what is wanted: `bywash shaper install` replaces it")]
    Different(Device),
    /// The process lacks the right.
    #[error("the right to configure {0} is missing: run as root, or with CAP_NET_ADMIN")]
    NotPermitted(Device),
    /// The kernel was built without HTB, or its module is not there.
    #[error("this kernel has no HTB: load the module sch_htb")]
    NoHtb,
    /// The kernel would not.
    #[error("{device}: {source}")]
    Kernel {
        /// Where.
        device: Device,
        /// Its answer.
        source: io::Error,
    },
}

/// As `tc` writes it.
fn handle(number: u32) -> String {
    format!("{:x}:", number >> 16)
}

impl ShaperError {
    /// What the kernel's answer means for `device`.
    pub(crate) fn of(device: &Device, source: io::Error) -> Self {
        let device = device.clone();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted(device),
            Some(libc::ENODEV) => Self::NoDevice(device),
            _ => Self::Kernel { device, source },
        }
    }
}
