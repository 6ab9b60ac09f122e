//! The content of a token, and its encoding in bytes.
//!
//! ```text
//! byte  0     format, 1
//!       1     name of the key
//!       2..6  time of issue, in seconds since 1970, big-endian
//!       6..8  day of the last order, in days since 1970, or 0
//!       8..16 session that the token belongs to
//!      16..   two bytes for each class that was served, ascending
//! ```
//!
//! A class has two bytes, so that 64 classes fit into a cookie that every request sends. With ten
//! classes, two of them have the same mark in one of 1,500 configurations. [`Marks::distinct`]
//! detects that. Such classes are left out of tokens, which is better than mistaking one class for
//! the other.

use bywash_units::TimeSpan;
use ring::digest;

/// The version of the format. Tokens of other versions are refused.
pub(crate) const FORMAT: u8 = 1;
/// The number of bytes of the claims before the marks.
pub(crate) const HEAD: usize = 16;
/// The maximum number of bytes of claims.
pub(crate) const MOST: usize = HEAD + 2 * Marks::MOST;

/// A time of the wall clock, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixTime(u64);

/// A day of the wall clock, as the number of days since 1970-01-01. It is never 0, which stands for
/// no day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(u16);

/// The tolerated difference between the clocks of two gateways, in seconds.
const SKEW: u64 = 60;

const SECONDS_PER_DAY: u64 = 86_400;

impl UnixTime {
    /// Creates a time from milliseconds since 1970.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis / 1000)
    }

    /// Creates a time from seconds since 1970.
    pub(crate) const fn from_seconds(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Returns the seconds since 1970.
    pub(crate) const fn seconds(self) -> u64 {
        self.0
    }

    /// Returns the day of this time. Returns `None` on the first day of 1970 and after the year
    /// 2149.
    pub fn day(self) -> Option<Day> {
        let day = u16::try_from(self.0 / SECONDS_PER_DAY).ok()?;
        (day > 0).then_some(Day(day))
    }

    /// Returns the time since `earlier`. Returns `None` if `earlier` is in the future by more than
    /// the tolerated difference.
    pub(crate) fn since(self, earlier: Self) -> Option<TimeSpan> {
        let ahead = earlier.0.saturating_sub(self.0);
        (ahead <= SKEW).then(|| TimeSpan::from_secs(self.0.saturating_sub(earlier.0)))
    }
}

impl Day {
    /// Returns whether the day is at most `span` ago, counted in whole days, and not in the future.
    pub(crate) fn is_within(self, span: TimeSpan, now: UnixTime) -> bool {
        let most = span.as_millis() / 1000 / SECONDS_PER_DAY;
        let today = (now.0 + SKEW) / SECONDS_PER_DAY;
        today.checked_sub(u64::from(self.0)).is_some_and(|age| age <= most)
    }
}

/// The mark of a class: a hash of its name, which is the same in every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u16);

impl Mark {
    /// Returns the mark of the class with this name.
    pub fn of(class: &str) -> Self {
        let digest = digest::digest(&digest::SHA256, class.as_bytes());
        let [first, second, ..] = digest.as_ref() else {
            unreachable!("SHA-256 gives 32 bytes");
        };
        Self(u16::from_be_bytes([*first, *second]))
    }
}

/// The marks of the classes that a session was served, at most [`Marks::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// The marks in ascending order, without duplicates.
    marks: [Mark; Self::MOST],
    count: usize,
}

impl Default for Marks {
    fn default() -> Self {
        Self { marks: [Mark(0); Self::MOST], count: 0 }
    }
}

impl Marks {
    /// The maximum number of marks.
    pub const MOST: usize = 64;

    /// Adds a mark. Does nothing if there are [`Marks::MOST`] marks already.
    pub fn insert(&mut self, mark: Mark) {
        let Err(place) = self.as_slice().binary_search(&mark) else { return };
        if self.count < Self::MOST {
            self.marks.copy_within(place..self.count, place + 1);
            self.marks[place] = mark;
            self.count += 1;
        }
    }

    /// Returns whether `mark` is one of the marks.
    pub fn contains(&self, mark: Mark) -> bool {
        self.as_slice().binary_search(&mark).is_ok()
    }

    /// Returns the number of marks.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there is no mark.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the marks of these class names, in the order of the names. A name that shares its
    /// mark with another name gets `None`.
    pub fn distinct<'a>(classes: impl IntoIterator<Item = &'a str>) -> Vec<Option<Mark>> {
        let marks: Vec<Mark> = classes.into_iter().map(Mark::of).collect();
        let alone = |mark: &Mark| marks.iter().filter(|other| *other == mark).count() == 1;
        marks.iter().map(|mark| alone(mark).then_some(*mark)).collect()
    }

    fn as_slice(&self) -> &[Mark] {
        &self.marks[..self.count]
    }

    /// Decodes marks. Returns `None` if they are not strictly ascending, too many, or incomplete.
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

/// The session that a token belongs to: a keyed hash of the application's cookie, or a random
/// number if the token itself is the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionName(pub [u8; 8]);

/// The content of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The time at which the token was signed.
    pub issued: UnixTime,
    /// The session that the token belongs to.
    pub session: SessionName,
    /// The classes that the session was served.
    pub served: Marks,
    /// The day of the visitor's last order. `None` if it is unknown.
    pub ordered: Option<Day>,
}

impl Claims {
    /// Creates claims, issued at the time `now`, for a session that was not served any class.
    pub fn new(now: UnixTime, session: SessionName) -> Self {
        Self { issued: now, session, served: Marks::default(), ordered: None }
    }

    /// Encodes the claims. Returns a buffer, and the number of its bytes that are used. After the
    /// year 2106 the time no longer fits into its four bytes, and every token is refused as stale.
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

    /// Decodes claims. Returns `None` if [`Claims::write`] does not produce such bytes. The caller
    /// must check the format and the key.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (head, marks) = bytes.split_first_chunk::<HEAD>()?;
        let [_, _, i0, i1, i2, i3, d0, d1, session @ ..] = *head;
        let day = u16::from_be_bytes([d0, d1]);
        Some(Self {
            issued: UnixTime(u64::from(u32::from_be_bytes([i0, i1, i2, i3]))),
            session: SessionName(session),
            served: Marks::read(marks)?,
            ordered: (day > 0).then_some(Day(day)),
        })
    }
}
