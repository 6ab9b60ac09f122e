//! What can be done here about answers that fill the network, and why no more.

use std::fmt;
use std::os::fd::AsFd;

use socket2::{Domain, SockRef, Socket, Type};

use crate::htb;
use crate::netlink::Kernel;
use crate::plan::ELEPHANTS;
use crate::sys;

/// How elephants' answers are held back; `Display` says it in a sentence for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shaping {
    /// In their own class on the way out of this machine: all of them together have its rate.
    Priority,
    /// Each connection is paced by itself, so together they have as many times the rate.
    Pacing(Without),
    /// Not at all: there is no lane, and no pacing is wanted or this kernel has none.
    Nothing(Without),
}

/// Why there is no lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// No device has our classes.
    NotInstalled,
    /// The classes are there, and this process may not put anything into one.
    NotPermitted,
    /// This process cannot see what devices have: a sandbox without `AF_NETLINK`.
    Unseen,
    /// There are classes, and this connection leaves by a device that has none.
    Elsewhere,
}

impl Without {
    /// Each of them; as a number, it is its place here.
    pub const ALL: [Self; 4] =
        [Self::NotInstalled, Self::NotPermitted, Self::Unseen, Self::Elsewhere];

    /// One word for each.
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
    /// Why there is no lane, if there is none.
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
        let Some(place) = usize::from(number).checked_sub(1) else { return Self::Priority };
        match Without::ALL.get(place) {
            Some(without) => Self::Pacing(*without),
            None => Self::Nothing(Without::ALL[place - Without::ALL.len()]),
        }
    }

    /// The same where nobody is to be paced.
    pub(crate) const fn unpaced(self) -> Self {
        match self {
            Self::Pacing(without) => Self::Nothing(without),
            other => other,
        }
    }

    /// Asks the kernel: the truth about the devices, with the numbers of those that have our classes, and a socket of
    /// our own about our rights. That the program which installed the classes still runs is not asked: they do their
    /// work without it.
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
        // Of the kind that is to be shaped; it is never connected.
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
            Self::NotInstalled => "no device has a lane for them, see `bywash shaper`",
            Self::NotPermitted => {
                "there is a lane for them, but CAP_NET_RAW is missing (before Linux 5.17: CAP_NET_ADMIN)"
            }
            Self::Unseen => "whether there is a lane for them cannot be seen without AF_NETLINK",
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
        for (place, shaping) in all.enumerate() {
            assert_eq!(usize::from(shaping.number()), place);
            assert_eq!(Shaping::of_number(shaping.number()), shaping);
        }
    }
}
