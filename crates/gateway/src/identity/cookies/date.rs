//! Parses the date in a cookie's `Expires` attribute as browsers do (RFC 6265 §5.1.1).
//!
//! Servers write the date in many formats, such as `Thu, 01-Jan-1970 00:00:01 GMT` and
//! `Thu Jan  1 00:00:00 1970`. Browsers accept a time, a day, a month and a year with anything else
//! between them. A stricter parser would not see that a cookie has expired, and would take a
//! deleted cookie for a session.

const MONTHS: [&[u8]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];

/// Parses a cookie date. Returns the seconds since 1970 (negative for earlier dates), or `None` if
/// the text is not a date.
pub(super) fn parse(text: &[u8]) -> Option<i64> {
    let (mut clock, mut day, mut month, mut year) = (None, None, None, None);
    for word in text.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b':') {
        // Each word fills the first field that is still missing and that the word is valid for.
        let _ = fills(&mut clock, || clock_of(word))
            || fills(&mut day, || number(word, 1, 2))
            || fills(&mut month, || month_of(word))
            || fills(&mut year, || number(word, 2, 4));
    }
    let year = match year? {
        year @ 0..70 => year + 2000,
        year @ 70..100 => year + 1900,
        year => year,
    };
    let day = day.filter(|day| (1..=31).contains(day) && year > 1600)?;
    Some(days(year, month?, day) * 86_400 + clock?)
}

fn fills(place: &mut Option<i64>, found: impl FnOnce() -> Option<i64>) -> bool {
    let was_empty = place.is_none();
    *place = place.or_else(found);
    was_empty && place.is_some()
}

/// Parses a time of day such as `08:49:37`. Returns the seconds since midnight.
fn clock_of(word: &[u8]) -> Option<i64> {
    let mut parts = word.splitn(3, |byte| *byte == b':').map(|part| number(part, 1, 2));
    match (parts.next()??, parts.next()??, parts.next()??) {
        (hour @ 0..24, minute @ 0..60, second @ 0..60) => Some(hour * 3600 + minute * 60 + second),
        _ => None,
    }
}

fn month_of(word: &[u8]) -> Option<i64> {
    let begin = word.get(..3)?;
    let mut months = (1..).zip(MONTHS);
    months.find(|(_, name)| begin.eq_ignore_ascii_case(name)).map(|(month, _)| month)
}

/// Returns the decimal number at the beginning of a word. Returns `None` if the number has fewer
/// than `least` or more than `most` digits.
fn number(word: &[u8], least: usize, most: usize) -> Option<i64> {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit());
    let fits = (least..=most).contains(&digits.clone().count());
    fits.then(|| digits.fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

/// Returns the number of days from 1970-01-01 to a date of the Gregorian calendar. The computation
/// lets a year begin in March: the leap day is then the last day of a year, and every five months
/// have 153 days.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_write_is_read() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 01-Jan-1970 00:00:01 GMT", 1),
            ("Thursday, 01-Jan-70 00:00:10 GMT", 10),
            ("Thu Jan  1 00:01:00 1970", 60),
            ("thu, 1 january 1970 1:0:0", 3600),
            ("1970 1 Jan 00:00:00", 0),
            ("Mon, 11-Oct-1999 22:00:00 GMT", 939_679_200),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Thu, 29 Feb 2024 12:00:00 +0000", 1_709_208_000),
            ("Tue, 19-Jan-38 03:14:08 GMT", 2_147_483_648),
            ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(seconds), "{text}");
        }
    }

    #[test]
    fn what_lacks_a_part_is_no_date() {
        for text in [
            "",
            "0",
            "-1",
            "session",
            "Thu, 01 Jan 1970",
            "01 1970 00:00:00",
            "Jan 1970 00:00:00",
            "Thu, 01 Jan 00:00:00 GMT",
            "Thu, 32 Jan 1970 00:00:00 GMT",
            "Thu, 00 Jan 1970 00:00:00 GMT",
            "Thu, 01 Jan 1600 00:00:00 GMT",
            "Thu, 01 Jan 19700 00:00:00 GMT",
            "Thu, 01 Jan 1970 24:00:00 GMT",
            "Thu, 01 Jan 1970 00:60:00 GMT",
            "Thu, 01 Jan 1970 00:00 GMT",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
