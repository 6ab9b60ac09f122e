//! Durations in stored text, such as `"10s"`, and the numbering of revisions.

use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serializer, de};

pub(crate) fn serialize<S: Serializer>(value: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>, T>(from: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
{
    String::deserialize(from)?.parse().map_err(de::Error::custom)
}

/// Returns the revision after `revision`: the next number, or the time `now` in milliseconds if
/// that is larger. A process that has lost its earlier state therefore does not give a revision
/// twice.
pub(crate) fn next_revision(revision: u64, now: Timestamp) -> u64 {
    revision.saturating_add(1).max(u64::try_from(now.as_millisecond()).unwrap_or(0))
}
