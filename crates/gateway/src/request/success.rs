//! What an answer brings, by the word of the application: a success that was seen here, and not
//! one that a path promises.
//!
//! A redirection is how a form that was sent is answered (303), and an order with it. To a request
//! that only asks to see something it says that there is nothing to see: who has not ordered is sent
//! from the page of thanks to the basket.
//!
//! A class may say itself what its successes are: by status, by fields, and by fields of a JSON body. Of a body the first
//! [`READ`] bytes are looked at, once it is complete. Its answer brings nothing before, so no token tells of such an order.
//!
//! Why at most a hundred times the mean: the amount may follow from what a visitor has typed (a
//! basket of a million teapots, given back tomorrow), and one visitor shall not turn the measured
//! worth of a class.

use bywash_config::{JsonField, Success, Wanted};
use bywash_message::Fields;
use bywash_units::Utility;
use http::StatusCode;
use serde_json::Value;

use crate::record::Record;

/// One answer counts for no more than so many average ones.
const MOST: f64 = 100.0;

/// Digits of an amount, its point included. Beyond lies no amount of money.
const LONGEST: usize = 20;

/// Bytes of a JSON body that are looked at. The answer to an order is short.
const READ: usize = 16 * 1024;

/// Returns what an answer with this head brings, and if its body has to say so as well, what is looked for there: then it
/// brings nothing yet. The field that says how much goes no further.
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

/// Whether the answer says that something was done; `safe`: nothing was asked to be.
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

/// The body of an answer that brings something if there is JSON in it that says so.
pub(super) struct Sought {
    amount: Utility,
    /// The part of it that has come, and no more than one byte over [`READ`].
    body: Vec<u8>,
}

impl Sought {
    /// Takes a piece of the body.
    pub(super) fn take(&mut self, piece: &[u8]) {
        let room = (READ + 1).saturating_sub(self.body.len());
        self.body.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// Returns what the answer brings, as its body has come.
    pub(super) fn earned(&self, success: &Success) -> Utility {
        let body = Some(&self.body).filter(|body| body.len() <= READ);
        let body = body.and_then(|body| serde_json::from_slice::<Value>(body).ok());
        let says = |body: &Value| success.json.iter().all(|wanted| says(body, wanted));
        body.filter(says).map_or_else(Utility::default, |_| self.amount)
    }
}

/// Whether the body has this field.
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

/// The amount, if there is one and no second.
fn one_amount(fields: &Fields, header: &[u8]) -> Option<f64> {
    let mut values = fields.named(header);
    let value = values.next()?;
    if values.next().is_none() { amount(value) } else { None }
}

/// Digits, and a point among them if there are parts: no sign, no exponent, no currency.
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
