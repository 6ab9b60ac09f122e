//! Conditions on which an answer counts as a success of its class.

use std::ops::RangeInclusive;

use crate::token::is_token;

/// The conditions on which an answer counts as a success of its class. Without any condition, a
/// status of 2xx is a success, and 3xx is one if the method changes something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Success {
    /// The accepted statuses, one of which an answer must have. If empty, every status is accepted.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// The required header fields by their names in lower case, with the accepted values. An answer
    /// must have all of them.
    pub fields: Vec<(String, Wanted)>,
    /// The required fields of the JSON body. An answer must have all of them.
    pub json: Vec<JsonField>,
}

/// A required field of a JSON object, or of an object nested in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonField {
    /// The names of the keys from the outermost object to the field.
    pub path: Vec<String>,
    /// The accepted value: a text, or another value in the syntax of JSON.
    pub value: Wanted,
}

/// An accepted value of a header field or JSON field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Any value. In JSON, `null` and `false` are not accepted.
    Any,
    /// A value that equals the text `fixed`, or that starts with it, ends with it or contains it.
    Text {
        /// The text that the value must contain.
        fixed: String,
        /// Whether anything may precede the text.
        front: bool,
        /// Whether anything may follow the text.
        behind: bool,
    },
}

impl Wanted {
    fn parse(text: &str) -> Self {
        if text == "*" {
            return Self::Any;
        }
        let (front, rest) = text.strip_prefix('*').map_or((false, text), |rest| (true, rest));
        let (behind, fixed) = rest.strip_suffix('*').map_or((false, rest), |fixed| (true, fixed));
        Self::Text { fixed: fixed.to_owned(), front, behind }
    }

    /// Returns whether `value` is accepted for the header field `name`, which is in lower case.
    ///
    /// The query of a `Location` often repeats the target that the client asked for, as in
    /// `/login?next=/thanks`. Its host may be the one that the client has sent. So only the path of
    /// a `Location` is compared. The query is compared only if the accepted value has one, and the
    /// host only if the accepted value has a scheme.
    pub fn is_of_field(&self, name: &str, value: &str) -> bool {
        match self {
            Self::Text { fixed, .. } if name == "location" => {
                let ends: &[char] = if fixed.contains('?') { &['#'] } else { &['?', '#'] };
                let value = value.find(ends).map_or(value, |end| &value[..end]);
                self.is(if fixed.contains("://") { value } else { without_host(value) })
            }
            Self::Text { .. } | Self::Any => self.is(value),
        }
    }

    /// Returns whether a text is an accepted value.
    pub fn is(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Text { fixed, front: false, behind: false } => text == fixed,
            Self::Text { fixed, front: true, behind: false } => text.ends_with(fixed.as_str()),
            Self::Text { fixed, front: false, behind: true } => text.starts_with(fixed.as_str()),
            Self::Text { fixed, front: true, behind: true } => text.contains(fixed.as_str()),
        }
    }
}

/// Returns the part of a URL, or of a relative reference (RFC 3986 §4.2), that begins with the
/// path.
fn without_host(url: &str) -> &str {
    let rest = match url.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => Some(rest),
        Some(_) | None => url.strip_prefix("//"),
    };
    rest.map_or(url, |rest| rest.find(['/', '?']).map_or("/", |path| &rest[path..]))
}

impl Success {
    /// Returns whether there is no condition.
    pub fn is_empty(&self) -> bool {
        self.statuses.is_empty() && self.fields.is_empty() && self.json.is_empty()
    }

    /// Parses a condition, `status 2xx`, `header NAME: VALUE` or `json a.b: VALUE`, and adds it.
    /// Returns `false` if the text is not a condition.
    pub(crate) fn add(&mut self, text: &str) -> bool {
        let Some((kind, rest)) = text.split_once(' ') else { return false };
        let (name, value) = match rest.split_once(':') {
            Some((name, value)) => (name.trim(), Wanted::parse(value.trim())),
            None => (rest.trim(), Wanted::Any),
        };
        match kind {
            "status" => statuses(rest).map(|range| self.statuses.push(range)).is_some(),
            "header" if is_token(name) => {
                self.fields.push((name.to_ascii_lowercase(), value));
                true
            }
            "json" => {
                let path: Vec<String> = name.split('.').map(str::to_owned).collect();
                let is_path = path.iter().all(|part| !part.is_empty());
                if is_path {
                    self.json.push(JsonField { path, value });
                }
                is_path
            }
            _ => false,
        }
    }
}

/// Parses a status such as `302`, or a class of statuses such as `3xx`.
fn statuses(text: &str) -> Option<RangeInclusive<u16>> {
    let hundred = |text: &str| text.parse().ok().filter(|digit| (1..=5).contains(digit));
    if let Some(hundreds) = text.strip_suffix("xx") {
        let first: u16 = hundred(hundreds)?;
        return Some(first * 100..=first * 100 + 99);
    }
    let status: u16 = text.parse().ok()?;
    (100..=599).contains(&status).then_some(status..=status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_a_status_a_field_or_a_field_of_json() {
        let mut success = Success::default();
        for text in ["status 2xx", "status 302", "header Location: */thanks*", "header x-order"] {
            assert!(success.add(text), "{text}");
        }
        assert!(success.add("json data.result: success") && success.add("json id"));
        assert_eq!(success.statuses, [200..=299, 302..=302]);
        let [(name, location), (_, any)] = &success.fields[..] else { panic!("{success:?}") };
        assert_eq!(name, "location");
        assert!(location.is("/thanks") && !location.is("/basket") && any.is(""));
        assert_eq!(success.json[0].path, ["data", "result"]);
        assert!(success.json[0].value.is("success") && !success.json[0].value.is("successful"));
        assert_eq!(success.json[1].value, Wanted::Any);
    }

    #[test]
    fn a_location_is_compared_by_its_path() {
        let is =
            |wanted: &str, location: &str| Wanted::parse(wanted).is_of_field("location", location);
        for location in [
            "/thanks",
            "/thanks?id=1",
            "/thanks#top",
            "https://shop.example/thanks/7?id=1",
            "https://shop.example:8443/thanks",
            "//shop.example/thanks",
        ] {
            assert!(is("/thanks*", location) && is("*/thanks*", location), "{location}");
        }
        assert!(is("*/thanks*", "/en/thanks") && !is("/thanks*", "/en/thanks"));
        for location in [
            "/accounts/login/?next=/thanks",
            "/login#/thanks",
            "/login?next=https://shop.example/thanks",
            "https://thanks.example/login",
            "//thanks.example/login",
            "https://thanks.example",
            "https://thanks.example?next=/thanks",
            "https://a@thanks.example/login",
        ] {
            assert!(!is("/thanks*", location) && !is("*/thanks*", location), "{location}");
        }
        assert!(is("/", "https://shop.example") && is("/", "https://shop.example?a=/b"));
        let of_host = |location| is("https://pay.example/*", location);
        assert!(of_host("https://pay.example/7?a=b"));
        assert!(!of_host("/7") && !of_host("/login?next=https://pay.example/7"));
        let of_page = |location| is("/index.php?route=thanks*", location);
        assert!(of_page("https://shop.example/index.php?route=thanks&id=1#top"));
        assert!(!of_page("/index.php?route=login&next=/index.php?route=thanks"));
        assert!(!of_page("https://shop.example?next=/index.php?route=thanks"));
        assert!(is("*", "") && Wanted::parse("a?b").is_of_field("x-order", "a?b"));
    }

    #[test]
    fn anything_else_is_none() {
        let mut success = Success::default();
        for text in [
            "",
            "status",
            "status 99",
            "status 600",
            "status 6xx",
            "status xx",
            "status 2x",
            "header",
            "header a b",
            "json ",
            "json a..b",
            "json .a: 1",
            "Status 200",
            "cookie a",
        ] {
            assert!(!success.add(text), "{text}");
        }
        assert_eq!(success, Success::default());
    }

    #[test]
    fn a_star_stands_for_anything_in_front_or_behind() {
        let is = |wanted: &str, text: &str| Wanted::parse(wanted).is(text);
        assert!(is("x*", "xy") && !is("x*", "yx") && is("*x", "yx") && !is("*x", "xy"));
        assert_eq!(Wanted::parse("*"), Wanted::Any);
        assert!(is("*", "") && is("**", "x") && is("a", "a") && !is("a", "A") && !is("", "a"));
    }
}
