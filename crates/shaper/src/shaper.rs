//! Assigns connections of the gateway to lanes, which are traffic classes of the kernel.
//!
//! A response that changes the lane of its connection costs one call of `setsockopt`, and any other
//! response costs none. Before an elephant's response enters the lane, the shaper asks the kernel
//! by which device the response leaves.
//!
//! The state may change while the gateway runs: the program that shapes the device may end, or the
//! capability may be revoked. [`Shaper::look`] detects the end of that program. A missing
//! capability is detected when a connection is assigned. Then responses continue without a lane,
//! paced if that is configured.

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

/// The kind of a response, which decides its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// A response that is large enough to fill the network.
    Elephant,
    /// Any other response.
    Ant,
}

/// The setting that a connection last got: a lane, a pacing rate, or neither. The caller keeps one
/// mark with each socket.
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

/// The default priority of a socket.
const NO_PRIORITY: u32 = 0;
/// The pacing rate that turns pacing off.
const UNPACED: u64 = u64::MAX;

/// Assigns connections to lanes. All workers of the gateway share one shaper.
#[derive(Debug)]
pub struct Shaper {
    shaping: AtomicU8,
    /// The number of the state that was last reported. With it, each change is reported once.
    reported: AtomicU8,
    /// The pacing rate in bytes per second of a connection without a lane, or [`UNWANTED`].
    pace: AtomicU32,
    /// The kernel's indices of the network devices that have lanes.
    devices: RwLock<Vec<u32>>,
}

/// The value of `pace` that means no pacing. No real rate is this low.
const UNWANTED: u32 = 0;

impl Shaper {
    /// Determines the present state from the kernel. Without a lane, each elephant's connection is
    /// paced at `pace`.
    pub fn open(pace: BitRate) -> Self {
        Self::new(pace.bytes_per_second())
    }

    /// Determines the present state from the kernel. Without a lane, connections are not paced, and
    /// the caller limits responses by a [`Bucket`](crate::Bucket).
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

    /// Determines the state again from the kernel. Returns the state if it differs from the last
    /// reported one. Call this about once a second, on a thread that serves no requests, because it
    /// waits for the kernel's list of devices.
    pub fn refresh(&self) -> Option<Shaping> {
        let now = self.find();
        (self.reported.swap(now.number(), Relaxed) != now.number()).then_some(now)
    }

    /// Sets the pacing rate of connections without a lane, from the next response on.
    pub fn set_pace(&self, pace: BitRate) {
        self.pace.store(pace.bytes_per_second(), Relaxed);
    }

    /// Assigns a connection to a lane: everything that is written from now on leaves by `lane`.
    ///
    /// Call this before the head of each response is written, and not right after the last byte of
    /// a response. Bytes that the kernel has not sent by that time would leave by the new lane.
    ///
    /// If connections are paced, an ant's response after an elephant's begins at the old rate,
    /// because the kernel computes another one only after the next acknowledgement of data: some
    /// ten milliseconds (`lab/crates/benches/src/lanes`). A [`Bucket`](crate::Bucket) has no such
    /// delay.
    ///
    /// Returns the way in which an elephant's response on this connection is limited from now on.
    /// If `lane` is [`Lane::Ant`], this is how an elephant's response would be limited.
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

    /// Returns whether a connection leaves by a device that has lanes. Returns false if the kernel
    /// does not report the device.
    fn has_lane(&self, socket: &impl AsFd) -> bool {
        let devices = self.devices.read().unwrap_or_else(PoisonError::into_inner);
        route::device(socket).is_ok_and(|device| device.is_some_and(|one| devices.contains(&one)))
    }
}

impl Mark {
    /// Undoes the present setting of a socket and applies `wanted`. If a system call fails, the
    /// mark still equals the setting of the socket.
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
