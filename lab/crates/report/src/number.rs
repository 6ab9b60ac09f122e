//! Formats numbers for people: `42,029`, `57.5`, `−3`.
//!
//! A value that is not a number is shown as a dash, never as `NaN`.

/// The text that stands for a missing value.
pub(crate) const NONE: &str = "–";

/// Formats a count with separators between thousands.
pub(crate) fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// Formats `value` with exactly `decimals` decimals and separators between thousands.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    let digits = format!("{:.decimals$}", value.abs());
    let negative = value < 0.0 && digits.bytes().any(|digit| (b'1'..=b'9').contains(&digit));
    let sign = if negative { "−" } else { "" };
    match digits.split_once('.') {
        Some((whole, part)) => format!("{sign}{}.{part}", grouped(whole)),
        None => format!("{sign}{}", grouped(&digits)),
    }
}

/// Formats `value` with at most `most` decimals, without trailing zeros.
pub(crate) fn short(value: f64, most: usize) -> String {
    fixed(value, decimals(value, most))
}

/// Returns the number of decimals of `value`, at most `most`, that remain when trailing zeros are
/// removed.
pub(crate) fn decimals(value: f64, most: usize) -> usize {
    let digits = format!("{value:.most$}");
    digits.split_once('.').map_or(0, |(_, part)| part.trim_end_matches('0').len())
}

/// Formats a share in percent, without the percent sign. A positive share never appears as zero.
pub(crate) fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.0005 {
        return "<0.1".into();
    }
    fixed(share * 100.0, 1)
}

/// Formats `part` as a percentage of `whole`, without the percent sign; a dash if `whole` is zero.
pub(crate) fn percent_of(part: u64, whole: u64) -> String {
    if whole == 0 {
        return NONE.into();
    }
    percent(part as f64 / whole as f64)
}

/// Formats a number of milliseconds. Values below ten have one decimal, and others have none.
pub(crate) fn millis(value: f64) -> String {
    fixed(value, usize::from(value < 10.0))
}

fn grouped(digits: &str) -> String {
    let mut groups = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            groups.push(',');
        }
        groups.push(digit);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        assert_eq!(count(7), "7");
        assert_eq!(count(999), "999");
        assert_eq!(count(42_029), "42,029");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(fixed(-12_345.67, 1), "−12,345.7");
    }

    #[test]
    fn a_share_has_one_decimal_and_never_hides_a_little() {
        assert_eq!(percent(0.575), "57.5");
        assert_eq!(percent(1.0), "100.0");
        assert_eq!(percent(0.0), "0.0");
        assert_eq!(percent(0.000_01), "<0.1");
        assert_eq!(percent_of(1, 0), NONE);
    }

    #[test]
    fn what_is_no_number_is_a_dash_and_zero_has_no_sign() {
        assert_eq!(fixed(f64::NAN, 1), NONE);
        assert_eq!(percent(f64::INFINITY), NONE);
        assert_eq!(fixed(-0.01, 1), "0.0");
    }

    #[test]
    fn decimals_that_say_nothing_are_left_out() {
        assert_eq!(short(1.40, 2), "1.4");
        assert_eq!(short(0.75, 2), "0.75");
        assert_eq!(short(3.0, 2), "3");
    }
}
