//! The gateway's side: puts a connection into a lane, by what there is.
//!
//! One setsockopt for a response that changes the lane, none for one that does not. What there is may
//! change while the gateway serves: whoever holds the device ends, or somebody takes the right away.
//! It is noticed by [`Shaper::look`], and a right that is missing at once; the answers go on, paced.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use socket2::SockRef;

use crate::bitrate::BitRate;
use crate::plan::ELEPHANTS;
use crate::shaping::{Shaping, Without};
use crate::sys;

/// Whose answer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// One that fills the network.
    Elephant,
    /// Any other.
    Ant,
}

/// What a connection was last given: a new one nothing. Kept beside its socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(Given);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Given {
    #[default]
    Nothing,
    Priority,
    /// Bytes per second.
    Paced(u32),
}

/// Of a socket that was given no priority.
const NO_PRIORITY: u32 = 0;
const UNPACED: u64 = u64::MAX;

/// Shared by all workers.
#[derive(Debug)]
pub struct Shaper {
    shaping: AtomicU8,
    /// The last that was told, so that each change is told once.
    told: AtomicU8,
    /// Bytes per second of one connection where there is no lane.
    pace: AtomicU32,
}

impl Shaper {
    /// Looks what there is; where there is no lane each elephant's connection has `pace`.
    pub fn open(pace: BitRate) -> Self {
        let number = Shaping::here().number();
        Self {
            shaping: AtomicU8::new(number),
            told: AtomicU8::new(number),
            pace: AtomicU32::new(pace.bytes_per_second()),
        }
    }

    /// What there is. To be said when serving begins.
    pub fn shaping(&self) -> Shaping {
        Shaping::of_number(self.shaping.load(Relaxed))
    }

    /// Looks again, and gives what there is now if that has changed since it was last told. To be
    /// called about once a second, on a thread that serves no request: it waits for the kernel's
    /// list of devices.
    pub fn look(&self) -> Option<Shaping> {
        let now = Shaping::here();
        self.shaping.store(now.number(), Relaxed);
        (self.told.swap(now.number(), Relaxed) != now.number()).then_some(now)
    }

    /// From the next response on, another pace.
    pub fn set_pace(&self, pace: BitRate) {
        self.pace.store(pace.bytes_per_second(), Relaxed);
    }

    /// What is sent on the connection from now on goes by that lane. To be called before the head of
    /// each response is written, and not when its last byte was: what the kernel has not sent by then
    /// would leave by the new lane.
    ///
    /// Where connections are paced, an ant's answer after an elephant's begins at the old pace, as the
    /// kernel computes another only from the next acknowledgement of data: some ten milliseconds
    /// (`benches/src/lanes`). A [`Bucket`](crate::Bucket) has no such aftermath.
    ///
    /// # Errors
    /// When the socket is not one, or closed. A right that is missing is none: the connection is
    /// paced instead.
    pub fn lane(&self, socket: impl AsFd, mark: &mut Mark, lane: Lane) -> io::Result<()> {
        let shaping = self.shaping();
        let wanted = match (lane, shaping) {
            (Lane::Elephant, Shaping::Priority) => Given::Priority,
            (Lane::Elephant, Shaping::Pacing(_)) => Given::Paced(self.pace.load(Relaxed)),
            (Lane::Elephant, Shaping::Nothing) | (Lane::Ant, _) => Given::Nothing,
        };
        if mark.0 == wanted {
            return Ok(());
        }
        match mark.give(&socket, wanted) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let paced = Shaping::Pacing(Without::NotPermitted);
                self.shaping.store(paced.number(), Relaxed);
                mark.give(&socket, Given::Paced(self.pace.load(Relaxed)))
            }
            other => other,
        }
    }
}

impl Mark {
    /// Takes back what was given and gives `wanted`. Whatever fails, it says what the socket has.
    fn give(&mut self, socket: &impl AsFd, wanted: Given) -> io::Result<()> {
        match (self.0, wanted) {
            (Given::Priority, _) => SockRef::from(socket).set_priority(NO_PRIORITY)?,
            (Given::Paced(_), Given::Nothing | Given::Priority) => {
                sys::set_max_pacing_rate(socket.as_fd(), UNPACED)?;
            }
            (Given::Nothing, _) | (Given::Paced(_), Given::Paced(_)) => {}
        }
        self.0 = Given::Nothing;
        match wanted {
            Given::Nothing => {}
            Given::Priority => SockRef::from(socket).set_priority(ELEPHANTS)?,
            Given::Paced(rate) => sys::set_max_pacing_rate(socket.as_fd(), u64::from(rate))?,
        }
        self.0 = wanted;
        Ok(())
    }
}
