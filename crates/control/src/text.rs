//! Quantities in files as people write them: `"10s"`; texts as TOML has them; revisions.

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

/// A JSON string is a TOML string: neither has raw control characters, and escapes are the same. JSON takes DEL for none.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// The revision after this one. It is the time where that is later, so that a process that has lost what was before does
/// not give one twice.
pub(crate) fn next_revision(revision: u64, now: Timestamp) -> u64 {
    (revision + 1).max(u64::try_from(now.as_millisecond()).unwrap_or(0))
}
