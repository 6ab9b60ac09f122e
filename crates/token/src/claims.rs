//! What a token says, and how that is written in bytes.
//!
//! ```text
//! byte  0     format, 1
//!       1     name of the key
//!       2..6  when it was issued, in seconds since 1970, big end first
//!       6..8  the day of the last order since 1970, or 0
//!       8..16 the session that it belongs to
//!      16..   two bytes for each class that was served, ascending
//! ```
//!
//! Why two bytes for a class: 64 classes must fit into a cookie that is sent with every request. Two
//! names out of ten have the same mark once in 1,500 configurations; [`Marks::distinct`] finds out,
//! and such classes are better left out of tokens than taken for each other.

use bywash_units::Span;
use ring::digest;

/// The format of what is written. Another one is not read.
pub(crate) const FORMAT: u8 = 1;
/// Bytes before the marks.
pub(crate) const HEAD: usize = 16;
/// Most bytes of claims.
pub(crate) const MOST: usize = HEAD + 2 * Marks::MOST;

/// A time of the wall clock, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

/// A day of the wall clock, since 1970; never the first, which stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(u16);

/// Clocks of two gateways may differ by so much.
const SKEW: u64 = 60;

const SECONDS_PER_DAY: u64 = 86_400;

impl Moment {
    /// Of milliseconds since 1970.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis / 1000)
    }

    /// Of seconds since 1970.
    pub(crate) const fn from_seconds(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Seconds since 1970.
    pub(crate) const fn seconds(self) -> u64 {
        self.0
    }

    /// The day that it lies on. None before the second of 1970, nor after the year 2149.
    pub fn day(self) -> Option<Day> {
        let day = u16::try_from(self.0 / SECONDS_PER_DAY).ok()?;
        (day > 0).then_some(Day(day))
    }

    /// How long ago that was; `None` if it is still to come.
    pub(crate) fn since(self, earlier: Self) -> Option<Span> {
        let ahead = earlier.0.saturating_sub(self.0);
        (ahead <= SKEW).then(|| Span::from_secs(self.0.saturating_sub(earlier.0)))
    }
}

impl Day {
    /// Whether it lies no further back than `span`, in whole days, and not ahead.
    pub(crate) fn is_within(self, span: Span, now: Moment) -> bool {
        let most = span.as_millis() / 1000 / SECONDS_PER_DAY;
        let today = (now.0 + SKEW) / SECONDS_PER_DAY;
        today.checked_sub(u64::from(self.0)).is_some_and(|age| age <= most)
    }
}

/// The name of a class, hashed: the same in every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u16);

impl Mark {
    /// Of the class with this name.
    pub fn of(class: &str) -> Self {
        let digest = digest::digest(&digest::SHA256, class.as_bytes());
        let [first, second, ..] = digest.as_ref() else {
            unreachable!("SHA-256 gives 32 bytes");
        };
        Self(u16::from_be_bytes([*first, *second]))
    }
}

/// The classes that a session was served, as marks. No more than [`Marks::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Ascending, each once.
    marks: [Mark; Self::MOST],
    count: usize,
}

impl Default for Marks {
    fn default() -> Self {
        Self { marks: [Mark(0); Self::MOST], count: 0 }
    }
}

impl Marks {
    /// How many there can be.
    pub const MOST: usize = 64;

    /// Adds one. With [`Marks::MOST`] of them already it does nothing.
    pub fn insert(&mut self, mark: Mark) {
        let Err(place) = self.as_slice().binary_search(&mark) else { return };
        if self.count < Self::MOST {
            self.marks.copy_within(place..self.count, place + 1);
            self.marks[place] = mark;
            self.count += 1;
        }
    }

    /// Whether it is one of them.
    pub fn contains(&self, mark: Mark) -> bool {
        self.as_slice().binary_search(&mark).is_ok()
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The marks of these names, in their order; `None` for each name that shares its mark with
    /// another.
    pub fn distinct<'a>(classes: impl IntoIterator<Item = &'a str>) -> Vec<Option<Mark>> {
        let marks: Vec<Mark> = classes.into_iter().map(Mark::of).collect();
        let alone = |mark: &Mark| marks.iter().filter(|other| *other == mark).count() == 1;
        marks.iter().map(|mark| alone(mark).then_some(*mark)).collect()
    }

    fn as_slice(&self) -> &[Mark] {
        &self.marks[..self.count]
    }

    /// `None`: they are not as they are written.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let mut marks = Self::default();
        for pair in pairs {
            let mark = Mark(u16::from_be_bytes(*pair));
            if marks.count == Self::MOST || marks.as_slice().last() >= Some(&mark) {
                return None;
            }
            marks.marks[marks.count] = mark;
            marks.count += 1;
        }
        rest.is_empty().then_some(marks)
    }
}

/// The session that a token belongs to: a keyed hash of the application's cookie, or a number drawn
/// for it where the token is the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionName(pub [u8; 8]);

/// What a token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims {
    /// When.
    pub issued: Moment,
    /// Of which session.
    pub session: SessionName,
    /// What it was served.
    pub served: Marks,
    /// When its visitor last ordered, as far as that is known.
    pub ordered: Option<Day>,
}

impl Claims {
    /// Of a session that was served nothing yet.
    pub fn new(now: Moment, session: SessionName) -> Self {
        Self { issued: now, session, served: Marks::default(), ordered: None }
    }

    /// As bytes, and how many. After the year 2106 the time no longer fits, and every token is
    /// stale.
    pub(crate) fn write(&self, key: u8) -> ([u8; MOST], usize) {
        let mut bytes = [0; MOST];
        let issued = u32::try_from(self.issued.0).unwrap_or(u32::MAX);
        bytes[0] = FORMAT;
        bytes[1] = key;
        bytes[2..6].copy_from_slice(&issued.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.ordered.map_or(0, |day| day.0).to_be_bytes());
        bytes[8..HEAD].copy_from_slice(&self.session.0);
        for (place, mark) in bytes[HEAD..].chunks_exact_mut(2).zip(self.served.as_slice()) {
            place.copy_from_slice(&mark.0.to_be_bytes());
        }
        (bytes, HEAD + 2 * self.served.count)
    }

    /// `None`: these are not bytes that [`Claims::write`] writes. Format and key are the caller's
    /// to look at.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (head, marks) = bytes.split_first_chunk::<HEAD>()?;
        let [_, _, i0, i1, i2, i3, d0, d1, session @ ..] = *head;
        let day = u16::from_be_bytes([d0, d1]);
        Some(Self {
            issued: Moment(u64::from(u32::from_be_bytes([i0, i1, i2, i3]))),
            session: SessionName(session),
            served: Marks::read(marks)?,
            ordered: (day > 0).then_some(Day(day)),
        })
    }
}
