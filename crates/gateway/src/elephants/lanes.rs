//! Lanes of the network device for answers whose bytes a rule holds back, where there are any.
//!
//! `bywash shaper` makes them, and the kernel is asked every second whether they are there ([`Lanes::look`]).

use std::os::fd::AsFd;

use bywash_shaper::{Lane, Mark, Shaper, Without};

use crate::talk;

/// Why an answer has no lane, and a bucket holds it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoLane {
    /// Other answers are on the same connection at the same time.
    Http2,
    /// There is none for it.
    Without(Without),
}

impl NoLane {
    /// Each of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        [Self::Http2].into_iter().chain(Without::ALL.map(Self::Without))
    }

    /// One word for each.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http2 => "http2",
            Self::Without(without) => without.name(),
        }
    }

    /// Its place among [`NoLane::all`].
    pub(crate) const fn number(self) -> usize {
        match self {
            Self::Http2 => 0,
            Self::Without(without) => 1 + without as usize,
        }
    }
}

/// What all workers share.
pub(crate) struct Lanes(Shaper);

impl Lanes {
    /// Looks what there is, and says so if there is something.
    pub(crate) fn open() -> Self {
        let shaper = Shaper::without_pacing();
        if shaper.shaping().without().is_none() {
            say(None);
        }
        Self(shaper)
    }

    /// Looks whether they are still there, or have come, and says so if that has changed. It waits for the kernel's
    /// list of devices.
    pub(crate) fn look(&self) {
        if let Some(now) = self.0.look() {
            say(now.without());
        }
    }

    /// Why there are none, when it was last looked.
    pub(crate) fn missing(&self) -> Option<Without> {
        self.0.shaping().without()
    }

    /// Puts a connection into the lane of the answer that comes next. Whether that is an elephant's lane, or why not.
    pub(crate) fn enter(
        &self,
        socket: impl AsFd,
        mark: &mut Mark,
        lane: Lane,
    ) -> Result<(), Without> {
        // A connection that is closed leaves by no device.
        let shaping = self.0.lane(socket, mark, lane).map_err(|_| Without::Elsewhere)?;
        shaping.without().map_or(Ok(()), Err)
    }

    /// For operators.
    pub(crate) fn told(&self) -> bywash_api::Lanes {
        let why = self.missing();
        bywash_api::Lanes { in_force: why.is_none(), why: why.map(|why| why.to_string()) }
    }
}

fn say(missing: Option<Without>) {
    match missing {
        None => talk::say("elephants' answers have a lane of the network device"),
        Some(why) => talk::say(format_args!("elephants' answers are held back by buckets: {why}")),
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
