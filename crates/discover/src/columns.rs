//! The kinds of requests, as numbers.

/// Kinds that are told apart; all else is [`Column::OTHER`].
pub const MOST_COLUMNS: usize = 256;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Column(u16);

impl Column {
    /// All that have no kind of their own.
    pub const OTHER: Self = Self(0);

    /// Kind `number`, from 0; `None` beyond [`MOST_COLUMNS`].
    pub const fn new(number: usize) -> Option<Self> {
        if number < MOST_COLUMNS { Some(Self(number as u16 + 1)) } else { None }
    }

    /// Its number; `None` of [`Column::OTHER`].
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
