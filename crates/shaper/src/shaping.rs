//! The ways in which elephants' responses can be limited, and the reasons why a better way is
//! missing.

use std::fmt;
use std::os::fd::AsFd;

use socket2::{Domain, SockRef, Socket, Type};

use crate::htb;
use crate::netlink::Kernel;
use crate::plan::ELEPHANTS;
use crate::sys;

/// The way in which elephants' responses are limited. `Display` describes it for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shaping {
    /// The responses of all connections leave by their own class, which limits their total rate.
    Priority,
    /// Each connection is paced by itself, so the total is up to the rate times the number of
    /// connections.
    Pacing(Without),
    /// The responses are not limited: there is no lane, and pacing is not configured or not
    /// supported by the kernel.
    Nothing(Without),
}

/// The reason why a response has no lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// No device has the classes of this crate.
    NotInstalled,
    /// The classes exist, but this process lacks the capability to use them.
    NotPermitted,
    /// The process cannot read the state of devices, because its sandbox does not allow
    /// `AF_NETLINK`.
    Unseen,
    /// There are classes, but this connection leaves by a device without them.
    Elsewhere,
}

impl Without {
    /// All reasons. The index of a reason in this list is its number.
    pub const ALL: [Self; 4] =
        [Self::NotInstalled, Self::NotPermitted, Self::Unseen, Self::Elsewhere];

    /// Returns the name of the reason, as metrics and logs show it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotInstalled => "not_installed",
            Self::NotPermitted => "not_permitted",
            Self::Unseen => "unseen",
            Self::Elsewhere => "elsewhere",
        }
    }
}

impl Shaping {
    /// Returns the reason why there is no lane; `None` if there is one.
    pub const fn without(self) -> Option<Without> {
        match self {
            Self::Priority => None,
            Self::Pacing(without) | Self::Nothing(without) => Some(without),
        }
    }

    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Priority => 0,
            Self::Pacing(without) => 1 + without as u8,
            Self::Nothing(without) => 1 + (Without::ALL.len() + without as usize) as u8,
        }
    }

    pub(crate) fn of_number(number: u8) -> Self {
        let Some(index) = usize::from(number).checked_sub(1) else { return Self::Priority };
        match Without::ALL.get(index) {
            Some(without) => Self::Pacing(*without),
            None => Self::Nothing(Without::ALL[index - Without::ALL.len()]),
        }
    }

    /// Returns the state for a process that does not use pacing. [`Self::Pacing`] becomes
    /// [`Self::Nothing`] with the same reason. Any other state stays.
    pub(crate) const fn unpaced(self) -> Self {
        match self {
            Self::Pacing(without) => Self::Nothing(without),
            other => other,
        }
    }

    /// Determines the present state, and the indices of the devices that have the classes. This
    /// function asks the kernel about the devices, and tries with a socket whether this process has
    /// the capability. It does not check whether the program that installed the classes still runs,
    /// because the classes work without that program.
    pub(crate) fn here() -> (Self, Vec<u32>) {
        let devices = Kernel::open().and_then(|mut kernel| htb::devices(&mut kernel));
        let without = match &devices {
            Ok(devices) if devices.is_empty() => Without::NotInstalled,
            Ok(_) => Without::NotPermitted,
            Err(_) => Without::Unseen,
        };
        let shaping = Self::of_socket(without);
        (shaping, devices.unwrap_or_default())
    }

    fn of_socket(without: Without) -> Self {
        // Try on a socket of the kind that is to be limited. It is never connected.
        let Ok(scratch) = Socket::new(Domain::IPV4, Type::STREAM, None) else {
            return Self::Nothing(without);
        };
        if without == Without::NotPermitted
            && SockRef::from(&scratch).set_priority(ELEPHANTS).is_ok()
        {
            return Self::Priority;
        }
        match sys::set_max_pacing_rate(scratch.as_fd(), u64::MAX) {
            Ok(()) => Self::Pacing(without),
            Err(_) => Self::Nothing(without),
        }
    }
}

impl fmt::Display for Shaping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Priority => f.write_str("elephants' answers leave by a lane of their own"),
            Self::Pacing(without) => write!(f, "elephants' answers are paced: {without}"),
            Self::Nothing(without) => {
                write!(f, "elephants' answers have no lane and are not paced: {without}")
            }
        }
    }
}

impl fmt::Display for Without {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotInstalled => "no device has a lane for them; see `bywash shaper`",
            Self::NotPermitted => {
                "there is a lane for them, but CAP_NET_RAW is missing (before Linux 5.17: CAP_NET_ADMIN)"
            }
            Self::Unseen => "without AF_NETLINK, the gateway cannot see whether they have a lane",
            Self::Elsewhere => "the device by which they leave has no lane for them",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_again_by_its_number() {
        let each = Without::ALL.into_iter();
        let paced = each.clone().map(Shaping::Pacing);
        let all = [Shaping::Priority].into_iter().chain(paced).chain(each.map(Shaping::Nothing));
        for (index, shaping) in all.enumerate() {
            assert_eq!(usize::from(shaping.number()), index);
            assert_eq!(Shaping::of_number(shaping.number()), shaping);
        }
    }
}
