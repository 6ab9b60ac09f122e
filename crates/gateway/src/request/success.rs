//! What an answer brings, by the word of the application: a success that was seen here, and not
//! one that a path promises.
//!
//! A redirection is how a form that was sent is answered (303), and an order with it. To a request
//! that only asks to see something it says that there is nothing to see: who has not ordered is sent
//! from the page of thanks to the basket.
//!
//! Why at most a hundred times the mean: the amount may follow from what a visitor has typed (a
//! basket of a million teapots, given back tomorrow), and one visitor shall not turn the measured
//! worth of a class.

use bywash_message::Fields;
use bywash_units::Utility;
use http::StatusCode;

use crate::record::Record;

/// One answer counts for no more than so many average ones.
const MOST: f64 = 100.0;

/// Digits of an amount, its point included. Beyond lies no amount of money.
const LONGEST: usize = 20;

/// What an answer with this head brings. The field that says so is the gateway's: it goes no
/// further.
pub(super) fn earned(record: &Record, status: StatusCode, fields: &mut Fields) -> Utility {
    let class = record.class_config();
    let (mean, counts) = (class.class.earns, counts(record.facts().safe, status));
    let Some(header) = &class.earns_header else {
        return if counts { mean } else { Utility::default() };
    };
    let amount = one_amount(fields, header.as_bytes());
    fields.remove_named(header.as_bytes());
    let amount = amount.filter(|_| counts).unwrap_or(0.0);
    Utility::new(amount.min(MOST * mean.get()))
}

/// Whether the answer says that something was done; `safe`: nothing was asked to be.
fn counts(safe: bool, status: StatusCode) -> bool {
    status.is_success() || (!safe && status.is_redirection())
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
