//! The values of contracts and slots. Each value has limits, which are checked when it is created.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

/// The maximum length of a landing address, in bytes.
const MAX_LANDING: usize = 2_048;
/// The maximum length of the name of a concept or a category, in characters.
const MAX_KEYWORD: usize = 64;
/// The maximum length of the name of an advertiser or a publisher, in characters.
const MAX_NAME: usize = 100;
/// The maximum width and height of a banner, in pixels.
const MAX_SIDE: u16 = 4_096;

/// A time in whole seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct Timestamp(pub(crate) i64);

impl Timestamp {
    /// Returns the present time, or zero if the clock is set before 1970.
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
    }

    /// Returns the time that is `seconds` after this one.
    pub(crate) const fn plus(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds))
    }
}

/// The period in which a contract runs: it includes `from` and excludes `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

impl Flight {
    /// Returns whether `now` is within the flight.
    pub(crate) fn holds(self, now: Timestamp) -> bool {
        self.from <= now && now < self.to
    }

    /// Returns the length of the flight in seconds, at least one.
    pub(crate) fn seconds(self) -> u64 {
        self.to.0.abs_diff(self.from.0).max(1)
    }
}

/// The width and height of a banner in pixels, written as in `468x60`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Size {
    width: u16,
    height: u16,
}

impl Size {
    /// The smallest size in the ordering of sizes.
    pub(crate) const SMALLEST: Self = Self { width: 1, height: 1 };

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let side = |text: &str| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            let side = text.parse().ok().filter(|_| is_plain);
            side.filter(|side| (1..=MAX_SIDE).contains(side))
        };
        let (width, height) = text.split_once('x')?;
        Some(Self { width: side(width)?, height: side(height)? })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The name of a concept or a category: 1 to 64 characters of `a-z 0-9 - _`. Such a name needs no
/// escaping in URLs, HTML, JSON or SQL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub(crate) struct Keyword(Arc<str>);

impl Keyword {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        let is_keyword = (1..=MAX_KEYWORD).contains(&text.len()) && text.bytes().all(plain);
        is_keyword.then(|| Self(text.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Keyword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of an advertiser or a publisher: 1 to 100 characters, without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Name(Box<str>);

impl Name {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_short = (1..=MAX_NAME).contains(&text.chars().count());
        (is_short && !text.chars().any(char::is_control)).then(|| Self(text.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The destination of a click: an absolute `http` or `https` address that needs no escaping in a
/// header field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Landing(Arc<str>);

impl Landing {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
        if text.len() > MAX_LANDING || !text.bytes().all(plain) {
            return None;
        }
        let address: http::Uri = text.parse().ok()?;
        let is_web = matches!(address.scheme_str(), Some("http" | "https"));
        let is_somewhere = address.host().is_some_and(|host| !host.is_empty());
        // Refuse a user name in front of the host, because it makes one address look like another.
        let is_honest = !address.authority()?.as_str().contains('@');
        (is_web && is_somewhere && is_honest).then(|| Self(text.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_two_sides_of_pixels() {
        assert_eq!(Size::parse("468x60").unwrap().to_string(), "468x60");
        for wrong in ["", "468", "468x", "x60", "0x60", "468x0", "5000x60", "-1x60", "4 x6", "+4x6"]
        {
            assert_eq!(Size::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_landing_address_is_absolute_and_of_the_web() {
        for right in ["http://example.com", "https://example.com:8443/a?b=c&d=%20#e"] {
            assert!(Landing::parse(right).is_some(), "{right}");
        }
        let long = format!("https://example.com/{}", "x".repeat(MAX_LANDING));
        let wrong = [
            "",
            "/",
            "example.com",
            "//example.com",
            "javascript:alert(1)",
            "ftp://example.com/",
            "https://",
            "https:///path",
            "https://a b/",
            "https://a/\r\nSet-Cookie: x=y",
            "https://good@bad.example/",
            "https://example.com/\\",
            "data:text/html,x",
            &long,
        ];
        for wrong in wrong {
            assert_eq!(Landing::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn words_and_names_are_bounded() {
        assert!(Keyword::parse("fast-cars_2").is_some());
        for wrong in ["", "Cars", "a b", "a,b", "ü", &"x".repeat(65)] {
            assert_eq!(Keyword::parse(wrong), None, "{wrong:?}");
        }
        assert_eq!(Name::parse(" Räder & Co ").unwrap().as_str(), "Räder & Co");
        for wrong in ["", "  ", "a\nb", &"x".repeat(101)] {
            assert_eq!(Name::parse(wrong), None, "{wrong:?}");
        }
    }
}
