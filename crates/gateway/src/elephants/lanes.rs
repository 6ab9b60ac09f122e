//! Lanes of the network device (traffic classes of the kernel) for answers that a rule throttles,
//! if the device has any.
//!
//! `bywash shaper` makes the lanes. The gateway asks the kernel every second whether they exist
//! ([`Lanes::refresh`]).

use std::os::fd::AsFd;

use bywash_shaper::{Lane, Mark, Shaper, Without};
use bywash_terminal::stderr;

/// The reason why an answer has no lane, so that a token bucket throttles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoLane {
    /// The connection is HTTP/2, so other answers are on it at the same time.
    Http2,
    /// There are no lanes, or none for this connection.
    Without(Without),
}

impl NoLane {
    /// Returns all reasons, in the order of their numbers.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        [Self::Http2].into_iter().chain(Without::ALL.map(Self::Without))
    }

    /// Returns the reason's name for metrics, a single word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http2 => "http2",
            Self::Without(without) => without.name(),
        }
    }

    /// Returns the reason's position in [`NoLane::all`].
    pub(crate) const fn number(self) -> usize {
        match self {
            Self::Http2 => 0,
            Self::Without(without) => 1 + without as usize,
        }
    }
}

/// The lanes of the network device, shared by all workers.
pub(crate) struct Lanes(Shaper);

impl Lanes {
    /// Asks the kernel for lanes, and logs a line if there are any.
    pub(crate) fn open() -> Self {
        let shaper = Shaper::without_pacing();
        if shaper.shaping().without().is_none() {
            say(None);
        }
        Self(shaper)
    }

    /// Asks the kernel again whether lanes exist, and logs a line if that has changed. The call
    /// waits for the kernel's list of devices.
    pub(crate) fn refresh(&self) {
        if let Some(now) = self.0.refresh() {
            say(now.without());
        }
    }

    /// Returns why there were no lanes at the last check; `None` if there were lanes.
    pub(crate) fn missing(&self) -> Option<Without> {
        self.0.shaping().without()
    }

    /// Puts a connection into the lane of its next answer, and stores that lane in `mark`. Returns
    /// an error if the connection cannot use lanes.
    pub(crate) fn enter(
        &self,
        socket: impl AsFd,
        mark: &mut Mark,
        lane: Lane,
    ) -> Result<(), Without> {
        // An error means that the connection is closed. It has no device then.
        let shaping = self.0.lane(socket, mark, lane).map_err(|_| Without::Elsewhere)?;
        shaping.without().map_or(Ok(()), Err)
    }

    /// Returns whether there are lanes, and if not, why, for display to operators.
    pub(crate) fn status(&self) -> bywash_api::Lanes {
        let why = self.missing();
        bywash_api::Lanes { in_force: why.is_none(), why: why.map(|why| why.to_string()) }
    }
}

fn say(missing: Option<Without>) {
    match missing {
        None => stderr::say("answers to elephants use lanes of the network device"),
        Some(why) => stderr::say(format_args!(
            "answers to elephants are limited by token buckets, not by lanes: {why}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_found_by_its_number() {
        for (place, why) in NoLane::all().enumerate() {
            assert_eq!(why.number(), place);
        }
    }
}
