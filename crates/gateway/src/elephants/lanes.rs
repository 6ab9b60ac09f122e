//! Lanes of the network device for answers that a rule throttles, if the device has any.
//!
//! `bywash shaper` makes the lanes. The gateway asks the kernel every second whether they exist
//! ([`Lanes::look`]).

use std::os::fd::AsFd;

use bywash_shaper::{Lane, Mark, Shaper, Without};
use bywash_terminal::stderr;

/// Why an answer has no lane, so that a bucket throttles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoLane {
    /// Other answers are on the same connection at the same time.
    Http2,
    /// There is no lane for it.
    Without(Without),
}

impl NoLane {
    /// Returns all reasons.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        [Self::Http2].into_iter().chain(Without::ALL.map(Self::Without))
    }

    /// The reason's name, a single word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http2 => "http2",
            Self::Without(without) => without.name(),
        }
    }

    /// The reason's position in [`NoLane::all`].
    pub(crate) const fn number(self) -> usize {
        match self {
            Self::Http2 => 0,
            Self::Without(without) => 1 + without as usize,
        }
    }
}

/// The lanes, shared by all workers.
pub(crate) struct Lanes(Shaper);

impl Lanes {
    /// Looks for lanes, and logs a line if there are any.
    pub(crate) fn open() -> Self {
        let shaper = Shaper::without_pacing();
        if shaper.shaping().without().is_none() {
            say(None);
        }
        Self(shaper)
    }

    /// Looks whether lanes have come or gone, and logs a line if so. This waits for the kernel's
    /// list of devices.
    pub(crate) fn look(&self) {
        if let Some(now) = self.0.look() {
            say(now.without());
        }
    }

    /// Returns why there were no lanes at the last check.
    pub(crate) fn missing(&self) -> Option<Without> {
        self.0.shaping().without()
    }

    /// Puts a connection into the lane of its next answer. Returns an error if that is not an
    /// elephant's lane.
    pub(crate) fn enter(
        &self,
        socket: impl AsFd,
        mark: &mut Mark,
        lane: Lane,
    ) -> Result<(), Without> {
        // A closed connection has no device.
        let shaping = self.0.lane(socket, mark, lane).map_err(|_| Without::Elsewhere)?;
        shaping.without().map_or(Ok(()), Err)
    }

    /// Returns the state for operators.
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
