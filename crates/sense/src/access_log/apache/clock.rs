//! Parses the times of `%t`. They are written in one of three notations: in brackets as in the
//! common format, as a count since 1970 or its fraction, or by conversions of `strftime(3)`. The
//! supported conversions express a date, a time of day or a zone independently of the locale (and
//! `%b` in English).

use bywash_units::TimeSpan;

use super::super::fields::digits;
use super::super::{Flaw, date};

/// The notation of a time in a `LogFormat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// A date in brackets, such as `[14/Nov/2023:22:13:20 +0000]`.
    Common,
    /// The time since 1970, as a count of this unit.
    Since1970(TimeSpan),
    /// The fraction of a second of a time in another field, with this number of digits.
    Fraction(usize),
    /// A sequence of conversions of `strftime(3)` and literals.
    Parts(Vec<Part>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Literal(char),
    Year,
    Month,
    MonthName,
    Day,
    Hour,
    Minute,
    Second,
    Zone,
    Since1970,
}

/// The time in one field: a whole time, or only the fraction of a second. Each comes with its
/// grain, which is the unit of its last digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParsedTime {
    Time(TimeSpan, TimeSpan),
    Fraction(TimeSpan, TimeSpan),
}

const PART: &str = "time in the form that the format gives";

impl Clock {
    /// Parses the text in the braces of `%{…}t`. The error is the reason why the text is not
    /// supported.
    pub(super) fn of(format: &str) -> Result<Self, &'static str> {
        Ok(match format {
            "" => Self::Common,
            "sec" => Self::Since1970(TimeSpan::from_secs(1)),
            "msec" => Self::Since1970(TimeSpan::from_millis(1)),
            "usec" => Self::Since1970(TimeSpan::from_micros(1)),
            "msec_frac" => Self::Fraction(3),
            "usec_frac" => Self::Fraction(6),
            format => Self::Parts(parts(format)?),
        })
    }

    pub(super) const fn is_fraction(&self) -> bool {
        matches!(self, Self::Fraction(_))
    }

    /// Returns whether the notation has a recognisable end, so that a digit after the time cannot
    /// be taken for a part of the time.
    pub(super) fn has_an_end(&self) -> bool {
        match self {
            Self::Common | Self::Fraction(_) => true,
            Self::Since1970(_) => false,
            Self::Parts(parts) => parts.last() != Some(&Part::Since1970),
        }
    }

    /// Parses the time at the start of a text. Returns the time and the rest of the text.
    pub(super) fn read<'a>(&self, text: &'a str) -> Result<(ParsedTime, &'a str), Flaw> {
        match self {
            Self::Common => {
                let inside = text.strip_prefix('[').and_then(|text| text.split_once(']'));
                let (inside, rest) = inside.ok_or(Flaw::Part("time in brackets"))?;
                Ok((ParsedTime::Time(date::common(inside)?, TimeSpan::from_secs(1)), rest))
            }
            Self::Since1970(unit) => {
                let (count, rest) = count(text)?;
                Ok((ParsedTime::Time(*unit * count, *unit), rest))
            }
            Self::Fraction(length) => {
                let (fraction, rest) = text.split_at_checked(*length).ok_or(Flaw::Part(PART))?;
                let parsed = date::fraction_of_second(fraction).ok_or(Flaw::Part(PART))?;
                Ok((ParsedTime::Fraction(parsed.0, parsed.1), rest))
            }
            Self::Parts(parts) => {
                let mut read = Reading { rest: text, ..Reading::default() };
                for part in parts {
                    read.part(*part).ok_or(Flaw::Part(PART))?;
                }
                let time = read.time().ok_or(Flaw::Part(PART))??;
                Ok((ParsedTime::Time(time, TimeSpan::from_secs(1)), read.rest))
            }
        }
    }
}

/// Parses the whole number at the start of a text. Returns the number and the rest of the text.
fn count(text: &str) -> Result<(u64, &str), Flaw> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (count, rest) = text.split_at(end);
    Ok((digits(count).ok_or(Flaw::Part(PART))?, rest))
}

/// Parses the conversions and literals of a format of `strftime(3)`. The error is the reason why
/// the format is not supported.
fn parts(format: &str) -> Result<Vec<Part>, &'static str> {
    let mut parts = Vec::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            parts.push(Part::Literal(c));
            continue;
        }
        let colon = Part::Literal(':');
        let dash = Part::Literal('-');
        match chars.next() {
            Some('%') => parts.push(Part::Literal('%')),
            Some('Y') => parts.push(Part::Year),
            Some('m') => parts.push(Part::Month),
            Some('b' | 'h') => parts.push(Part::MonthName),
            Some('d') => parts.push(Part::Day),
            Some('H') => parts.push(Part::Hour),
            Some('M') => parts.push(Part::Minute),
            Some('S') => parts.push(Part::Second),
            Some('z') => parts.push(Part::Zone),
            Some('s') => parts.push(Part::Since1970),
            Some('F') => parts.extend([Part::Year, dash, Part::Month, dash, Part::Day]),
            Some('T') => parts.extend([Part::Hour, colon, Part::Minute, colon, Part::Second]),
            _ => {
                return Err(
                    "of strftime, bywash reads only %Y %m %b %d %F %H %M %S %T %z %s and %%",
                );
            }
        }
    }
    let has = |part| parts.contains(&part);
    let day = has(Part::Year) && has(Part::Day) && (has(Part::Month) || has(Part::MonthName));
    let time = has(Part::Hour) && has(Part::Minute) && has(Part::Second);
    // A `Z` right after the seconds means that the server's time is UTC.
    let utc = parts.windows(2).any(|two| two == [Part::Second, Part::Literal('Z')]);
    if has(Part::Since1970) {
        return Ok(parts);
    }
    if !day || !time {
        return Err("a time needs a date and a time of day, as in %F %T %z, or %s");
    }
    if !has(Part::Zone) && !utc {
        return Err("a time needs its zone: add %z, or write %s");
    }
    Ok(parts)
}

/// The state of reading a time: the parts that have been read, and the rest of the text.
#[derive(Default)]
struct Reading<'a> {
    rest: &'a str,
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    zone: i64,
    since_1970: Option<u64>,
}

impl Reading<'_> {
    fn part(&mut self, part: Part) -> Option<()> {
        match part {
            Part::Literal(c) => self.rest = self.rest.strip_prefix(c)?,
            Part::Year => self.year = self.number(4)?,
            Part::Month => self.month = self.number(2)?,
            Part::MonthName => self.month = date::month_named(self.take(3)?)?,
            Part::Day => self.day = self.number(2)?,
            Part::Hour => self.hour = self.number(2)?,
            Part::Minute => self.minute = self.number(2)?,
            Part::Second => self.second = self.number(2)?,
            Part::Zone => self.zone = date::offset(self.take(5)?)?,
            Part::Since1970 => {
                let (seconds, rest) = count(self.rest).ok()?;
                self.since_1970 = Some(seconds);
                self.rest = rest;
            }
        }
        Some(())
    }

    fn take(&mut self, length: usize) -> Option<&str> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn number(&mut self, length: usize) -> Option<i64> {
        date::number(self.take(length)?, length)
    }

    fn time(&self) -> Option<Result<TimeSpan, Flaw>> {
        if let Some(seconds) = self.since_1970 {
            return Some(Ok(TimeSpan::from_secs(seconds)));
        }
        let days = date::day(self.year, self.month, self.day)?;
        let is_one = self.hour < 24 && self.minute < 60 && self.second <= 60;
        let clock = self.hour * 3600 + self.minute * 60 + self.second;
        is_one.then(|| date::since_1970(days, clock, self.zone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: &str, text: &str) -> Result<ParsedTime, Flaw> {
        let (parsed, rest) = Clock::of(format).unwrap().read(text)?;
        assert_eq!(rest, " rest", "{format}");
        Ok(parsed)
    }

    #[test]
    fn every_way_to_write_a_time_tells_the_same() {
        let (at, second) = (TimeSpan::from_secs(1_700_000_000), TimeSpan::from_secs(1));
        for (format, text) in [
            ("", "[14/Nov/2023:22:13:20 +0000]"),
            ("sec", "1700000000"),
            ("%s", "1700000000"),
            ("%d/%b/%Y:%H:%M:%S %z", "14/Nov/2023:23:13:20 +0100"),
            ("%Y-%m-%dT%H:%M:%S%z", "2023-11-14T22:13:20+0000"),
            ("%FT%TZ", "2023-11-14T22:13:20Z"),
            ("[%F %T %z] 100%%", "[2023-11-14 22:13:20 +0000] 100%"),
        ] {
            let parsed = read(format, &format!("{text} rest"));
            assert_eq!(parsed, Ok(ParsedTime::Time(at, second)), "{format}");
        }
        let milli = TimeSpan::from_millis(1);
        assert_eq!(read("msec", "1700000000000 rest"), Ok(ParsedTime::Time(at, milli)));
        let fraction = ParsedTime::Fraction(TimeSpan::from_micros(42), TimeSpan::from_micros(1));
        assert_eq!(read("usec_frac", "000042 rest"), Ok(fraction));
    }

    #[test]
    fn what_is_no_time_is_a_flaw() {
        for (format, text) in [
            ("", "14/Nov/2023:22:13:20 +0000"),
            ("", "[14/Nov/2023:22:13:20 +0000"),
            ("sec", "-1"),
            ("sec", ""),
            ("usec", "99999999999999999999999"),
            ("msec_frac", "12"),
            ("msec_frac", "1é"),
            ("%s", "x"),
            ("%F %T %z", "2023-11-31 22:13:20 +0000"),
            ("%F %T %z", "2023-11-14 24:13:20 +0000"),
            ("%F %T %z", "2023-11-14 22:13:20 0000"),
            ("%F %T %z", "2023-11-14 22:13"),
            ("%d/%b/%Y:%T %z", "14/nov/2023:22:13:20 +0000"),
            ("%d/%b/%Y:%T %z", "éé"),
        ] {
            assert!(Clock::of(format).unwrap().read(text).is_err(), "{format}: {text}");
        }
    }

    #[test]
    fn a_format_that_says_too_little_of_a_time_is_refused() {
        for format in ["%c", "%", "%F", "%T %z", "%F %T", "%H:%M", "now", "%y%m%d"] {
            assert!(Clock::of(format).is_err(), "{format}");
        }
    }
}
