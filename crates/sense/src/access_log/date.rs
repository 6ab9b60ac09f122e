//! The date of the common log format: `14/Nov/2023:22:13:20 +0000`.

use bywash_units::Span;

use super::Flaw;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Seconds since 1970.
pub(super) fn parse(text: &str) -> Result<Span, Flaw> {
    let fail = || Flaw::Part("time like 14/Nov/2023:22:13:20 +0000");
    let (date, zone) = text.split_once(' ').ok_or_else(fail)?;
    let (date, clock) = date.split_once(':').ok_or_else(fail)?;
    let mut date = date.split('/');
    let mut next = || date.next().ok_or_else(fail);
    let (day, month, year) = (next()?, next()?, next()?);
    let (month, _) = (1..).zip(MONTHS).find(|(_, name)| *name == month).ok_or_else(fail)?;
    let (day, year) = (number(day, 2).ok_or_else(fail)?, number(year, 4).ok_or_else(fail)?);
    let clock = seconds_of_day(clock).ok_or_else(fail)?;
    let zone = offset(zone).ok_or_else(fail)?;
    if date.next().is_some() || !(1..=days_in(month, year)).contains(&day) {
        return Err(fail());
    }
    let seconds = days(year, month, day) * 86_400 + clock - zone;
    u64::try_from(seconds).map(Span::from_secs).map_err(|_| Flaw::Time)
}

/// Exactly so many digits.
fn number(text: &str, digits: usize) -> Option<i64> {
    let all = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| all)
}

/// `22:13:20`; a leap second is the next second.
fn seconds_of_day(text: &str) -> Option<i64> {
    let parts: Vec<i64> = text.split(':').map(|part| number(part, 2)).collect::<Option<_>>()?;
    match parts[..] {
        [hour @ 0..24, minute @ 0..60, second @ 0..=60] => Some(hour * 3600 + minute * 60 + second),
        _ => None,
    }
}

/// `+0130` is ninety minutes ahead.
fn offset(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = number(text.get(1..)?, 4)?;
    let (hours, minutes) = (digits / 100, digits % 100);
    (hours <= 15 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

fn days_in(month: i64, year: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the Gregorian calendar. Years begin in March, so that the leap day is
/// the last of one and 153 days are every five months.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let before = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    before + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // By `date -ud … +%s`.
        for (text, seconds) in [
            ("01/Jan/1970:00:00:00 +0000", 0),
            ("14/Nov/2023:22:13:20 +0000", 1_700_000_000),
            ("29/Feb/2024:23:59:59 -0130", 1_709_256_599),
            ("01/Mar/2100:00:00:00 +0000", 4_107_542_400),
            ("31/Dec/1999:23:59:60 +0000", 946_684_800),
        ] {
            assert_eq!(parse(text), Ok(Span::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_a_flaw() {
        for text in [
            "",
            "14/Nov/2023:22:13:20",
            "14/nov/2023:22:13:20 +0000",
            "00/Nov/2023:22:13:20 +0000",
            "31/Nov/2023:22:13:20 +0000",
            "29/Feb/2023:22:13:20 +0000",
            "14/Nov/2023/1:22:13:20 +0000",
            "14/Nov/2023:24:13:20 +0000",
            "14/Nov/2023:22:13 +0000",
            "14/Nov/2023:22:13:+1 +0000",
            "14/Nov/2023:22:13:20 0000",
            "14/Nov/2023:22:13:20 +é00",
            "14/Nov/99999:22:13:20 +0000",
            "01/Jan/1970:00:00:00 +0100",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
