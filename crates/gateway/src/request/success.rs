//! The revenue of a response as stated by the application: a success that was seen here, and not
//! one that a path promises.
//!
//! A submitted form, and therefore an order, is often answered with a redirection (303). For a
//! request with a safe method a redirection says that there is nothing to see: a visitor without an
//! order is sent from the confirmation page to the basket.
//!
//! A class may define its successes by status, by fields, and by fields of a JSON body. The
//! first [`READ`] bytes of a body are examined once it is complete. Until then the response brings no
//! revenue, so no token records such an order.
//!
//! One response counts for at most a hundred times the mean. The amount may follow from what a
//! visitor has typed (a basket of a million teapots, returned tomorrow), and one visitor must not
//! distort the measured value of a class.

use bywash_config::{JsonField, Success, Wanted};
use bywash_message::Fields;
use bywash_units::Utility;
use http::StatusCode;
use serde_json::Value;

use crate::request::record::Record;

/// The limit on one response's revenue, as a multiple of the mean.
const MOST: f64 = 100.0;

/// The maximum number of characters of an amount, including its point. No amount of money is
/// longer.
const LONGEST: usize = 20;

/// The number of bytes of a JSON body that are examined. The response to an order is short.
const READ: usize = 16 * 1024;

/// Returns the revenue of a response with this head. If the body must state success too, the
/// revenue is zero so far, and the second value looks for success in the body. The field with the
/// amount is removed.
pub(super) fn earned(
    record: &Record,
    status: StatusCode,
    fields: &mut Fields,
) -> (Utility, Option<Sought>) {
    let class = record.class_config();
    let (mean, success) = (class.class.earns, &class.success);
    let counts = counts(success, record.facts().safe, status) && has_fields(success, fields);
    let amount = match &class.earns_header {
        None => mean.get(),
        Some(header) => {
            let amount = one_amount(fields, header.as_bytes());
            fields.remove_named(header.as_bytes());
            amount.unwrap_or(0.0).min(MOST * mean.get())
        }
    };
    if !counts || amount <= 0.0 {
        return (Utility::default(), None);
    }
    let amount = Utility::new(amount);
    if success.json.is_empty() {
        return (amount, None);
    }
    (Utility::default(), Some(Sought { amount, body: Vec::new() }))
}

/// Returns whether the status means success. `safe`: the method is safe, so nothing was to be done.
fn counts(success: &Success, safe: bool, status: StatusCode) -> bool {
    if success.statuses.is_empty() {
        return status.is_success() || (!safe && status.is_redirection());
    }
    success.statuses.iter().any(|range| range.contains(&status.as_u16()))
}

fn has_fields(success: &Success, fields: &Fields) -> bool {
    let is_text =
        |value: &[u8], wanted: &Wanted| str::from_utf8(value).is_ok_and(|text| wanted.is(text));
    success.fields.iter().all(|(name, wanted)| {
        fields.named(name.as_bytes()).any(|value| is_text(value.trim_ascii(), wanted))
    })
}

/// The revenue of a response that depends on JSON in its body.
pub(super) struct Sought {
    amount: Utility,
    /// The beginning of the body, at most one byte longer than [`READ`].
    body: Vec<u8>,
}

impl Sought {
    /// Adds a piece of the body.
    pub(super) fn take(&mut self, piece: &[u8]) {
        let room = (READ + 1).saturating_sub(self.body.len());
        self.body.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// Returns the revenue of the response, given the body that has arrived.
    pub(super) fn earned(&self, success: &Success) -> Utility {
        let body = Some(&self.body).filter(|body| body.len() <= READ);
        let body = body.and_then(|body| serde_json::from_slice::<Value>(body).ok());
        let says = |body: &Value| success.json.iter().all(|wanted| says(body, wanted));
        body.filter(says).map_or_else(Utility::default, |_| self.amount)
    }
}

/// Returns whether the body has this field.
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

/// Returns the amount, if the field occurs exactly once.
fn one_amount(fields: &Fields, header: &[u8]) -> Option<f64> {
    let mut values = fields.named(header);
    let value = values.next()?;
    if values.next().is_none() { amount(value) } else { None }
}

/// Parses digits with an optional decimal point: no sign, no exponent, no currency.
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
            "version = 1\n[upstream]\nserver = 'http://127.0.0.1:1'\n[class.order]\nmatch = ['POST /order']\nearns = 1\n\
             success = {json}\n"
        );
        let (config, _) = bywash_config::Config::parse(&text, "test").unwrap();
        config.classes[0].success.clone()
    }

    #[test]
    fn a_body_brings_something_if_all_of_its_fields_are_as_they_should_be() {
        let success = success("['json data.result: success', 'json data.id']");
        let earned = |pieces: &[&str]| {
            let mut sought = Sought { amount: Utility::new(2.0), body: Vec::new() };
            for piece in pieces {
                sought.take(piece.as_bytes());
            }
            sought.earned(&success)
        };
        let (all, nothing) = (Utility::new(2.0), Utility::default());
        let good = r#"{"data":{"result":"success","id":7},"other":[1]}"#;
        assert_eq!(earned(&[good]), all);
        assert_eq!(earned(&good.split_inclusive(',').collect::<Vec<_>>()), all);
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
            assert_eq!(earned(&[bad]), nothing, "{bad}");
        }
        let long = format!("{good}{}", " ".repeat(READ));
        assert_eq!(earned(&[&long]), nothing, "more than is looked at");
        assert_eq!(earned(&[&long[..READ]]), all);
    }

    #[test]
    fn no_more_of_a_body_is_kept_than_is_looked_at() {
        let mut sought = Sought { amount: Utility::new(1.0), body: Vec::new() };
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
