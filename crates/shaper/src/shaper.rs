//! The gateway's side: puts a connection into a lane, by what there is.
//!
//! One setsockopt for a response that changes the lane, none for one that does not; before a response
//! goes into it, the kernel is asked by which device it leaves. What there is may change while the
//! gateway serves: whoever holds the device ends, or somebody takes the right away. It is noticed by
//! [`Shaper::look`], and a right that is missing at once; the answers go on, paced if that is wanted.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock};

use socket2::SockRef;

use crate::bitrate::BitRate;
use crate::plan::ELEPHANTS;
use crate::route;
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
    /// Bytes per second of one connection where there is no lane; [`UNWANTED`] for any.
    pace: AtomicU32,
    /// Those that have lanes, by number.
    devices: RwLock<Vec<u32>>,
}

/// Nobody is paced. No rate is as low as this.
const UNWANTED: u32 = 0;

impl Shaper {
    /// Looks what there is; where there is no lane each elephant's connection has `pace`.
    pub fn open(pace: BitRate) -> Self {
        Self::new(pace.bytes_per_second())
    }

    /// Looks what there is; where there is no lane nothing is done, and the caller holds the answer back by a
    /// [`Bucket`](crate::Bucket).
    pub fn without_pacing() -> Self {
        Self::new(UNWANTED)
    }

    fn new(pace: u32) -> Self {
        let shaper = Self {
            shaping: AtomicU8::default(),
            told: AtomicU8::default(),
            pace: AtomicU32::new(pace),
            devices: RwLock::default(),
        };
        shaper.told.store(shaper.find().number(), Relaxed);
        shaper
    }

    fn find(&self) -> Shaping {
        let (shaping, devices) = Shaping::here();
        let shaping = self.paced(shaping);
        *self.devices.write().unwrap_or_else(PoisonError::into_inner) = devices;
        self.shaping.store(shaping.number(), Relaxed);
        shaping
    }

    fn paced(&self, shaping: Shaping) -> Shaping {
        if self.pace.load(Relaxed) == UNWANTED { shaping.unpaced() } else { shaping }
    }

    /// What there is. To be said when serving begins.
    pub fn shaping(&self) -> Shaping {
        Shaping::of_number(self.shaping.load(Relaxed))
    }

    /// Looks again, and gives what there is now if that has changed since it was last told. To be
    /// called about once a second, on a thread that serves no request: it waits for the kernel's
    /// list of devices.
    pub fn look(&self) -> Option<Shaping> {
        let now = self.find();
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
    /// Gives what holds an elephant's answer back on this connection from now on; of an ant's, what would.
    ///
    /// # Errors
    /// When the socket is not one, or closed. A right that is missing is none: the connection is
    /// paced instead, if that is wanted.
    pub fn lane(&self, socket: impl AsFd, mark: &mut Mark, lane: Lane) -> io::Result<Shaping> {
        let mut shaping = self.shaping();
        let is_in_lane = mark.0 == Given::Priority;
        if (lane, shaping, is_in_lane) == (Lane::Elephant, Shaping::Priority, false)
            && !self.has_lane(&socket)
        {
            shaping = self.paced(Shaping::Pacing(Without::Elsewhere));
        }
        let wanted = match (lane, shaping) {
            (Lane::Elephant, Shaping::Priority) => Given::Priority,
            (Lane::Elephant, Shaping::Pacing(_)) => Given::Paced(self.pace.load(Relaxed)),
            (Lane::Elephant, Shaping::Nothing(_)) | (Lane::Ant, _) => Given::Nothing,
        };
        if mark.0 == wanted {
            return Ok(shaping);
        }
        match mark.give(&socket, wanted) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let lost = self.paced(Shaping::Pacing(Without::NotPermitted));
                self.shaping.store(lost.number(), Relaxed);
                if let Shaping::Pacing(_) = lost {
                    mark.give(&socket, Given::Paced(self.pace.load(Relaxed)))?;
                }
                Ok(lost)
            }
            other => other.map(|()| shaping),
        }
    }

    /// Whether what is sent on this connection leaves by a device that has lanes. One of which the kernel does not
    /// say it has none.
    fn has_lane(&self, socket: &impl AsFd) -> bool {
        let devices = self.devices.read().unwrap_or_else(PoisonError::into_inner);
        route::device(socket).is_ok_and(|device| device.is_some_and(|one| devices.contains(&one)))
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
