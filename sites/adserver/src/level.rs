//! The level of service of a request.

use serde::Serialize;

/// How much of the machine one request may use at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// One thread: the seed's type 0.
    #[default]
    Low,
    /// Several: the seed's type 1.
    High,
}

impl Level {
    /// Both; `ALL[level.index()] == level`.
    pub const ALL: [Self; 2] = [Self::Low, Self::High];

    /// The place of the level in [`Level::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}
