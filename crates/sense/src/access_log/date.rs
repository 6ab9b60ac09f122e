//! Parses dates as servers write them: `14/Nov/2023:22:13:20 +0000` of the common log format, ISO
//! 8601 with its profile RFC 3339, and seconds since 1970 with a fraction.
//!
//! Each time comes with its grain, which is its precision: the unit of its last digit.

use bywash_units::TimeSpan;

use super::Flaw;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time since 1970 and its grain, which is the unit of its last digit.
pub(crate) type TimeAndGrain = (TimeSpan, TimeSpan);

const SECOND: TimeSpan = TimeSpan::from_secs(1);

/// Parses a time of the common log format, such as `14/Nov/2023:22:13:20 +0000`. Returns the time
/// since 1970.
pub(super) fn common(text: &str) -> Result<TimeSpan, Flaw> {
    let fail = || Flaw::Part("time like 14/Nov/2023:22:13:20 +0000");
    let (time, zone) = text.split_once(' ').ok_or_else(fail)?;
    let (days, clock) = common_day(time).ok_or_else(fail)?;
    let clock = seconds_of_day(clock).ok_or_else(fail)?;
    since_1970(days, clock, offset(zone).ok_or_else(fail)?)
}

/// Parses `14/Nov/2023:22:13:20.123`, the date of `HAProxy`. The date has no zone, so it is taken
/// for UTC.
pub(super) fn haproxy(text: &str) -> Result<TimeAndGrain, Flaw> {
    let fail = || Flaw::Part("time like 14/Nov/2023:22:13:20.123");
    let (days, clock) = common_day(text).ok_or_else(fail)?;
    let (clock, fraction) = clock.split_once('.').ok_or_else(fail)?;
    let clock = seconds_of_day(clock).ok_or_else(fail)?;
    let (fraction, grain) = fraction_of_second(fraction).ok_or_else(fail)?;
    Ok((since_1970(days, clock, 0)? + fraction, grain))
}

/// Parses `2023-11-14T22:13:20.123Z`. The fraction is optional. The zone may also be an offset:
/// `+01:00` or `+0100`.
pub(super) fn iso(text: &str) -> Result<TimeAndGrain, Flaw> {
    let fail = || Flaw::Part("time like 2023-11-14T22:13:20.123Z");
    let (date, time) = text.split_once(['T', ' ']).ok_or_else(fail)?;
    let zone = time.find(['Z', '+', '-']).ok_or_else(fail)?;
    let (clock, zone) = time.split_at(zone);
    let zone = if zone == "Z" { 0 } else { offset(&zone.replacen(':', "", 1)).ok_or_else(fail)? };
    let (since_midnight, fraction, grain) = clock_of(clock).ok_or_else(fail)?;
    let days = iso_day(date).ok_or_else(fail)?;
    Ok((since_1970(days, since_midnight, zone)? + fraction, grain))
}

/// Parses a date and a time of day in UTC: `2023-11-14` and `22:13:20`, with an optional fraction.
pub(crate) fn utc(date: &str, clock: &str) -> Result<TimeAndGrain, Flaw> {
    let days = iso_day(date).ok_or(Flaw::Part("date like 2023-11-14"))?;
    let (clock, fraction, grain) =
        clock_of(clock).ok_or(Flaw::Part("time of day like 22:13:20"))?;
    Ok((since_1970(days, clock, 0)? + fraction, grain))
}

/// Parses `1700000000.123`, seconds since 1970 with an optional fraction.
pub(super) fn epoch(text: &str) -> Result<TimeAndGrain, Flaw> {
    let fail = || Flaw::Part("time in seconds since 1970");
    let (seconds, fraction) = text.split_once('.').map_or((text, None), |(a, b)| (a, Some(b)));
    let digits = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = seconds.parse().ok().filter(|_| digits).ok_or_else(fail)?;
    let fraction = fraction.map_or(Some((TimeSpan::ZERO, SECOND)), fraction_of_second);
    let (fraction, grain) = fraction.ok_or_else(fail)?;
    Ok((TimeSpan::from_secs(seconds) + fraction, grain))
}

/// Parses `14/Nov/2023:…`. Returns the days since 1970, and the text after the first colon.
fn common_day(text: &str) -> Option<(i64, &str)> {
    let (date, clock) = text.split_once(':')?;
    let mut parts = date.splitn(3, '/');
    let (date, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    Some((day(number(year, 4)?, month_named(month)?, number(date, 2)?)?, clock))
}

/// Parses `2023-11-14`. Returns the days since 1970.
fn iso_day(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-');
    let (year, month, date) = (parts.next()?, parts.next()?, parts.next()?);
    day(number(year, 4)?, number(month, 2)?, number(date, 2)?)
}

/// Returns the number of a month, from 1, by its English abbreviation.
pub(super) fn month_named(text: &str) -> Option<i64> {
    (1..).zip(MONTHS).find(|(_, name)| *name == text).map(|(month, _)| month)
}

/// Returns the days from 1970-01-01 to a date, or `None` if there is no such date.
pub(super) fn day(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_one = (1..=12).contains(&month) && (1..=days_in(month, year)).contains(&day);
    is_one.then(|| days(year, month, day))
}

/// Returns the time since 1970. `days` is the number of days since 1970, `clock` the second of the
/// day, and `zone` the offset of the zone from UTC in seconds. A time before 1970 is a flaw.
pub(super) fn since_1970(days: i64, clock: i64, zone: i64) -> Result<TimeSpan, Flaw> {
    let seconds = days * 86_400 + clock - zone;
    u64::try_from(seconds).map(TimeSpan::from_secs).map_err(|_| Flaw::Time)
}

/// Parses `22:13:20` or `22:13:20.123`. Returns the second of the day, the fraction of a second and
/// the grain.
fn clock_of(text: &str) -> Option<(i64, TimeSpan, TimeSpan)> {
    let Some((clock, fraction)) = text.split_once('.') else {
        return Some((seconds_of_day(text)?, TimeSpan::ZERO, SECOND));
    };
    let (fraction, grain) = fraction_of_second(fraction)?;
    Some((seconds_of_day(clock)?, fraction, grain))
}

/// Parses the digits after the decimal point of seconds. Returns the fraction of a second, and its
/// grain. Digits after the ninth do not count.
pub(super) fn fraction_of_second(digits: &str) -> Option<TimeAndGrain> {
    if digits.is_empty() || digits.len() > 18 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = &digits[..digits.len().min(9)];
    let unit = 10_u64.pow(9 - digits.len() as u32);
    Some((TimeSpan::from_nanos(digits.parse::<u64>().ok()? * unit), TimeSpan::from_nanos(unit)))
}

/// Parses a number of exactly `digits` digits.
pub(super) fn number(text: &str, digits: usize) -> Option<i64> {
    let all = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| all)
}

/// Parses `22:13:20`. Returns the second of the day. A leap second counts as the next second.
pub(super) fn seconds_of_day(text: &str) -> Option<i64> {
    let parts: Vec<i64> = text.split(':').map(|part| number(part, 2)).collect::<Option<_>>()?;
    match parts[..] {
        [hour @ 0..24, minute @ 0..60, second @ 0..=60] => Some(hour * 3600 + minute * 60 + second),
        _ => None,
    }
}

/// Parses an offset from UTC. Returns the seconds by which the zone is ahead: 5,400 for `+0130`.
pub(super) fn offset(text: &str) -> Option<i64> {
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

/// Returns the days from 1970-01-01 to a date in the Gregorian calendar. Years begin in March here,
/// so that the leap day is the last day of a year, and every five months have 153 days.
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
        // The expected seconds were computed by `date -ud … +%s`.
        for (text, seconds) in [
            ("01/Jan/1970:00:00:00 +0000", 0),
            ("14/Nov/2023:22:13:20 +0000", 1_700_000_000),
            ("29/Feb/2024:23:59:59 -0130", 1_709_256_599),
            ("01/Mar/2100:00:00:00 +0000", 4_107_542_400),
            ("31/Dec/1999:23:59:60 +0000", 946_684_800),
        ] {
            assert_eq!(common(text), Ok(TimeSpan::from_secs(seconds)), "{text}");
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
            assert!(common(text).is_err(), "{text}");
        }
    }

    #[test]
    fn each_form_tells_the_same_moment_and_how_exactly() {
        let at = |millis: u64| TimeSpan::from_millis(1_700_000_000_000 + millis);
        let (second, milli) = (TimeSpan::from_secs(1), TimeSpan::from_millis(1));
        for (parsed, expected) in [
            (iso("2023-11-14T22:13:20Z"), (at(0), second)),
            (iso("2023-11-14T23:13:20+01:00"), (at(0), second)),
            (iso("2023-11-14 21:43:20.250-0030"), (at(250), milli)),
            (haproxy("14/Nov/2023:22:13:20.007"), (at(7), milli)),
            (utc("2023-11-14", "22:13:20"), (at(0), second)),
            (epoch("1700000000"), (at(0), second)),
            (epoch("1700000000.250"), (at(250), milli)),
            (epoch("1700000000.2500000004"), (at(250), TimeSpan::from_nanos(1))),
        ] {
            assert_eq!(parsed, Ok(expected));
        }
    }

    #[test]
    fn what_is_none_of_a_form_is_a_flaw_in_it() {
        for text in [
            "",
            "Z",
            "T",
            "2023-11-14",
            "2023-11-14T22:13:20",
            "2023-13-14T22:13:20Z",
            "2023-00-14T22:13:20Z",
            "2023-11-14T22:13:20.Z",
            "2023-11-14T22:13:20+1:00",
            "2023-11-14T22:13:20+é",
            "2023-11-14T22:13:20.1e5Z",
            "-023-11-14T22:13:20Z",
        ] {
            assert!(iso(text).is_err(), "{text}");
        }
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e9", "1.2.3", "18446744073709551616", "٣"]
        {
            assert!(epoch(text).is_err(), "{text}");
        }
        for text in ["14/Nov/2023:22:13:20", "14/Nov/2023:22:13:20.", ":.", "14/11/2023:22:13:20.1"]
        {
            assert!(haproxy(text).is_err(), "{text}");
        }
        assert!(utc("2023-11-14", "-").is_err() && utc("-", "22:13:20").is_err());
    }
}
