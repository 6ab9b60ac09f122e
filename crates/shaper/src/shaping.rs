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
    /// Not at all: the kernel can do neither.
    Nothing,
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
}

impl Shaping {
    /// Each of them; as a number, it is its place here.
    const ALL: [Self; 5] = [
        Self::Priority,
        Self::Pacing(Without::NotInstalled),
        Self::Pacing(Without::NotPermitted),
        Self::Pacing(Without::Unseen),
        Self::Nothing,
    ];

    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Priority => 0,
            Self::Pacing(Without::NotInstalled) => 1,
            Self::Pacing(Without::NotPermitted) => 2,
            Self::Pacing(Without::Unseen) => 3,
            Self::Nothing => 4,
        }
    }

    pub(crate) fn of_number(number: u8) -> Self {
        Self::ALL[usize::from(number)]
    }

    /// Asks the kernel: the truth about the device, and a socket of our own about our rights. That
    /// the program which installed the classes still runs is not asked: they do their work without
    /// it.
    pub(crate) fn here() -> Self {
        let without = match Kernel::open().and_then(|mut kernel| htb::is_anywhere(&mut kernel)) {
            Ok(true) => Without::NotPermitted,
            Ok(false) => Without::NotInstalled,
            Err(_) => Without::Unseen,
        };
        // Of the kind that is to be shaped; it is never connected.
        let Ok(scratch) = Socket::new(Domain::IPV4, Type::STREAM, None) else {
            return Self::Nothing;
        };
        if without == Without::NotPermitted
            && SockRef::from(&scratch).set_priority(ELEPHANTS).is_ok()
        {
            return Self::Priority;
        }
        match sys::set_max_pacing_rate(scratch.as_fd(), u64::MAX) {
            Ok(()) => Self::Pacing(without),
            Err(_) => Self::Nothing,
        }
    }
}

impl fmt::Display for Shaping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::Priority => "elephants' answers leave by a lane of their own",
            Self::Pacing(without) => return write!(f, "elephants' answers are paced: {without}"),
            Self::Nothing => "elephants' answers are not held back: this kernel has no pacing",
        };
        f.write_str(words)
    }
}

impl fmt::Display for Without {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotInstalled => "no device has a lane for them, see `bywash shaper`",
            Self::NotPermitted => "there is a lane for them, but CAP_NET_RAW is missing",
            Self::Unseen => "whether there is a lane for them cannot be seen without AF_NETLINK",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_again_by_its_number() {
        for (place, shaping) in Shaping::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(shaping.number()), place);
            assert_eq!(Shaping::of_number(shaping.number()), shaping);
        }
    }
}
