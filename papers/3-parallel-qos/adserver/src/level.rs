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

    /// Its name in the pool, in headers and in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
        }
    }

    /// The level of a name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// The place of the level in [`Level::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}
