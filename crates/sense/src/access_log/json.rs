//! Parses lines that are JSON objects. An object becomes a structure, and a value becomes its text.
//!
//! Operators write such formats themselves, so the same value is a string in one log and a number
//! in another. [`Value`] accepts both. The nesting depth and the length of a line are bounded.

use std::borrow::Cow;
use std::fmt;

use bywash_terminal::text::{printable, start};
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, Visitor};

use super::Flaw;

/// Parses a line that is a JSON object. Unknown keys are skipped. A key that occurs twice is a
/// flaw.
pub(super) fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Flaw> {
    // serde would also accept an array for a structure, in the order of its fields.
    if !text.starts_with('{') {
        return Err(Flaw::Json("it does not begin with `{`".to_owned()));
    }
    serde_json::from_str(text).map_err(|error| Flaw::Json(describe(&error)))
}

/// Returns the flaw of a line that lacks the key `key`.
pub(super) fn missing(key: &str) -> Flaw {
    Flaw::Json(format!("no `{key}`"))
}

/// Returns the beginning of an error's text with unsafe characters replaced, because the text may
/// quote the line.
fn describe(error: &serde_json::Error) -> String {
    const LONGEST: usize = 100;
    printable(start(&error.to_string(), LONGEST))
}

/// A string or a number, as text. `null` becomes `-`, which servers write for a missing value. The
/// default value stands for a missing key.
#[derive(Debug, Default)]
pub(super) struct Value<'a>(Option<Cow<'a, str>>);

impl<'a> Value<'a> {
    /// Returns the text, or `None` if the key is missing.
    pub(super) fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Returns the text, or `None` if it is empty, `-` or missing.
    pub(super) fn value(&self) -> Option<&str> {
        self.text().filter(|text| !matches!(*text, "" | "-"))
    }

    /// Converts the value into its text, or `None` if it is empty, `-` or missing.
    pub(super) fn into_value(self) -> Option<Cow<'a, str>> {
        self.0.filter(|text| !matches!(&**text, "" | "-"))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Scalar).map(|text| Self(Some(text)))
    }
}

/// The value of a key that should be a string. Any other value is skipped, because programs that
/// collect logs use the same keys for their own objects.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Text<'a> {
    String(#[serde(borrow)] Cow<'a, str>),
    Other(IgnoredAny),
}

impl Default for Text<'_> {
    fn default() -> Self {
        Self::Other(IgnoredAny)
    }
}

impl<'a> Text<'a> {
    /// Returns the text, or `None` if it is empty, `-` or not a string.
    pub(super) fn into_value(self) -> Option<Cow<'a, str>> {
        match self {
            Self::String(text) => Some(text).filter(|text| !matches!(&**text, "" | "-")),
            Self::Other(IgnoredAny) => None,
        }
    }
}

struct Scalar;

impl<'de> Visitor<'de> for Scalar {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a number")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed("-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct One<'a> {
        #[serde(default, borrow)]
        a: Value<'a>,
        #[serde(default, borrow)]
        text: Text<'a>,
    }

    fn text(object: &str) -> Result<Option<String>, Flaw> {
        super::object::<One<'_>>(object).map(|one| one.a.text().map(str::to_owned))
    }

    #[test]
    fn a_value_is_its_text_whatever_it_was_written_as() {
        for (object, expected) in [
            (r#"{"a":"0.5"}"#, Some("0.5")),
            (r#"{"a":0.5}"#, Some("0.5")),
            (r#"{"a":1700000000.123}"#, Some("1700000000.123")),
            (r#"{"a":"\u0041"}"#, Some("A")),
            (r#"{"a":-1,"b":[{}]}"#, Some("-1")),
            (r#"{"a":null}"#, Some("-")),
            ("{}", None),
        ] {
            assert_eq!(text(object), Ok(expected.map(str::to_owned)), "{object}");
        }
    }

    #[test]
    fn a_text_is_a_string_and_anything_else_is_skipped() {
        for (object, expected) in [
            (r#"{"text":"a"}"#, Some("a")),
            (r#"{"text":"\u0041"}"#, Some("A")),
            (r#"{"text":"-"}"#, None),
            (r#"{"text":{"name":["a"]}}"#, None),
            (r#"{"text":[{}]}"#, None),
            (r#"{"text":7}"#, None),
            (r#"{"text":null}"#, None),
            ("{}", None),
        ] {
            let text = super::object::<One<'_>>(object).map(|one| one.text.into_value());
            assert_eq!(text, Ok(expected.map(Cow::Borrowed)), "{object}");
        }
    }

    #[test]
    fn what_is_neither_string_nor_number_is_a_flaw() {
        for object in [r#"{"a":[]}"#, r#"{"a":{}}"#, r#"{"a":true}"#, r#"{"a":1,"a":2}"#, "{", "[]"]
        {
            assert!(matches!(text(object), Err(Flaw::Json(_))), "{object}");
        }
    }
}
