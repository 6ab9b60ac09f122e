//! Quantities in files as people write them: `"10s"`.

use std::fmt::Display;
use std::str::FromStr;

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
