//! Determines whether a response is a success, and its revenue, from what the application says.
//!
//! A submitted form, such as an order, is often answered with a redirection (303), which counts as
//! a success. For a request with a safe method, a redirection is not a success: it may send a
//! visitor without an order from the confirmation page to the basket.
//!
//! A class may define its successes by status, by header fields, and by fields of a JSON body. Then
//! only such a response brings revenue, and only such a response proves to other classes that the
//! session was served this class. At most [`READ`] bytes of a body are examined, once the body is
//! complete. Until then the response does not count as a success, so a token sent with its head
//! does not record it.
//!
//! The revenue of one response counts up to [`MOST`] times the mean of its class. The amount may
//! depend on a visitor's input, for example an order of a million items that is cancelled later.
//! One visitor must not distort the measured value of a class.

use bywash_config::{JsonField, Success, Wanted};
use bywash_message::Fields;
use bywash_units::Utility;
use http::StatusCode;
use serde_json::Value;

use crate::request::record::Record;
use crate::telemetry::metrics::Unread;

/// The maximum revenue of one response, as a multiple of the mean of its class.
const MOST: f64 = 100.0;

/// The maximum number of characters of an amount, including its decimal point. It is longer than
/// any real amount.
const LONGEST: usize = 20;

/// The maximum number of bytes of a JSON body that are examined. The response to an order is
/// shorter.
const READ: usize = 16 * 1024;

/// The judgement about a response. The default is the judgement about a response that is
/// not a success.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Judged {
    /// The revenue; zero if the response is not a success.
    pub(super) revenue: Utility,
    /// Whether the response meets the conditions of its class. For a class without conditions this
    /// is always true, and the status decides whether the class was served.
    pub(super) succeeded: bool,
}

/// Judges a response by its head, and removes the field with the amount. If the body must state
/// success too, the response does not count as a success yet. The second returned value then
/// examines the body.
pub(super) fn judge(
    record: &Record,
    status: StatusCode,
    fields: &mut Fields,
) -> (Judged, Option<Sought>) {
    let class = record.class_config();
    let (mean, success) = (class.class.revenue, &class.success);
    let counts = counts(success, record.facts().safe, status) && has_fields(success, fields);
    let amount = match &class.revenue_header {
        None => mean.get(),
        Some(header) => {
            let amount = one_amount(fields, header.as_bytes());
            fields.remove_named(header.as_bytes());
            amount.unwrap_or(0.0).min(MOST * mean.get())
        }
    };
    let revenue = if counts { Utility::new(amount) } else { Utility::default() };
    let judged = Judged { revenue, succeeded: counts || success.is_empty() };
    if !counts || success.json.is_empty() {
        return (judged, None);
    }
    let sought = Sought { judged, is_compressed: is_compressed(fields), body: Vec::new() };
    (Judged::default(), Some(sought))
}

/// Returns whether the status means success. `safe` says whether the request's method is safe.
fn counts(success: &Success, safe: bool, status: StatusCode) -> bool {
    if success.statuses.is_empty() {
        return status.is_success() || (!safe && status.is_redirection());
    }
    success.statuses.iter().any(|range| range.contains(&status.as_u16()))
}

fn has_fields(success: &Success, fields: &Fields) -> bool {
    let is_accepted = |name: &str, wanted: &Wanted, value: &[u8]| {
        str::from_utf8(value).is_ok_and(|value| wanted.is_of_field(name, value))
    };
    success.fields.iter().all(|(name, wanted)| {
        fields.named(name.as_bytes()).any(|value| is_accepted(name, wanted, value.trim_ascii()))
    })
}

/// Returns whether the body is compressed, so that the gateway cannot examine it.
fn is_compressed(fields: &Fields) -> bool {
    fields.named(b"content-encoding").any(|coding| !coding.eq_ignore_ascii_case(b"identity"))
}

/// The search for success in the JSON body of one response.
pub(super) struct Sought {
    /// The judgement if the body states success.
    judged: Judged,
    is_compressed: bool,
    /// The beginning of the body, at most one byte longer than [`READ`].
    body: Vec<u8>,
}

impl Sought {
    /// Adds a piece of the body. Ignores what exceeds the part that is examined.
    pub(super) fn take(&mut self, piece: &[u8]) {
        let room = (READ + 1).saturating_sub(self.body.len());
        self.body.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// Returns the judgement about the response, once the whole body was added.
    ///
    /// # Errors
    /// Returns the reason why the body cannot be examined.
    pub(super) fn judge(&self, success: &Success) -> Result<Judged, Unread> {
        if self.is_compressed {
            return Err(Unread::Compressed);
        }
        if self.body.len() > READ {
            return Err(Unread::TooLong);
        }
        let body = serde_json::from_slice::<Value>(&self.body).ok();
        let says = |body: &Value| success.json.iter().all(|wanted| says(body, wanted));
        Ok(body.filter(says).map_or_else(Judged::default, |_| self.judged))
    }
}

/// Returns whether the body has this field with an accepted value.
fn says(body: &Value, wanted: &JsonField) -> bool {
    let field = wanted.path.iter().try_fold(body, |within, name| within.get(name));
    match (field, &wanted.value) {
        (None | Some(Value::Null | Value::Bool(false)), Wanted::Any) | (None, _) => false,
        (Some(_), Wanted::Any) => true,
        (Some(Value::String(text)), wanted) => wanted.is(text),
        (Some(Value::Object(_) | Value::Array(_)), _) => false,
        (Some(other), wanted) => wanted.is(&other.to_string()),
    }
}

/// Returns the amount in the field `header`. Returns `None` if the field is missing, repeated or
/// malformed.
fn one_amount(fields: &Fields, header: &[u8]) -> Option<f64> {
    let mut values = fields.named(header);
    let value = values.next()?;
    if values.next().is_none() { amount(value) } else { None }
}

/// Parses digits with an optional decimal point. A sign, an exponent or a currency is not accepted.
fn amount(text: &[u8]) -> Option<f64> {
    let plain = text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let digit = text.first().is_some_and(u8::is_ascii_digit);
    if !plain || !digit || text.len() > LONGEST {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn success(json: &str) -> Success {
        let text = format!(
            "version = 1\n[upstream]\nserver = 'http://127.0.0.1:1'\n[class.order]\nmatch = ['POST /order']\nrevenue = 1\n\
             success = {json}\n"
        );
        let (config, _) = bywash_config::Config::parse(&text, "test").unwrap();
        config.classes[0].success.clone()
    }

    fn good() -> Judged {
        Judged { revenue: Utility::new(2.0), succeeded: true }
    }

    fn sought(is_compressed: bool) -> Sought {
        Sought { judged: good(), is_compressed, body: Vec::new() }
    }

    #[test]
    fn a_body_brings_something_if_all_of_its_fields_are_as_they_should_be() {
        let success = success("['json data.result: success', 'json data.id']");
        let judged = |pieces: &[&str]| {
            let mut sought = sought(false);
            for piece in pieces {
                sought.take(piece.as_bytes());
            }
            sought.judge(&success)
        };
        let (all, nothing) = (Ok(good()), Ok(Judged::default()));
        let good = r#"{"data":{"result":"success","id":7},"other":[1]}"#;
        assert_eq!(judged(&[good]), all);
        assert_eq!(judged(&good.split_inclusive(',').collect::<Vec<_>>()), all);
        for bad in [
            "",
            "{",
            "[]",
            "7",
            r#"{"data":{"result":"failure","id":7}}"#,
            r#"{"data":{"result":"success","id":null}}"#,
            r#"{"data":{"result":"success","id":false}}"#,
            r#"{"result":"success","id":7}"#,
            r#"{"data":[{"result":"success","id":7}]}"#,
            &"[".repeat(10_000),
        ] {
            assert_eq!(judged(&[bad]), nothing, "{bad}");
        }
        let long = format!("{good}{}", " ".repeat(READ));
        assert_eq!(judged(&[&long]), Err(Unread::TooLong));
        assert_eq!(judged(&[&long[..READ]]), all);
        let mut compressed = sought(true);
        compressed.take(good.as_bytes());
        assert_eq!(compressed.judge(&success), Err(Unread::Compressed));
    }

    #[test]
    fn no_more_of_a_body_is_kept_than_is_looked_at() {
        let mut sought = sought(false);
        for _ in 0..100 {
            sought.take(&vec![b' '; 1_000_000]);
        }
        assert!(sought.body.len() <= READ + 1);
    }

    #[test]
    fn numbers_and_truths_are_compared_as_they_stand() {
        let says = |json: &str, body: &str| {
            let wanted = success(&format!("['json {json}']"));
            says(&serde_json::from_str(body).unwrap(), &wanted.json[0])
        };
        assert!(says("a: 1", r#"{"a":1}"#) && says("a: true", r#"{"a":true}"#));
        assert!(says("a: 1*", r#"{"a":12}"#) && !says("a: 1", r#"{"a":10}"#));
        assert!(says("a: false", r#"{"a":false}"#) && !says("a: *", r#"{"a":null}"#));
    }

    #[test]
    fn an_amount_is_digits_and_one_point() {
        for (text, expected) in [("0", 0.0), ("12", 12.0), ("12.50", 12.5), ("7.", 7.0)] {
            assert_eq!(amount(text.as_bytes()), Some(expected), "{text}");
        }
        let long = "1".repeat(LONGEST + 1);
        for text in ["", ".5", "-1", "+1", "1e9", "inf", "NaN", "1.2.3", "1,5", "9 EUR", &long] {
            assert_eq!(amount(text.as_bytes()), None, "{text}");
        }
    }
}
