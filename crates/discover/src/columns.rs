//! Numbers of routes.

/// The number of routes that are distinguished; all others are [`Column::OTHER`].
pub const MOST_COLUMNS: usize = 256;

/// The number of a route, or [`Column::OTHER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Column(u16);

impl Column {
    /// All routes without a column of their own.
    pub const OTHER: Self = Self(0);

    /// Returns column `number`, counted from 0; `None` beyond [`MOST_COLUMNS`].
    pub const fn new(number: usize) -> Option<Self> {
        if number < MOST_COLUMNS { Some(Self(number as u16 + 1)) } else { None }
    }

    /// Returns the number of the column; `None` for [`Column::OTHER`].
    pub const fn number(self) -> Option<usize> {
        if self.0 == 0 { None } else { Some(self.0 as usize - 1) }
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn of_index(index: usize) -> Self {
        Self(index as u16)
    }
}
