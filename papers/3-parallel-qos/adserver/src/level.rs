//! The service level of a request.

use serde::Serialize;

/// A service level, which determines how many threads one request may use at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A request of this level uses one thread (type 0 in the paper).
    #[default]
    Low,
    /// A request of this level uses several threads (type 1 in the paper).
    High,
}

impl Level {
    /// Both levels, ordered so that `ALL[level.index()] == level`.
    pub const ALL: [Self; 2] = [Self::Low, Self::High];

    /// Returns the name of the level, which is used in the pool, in header fields and in
    /// statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
        }
    }

    /// Returns the level with this name, or `None` if there is none.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Returns the index of the level in [`Level::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}
