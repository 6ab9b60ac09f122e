//! The columns of sums and matrices. A route may have a column of its own. One column is for all
//! other routes.

/// The maximum number of routes with a column of their own. All others share [`Column::OTHER`].
pub const MOST_COLUMNS: usize = 256;

/// The column of a route, identified by the route's number, or [`Column::OTHER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Column(u16);

impl Column {
    /// The column of all routes that have no column of their own.
    pub const OTHER: Self = Self(0);

    /// Returns the column of route `number`, counted from 0; `None` from [`MOST_COLUMNS`] on.
    pub const fn new(number: usize) -> Option<Self> {
        if number < MOST_COLUMNS { Some(Self(number as u16 + 1)) } else { None }
    }

    /// Returns the number of the route, counted from 0; `None` for [`Column::OTHER`].
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
