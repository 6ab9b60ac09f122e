//! The part of the gateway: assigns a connection to a lane, if there is one.
//!
//! This costs one setsockopt for a response that changes the lane and none for one that does not.
//! Before an elephant's response enters the lane, the shaper asks the kernel by which device it
//! leaves. The state may change while the gateway runs: the program that holds the device ends, or
//! the capability is revoked. [`Shaper::look`] detects the first, and the second is detected at
//! once. Responses continue, paced if that is configured.

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

/// The kind of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// A response that fills the network.
    Elephant,
    /// Any other response.
    Ant,
}

/// The setting that a connection was last given. It is kept next to the socket, and starts with
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(Given);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Given {
    #[default]
    Nothing,
    Priority,
    /// The pacing rate in bytes per second.
    Paced(u32),
}

/// The priority of a socket by default.
const NO_PRIORITY: u32 = 0;
const UNPACED: u64 = u64::MAX;

/// Assigns connections to lanes. All workers share it.
#[derive(Debug)]
pub struct Shaper {
    shaping: AtomicU8,
    /// The last reported state, so that each change is reported once.
    reported: AtomicU8,
    /// The pacing rate in bytes per second of a connection without a lane, or [`UNWANTED`].
    pace: AtomicU32,
    /// The indices of the devices that have lanes.
    devices: RwLock<Vec<u32>>,
}

/// No pacing. No rate is this low.
const UNWANTED: u32 = 0;

impl Shaper {
    /// Determines the present state. Without a lane, each elephant's connection is paced at `pace`.
    pub fn open(pace: BitRate) -> Self {
        Self::new(pace.bytes_per_second())
    }

    /// Determines the present state. Without a lane, connections are not paced, and the caller
    /// limits the response by a [`Bucket`](crate::Bucket).
    pub fn without_pacing() -> Self {
        Self::new(UNWANTED)
    }

    fn new(pace: u32) -> Self {
        let shaper = Self {
            shaping: AtomicU8::default(),
            reported: AtomicU8::default(),
            pace: AtomicU32::new(pace),
            devices: RwLock::default(),
        };
        shaper.reported.store(shaper.find().number(), Relaxed);
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

    /// Returns the present state, which the gateway logs at its start.
    pub fn shaping(&self) -> Shaping {
        Shaping::of_number(self.shaping.load(Relaxed))
    }

    /// Determines the state again. Returns it if it differs from the last reported one. Call it
    /// about once a second, on a thread that serves no requests, because it waits for the kernel's
    /// list of devices.
    pub fn look(&self) -> Option<Shaping> {
        let now = self.find();
        (self.reported.swap(now.number(), Relaxed) != now.number()).then_some(now)
    }

    /// Sets another pacing rate, from the next response on.
    pub fn set_pace(&self, pace: BitRate) {
        self.pace.store(pace.bytes_per_second(), Relaxed);
    }

    /// Sends everything that is written to the connection from now on by this lane.
    ///
    /// Call it before the head of each response is written, and not right after the last byte of a
    /// response: bytes that the kernel has not sent by that time would leave by the new lane.
    ///
    /// If connections are paced, an ant's response after an elephant's begins at the old rate,
    /// because the kernel computes another one only after the next acknowledgement of data: some
    /// ten milliseconds (`lab/crates/benches/src/lanes`). A [`Bucket`](crate::Bucket) has no such
    /// delay.
    ///
    /// Returns the state that limits an elephant's response on this connection from now on. For an
    /// ant's response, it is the state that would.
    ///
    /// # Errors
    /// If the descriptor is not a socket or is closed. A missing capability is not an error: the
    /// connection is paced instead, if that is configured.
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

    /// Returns whether this connection leaves by a device that has lanes. If the kernel does not
    /// tell the device, it counts as having none.
    fn has_lane(&self, socket: &impl AsFd) -> bool {
        let devices = self.devices.read().unwrap_or_else(PoisonError::into_inner);
        route::device(socket).is_ok_and(|device| device.is_some_and(|one| devices.contains(&one)))
    }
}

impl Mark {
    /// Undoes the present setting and applies `wanted`. If a call fails, the mark still tells the
    /// setting of the socket.
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
