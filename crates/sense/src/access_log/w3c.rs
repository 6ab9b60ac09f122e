//! Parses the extended log file format of the W3C, as IIS writes it. Directives (`#Fields: date
//! time …`) define the columns of the lines that follow, and may occur again in the middle of a
//! file.
//!
//! The columns `date` and `time` are in UTC and denote the end of a request. The draft says so, and
//! IIS writes a line at that time. The column `time-taken` is in milliseconds in IIS and in seconds
//! in the draft, so `#Software: Microsoft …` decides. A whole number in a file that does not name
//! its software is a flaw. IIS writes `+` for a space in a header and `-` for a missing value.
//!
//! Sources: W3C, "Extended Log File Format" (working draft WD-logfile-960323). Microsoft, "W3C
//! Extended Log File Format (IIS 6.0)" (fields), "Description of the time-taken field in IIS 6.0
//! and IIS 7.0 HTTP logging" (from the first byte received to the last one sent).

use std::borrow::Cow;

use bywash_units::TimeSpan;

use super::fields::{self, bytes, duration, seconds};
use super::{Flaw, Line, Logged, began, browser, date};

/// The maximum number of columns. A directive with more is a flaw.
const MOST: usize = 256;

const TAKEN: &str = "time-taken";

/// The directives that apply to the lines that follow them.
#[derive(Clone, Debug, Default)]
pub(super) struct Directives {
    columns: Vec<Column>,
    software: Software,
}

/// The software that writes the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Software {
    /// The log does not name its software.
    #[default]
    Untold,
    /// IIS, or other software of Microsoft.
    Microsoft,
    /// Software that follows the W3C draft.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Date,
    Time,
    Method,
    Host,
    Uri,
    Stem,
    Query,
    Status,
    Sent,
    Bytes,
    Taken,
    Client,
    Agent,
    /// A column that this parser does not use.
    Other,
}

impl Column {
    fn of(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "date" => Self::Date,
            "time" => Self::Time,
            "cs-method" => Self::Method,
            "cs-host" | "cs(host)" => Self::Host,
            "cs-uri" => Self::Uri,
            "cs-uri-stem" => Self::Stem,
            "cs-uri-query" => Self::Query,
            "sc-status" => Self::Status,
            "sc-bytes" => Self::Sent,
            "bytes" => Self::Bytes,
            "time-taken" => Self::Taken,
            "c-ip" => Self::Client,
            "cs(user-agent)" => Self::Agent,
            _ => Self::Other,
        }
    }
}

/// The fields of one line. A field is `None` if it has no value.
#[derive(Default)]
struct FieldValues<'a> {
    date: Option<&'a str>,
    time: Option<&'a str>,
    method: Option<&'a str>,
    host: Option<&'a str>,
    uri: Option<&'a str>,
    query: Option<&'a str>,
    status: Option<&'a str>,
    sent: Option<&'a str>,
    taken: Option<&'a str>,
    client: Option<&'a str>,
    agent: Option<&'a str>,
}

impl Directives {
    pub(super) fn parse<'a>(&mut self, text: &'a str) -> Result<Line<'a>, Flaw> {
        if let Some(directive) = text.strip_prefix('#') {
            return self.directive(directive).map(|()| Line::Metadata);
        }
        if self.columns.is_empty() {
            return Err(Flaw::Part("line #Fields: before it"));
        }
        let values = self.values(text)?;
        let date = values.date.ok_or(Flaw::Part("date like 2023-11-14"))?;
        let time = values.time.ok_or(Flaw::Part("time of day like 22:13:20"))?;
        let (ended, grain) = date::utc(date, time)?;
        let taken = values.taken.map(|text| self.taken(text)).transpose()?;
        let status = values.status.map(fields::status).transpose()?;
        let (method, path) = (values.method.unwrap_or_default(), values.uri.unwrap_or_default());
        if !fields::is_request(method, path) {
            return Ok(Line::NoRequest);
        }
        Ok(Line::Request(Logged {
            began: began(ended, taken.unwrap_or_default())?,
            grain,
            method: Cow::Borrowed(method),
            target: fields::with_query(Cow::Borrowed(path), values.query.unwrap_or_default()),
            host: values.host.map(Cow::Borrowed),
            who: browser(values.client, values.agent),
            agent: values.agent.map(Cow::Borrowed),
            end: fields::end(status),
            waited: None,
            service: taken,
            bytes: values.sent.map(bytes).transpose()?.flatten(),
        }))
    }

    fn directive(&mut self, text: &str) -> Result<(), Flaw> {
        let (name, value) = text.split_once(':').ok_or(Flaw::Part("directive like #Fields:"))?;
        if name.eq_ignore_ascii_case("Software") {
            let microsoft = value.trim_start().starts_with("Microsoft");
            self.software = if microsoft { Software::Microsoft } else { Software::Other };
        }
        if name.eq_ignore_ascii_case("Fields") {
            // If this directive is invalid, the columns of the following lines are unknown.
            self.columns.clear();
            if value.split_ascii_whitespace().count() > MOST {
                return Err(Flaw::Part("line #Fields: with an allowed number of columns"));
            }
            self.columns.extend(value.split_ascii_whitespace().map(Column::of));
        }
        Ok(())
    }

    fn values<'a>(&self, text: &'a str) -> Result<FieldValues<'a>, Flaw> {
        const COLUMNS: Flaw = Flaw::Part("line with as many columns as #Fields:");
        let (mut values, mut rest) = (FieldValues::default(), text);
        for column in &self.columns {
            let (value, behind) = field(rest).ok_or(COLUMNS)?;
            rest = behind;
            if value == "-" {
                continue;
            }
            let target = match column {
                Column::Date => &mut values.date,
                Column::Time => &mut values.time,
                Column::Method => &mut values.method,
                Column::Host => &mut values.host,
                Column::Uri | Column::Stem => &mut values.uri,
                Column::Query => &mut values.query,
                Column::Status => &mut values.status,
                Column::Sent | Column::Bytes => &mut values.sent,
                Column::Taken => &mut values.taken,
                Column::Client => &mut values.client,
                Column::Agent => &mut values.agent,
                Column::Other => continue,
            };
            *target = Some(value);
        }
        if rest.trim().is_empty() { Ok(values) } else { Err(COLUMNS) }
    }

    fn taken(&self, text: &str) -> Result<TimeSpan, Flaw> {
        match self.software {
            Software::Microsoft => duration(text, TimeSpan::from_millis(1), TAKEN),
            Software::Other => seconds(text, TAKEN),
            // IIS writes no fractions, so a fraction means seconds.
            Software::Untold if text.contains('.') => seconds(text, TAKEN),
            Software::Untold => {
                Err(Flaw::Part("line #Software: before it, which tells the unit of its time"))
            }
        }
    }
}

/// Returns the next field and the rest of a line. A field may be in quotes, and then a quote in it
/// is doubled.
fn field(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    if let Some(text) = text.strip_prefix('"') {
        let mut from = 0;
        loop {
            let end = from + text[from..].find('"')?;
            if !text[end + 1..].starts_with('"') {
                return Some((&text[..end], &text[end + 1..]));
            }
            from = end + 2;
        }
    }
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::super::{End, Who};
    use super::*;

    const HEAD: &str = "#Software: Microsoft Internet Information Services 10.0";
    const FIELDS: &str = "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port \
        cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status sc-bytes \
        time-taken";
    const LINE: &str = "2023-11-14 22:13:20 10.0.0.2 GET /a b=1 443 - 203.0.113.9 Mozilla/5.0+(X11) - \
        200 0 0 5120 250";

    fn after(heads: &[&str]) -> Directives {
        let mut directives = Directives::default();
        for head in heads {
            assert_eq!(directives.parse(head), Ok(Line::Metadata), "{head}");
        }
        directives
    }

    fn logged(line: Result<Line<'_>, Flaw>) -> Logged<'_> {
        match line {
            Ok(Line::Request(logged)) => logged,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_of_iis_was_over_when_its_line_says_and_took_milliseconds() {
        let one = logged(after(&[HEAD, "#Version: 1.0", FIELDS]).parse(LINE));
        assert_eq!(one.began, TimeSpan::from_millis(1_699_999_999_750));
        assert_eq!((&*one.method, &*one.target), ("GET", "/a?b=1"));
        assert_eq!((one.service, one.bytes), (Some(TimeSpan::from_millis(250)), Some(5120)));
        assert_eq!((one.end, one.grain), (End::Answered(200), TimeSpan::from_secs(1)));
        assert!(matches!(one.who, Who::Browser { .. }));
    }

    #[test]
    fn the_unit_of_a_time_is_its_software_s() {
        let fields = "#Fields: date time cs-method cs-uri time-taken";
        let taken = |heads: &[&str], taken: &str| {
            let line: &'static str = format!("2023-11-14 22:13:20.5 GET /a {taken}").leak();
            after(heads).parse(line).map(|line| logged(Ok(line)).service)
        };
        assert_eq!(taken(&[HEAD, fields], "250"), Ok(Some(TimeSpan::from_millis(250))));
        assert_eq!(taken(&["#Software: x", fields], "2"), Ok(Some(TimeSpan::from_secs(2))));
        assert_eq!(taken(&[fields], "0.25"), Ok(Some(TimeSpan::from_millis(250))));
        assert_eq!(taken(&[fields], "-"), Ok(None));
        assert!(taken(&[fields], "250").is_err());
    }

    #[test]
    fn fields_may_be_others_from_the_middle_on() {
        let mut directives =
            after(&[HEAD, FIELDS, "#Fields: time date\tcs-host cs-uri-stem cs-method"]);
        let one = logged(directives.parse("22:13:20 2023-11-14\tshop.example /b GET"));
        assert_eq!((&*one.target, one.end, one.who), ("/b", End::Untold, Who::Untold));
        assert_eq!(one.host.as_deref(), Some("shop.example"));
        assert!(directives.parse(LINE).is_err());
        assert_eq!(directives.parse("#Fields:"), Ok(Line::Metadata));
        assert!(directives.parse("22:13:20 2023-11-14\t/b GET").is_err());
    }

    #[test]
    fn a_field_in_quotes_may_have_spaces() {
        let mut directives = after(&["#Fields: date time cs(User-Agent) cs-method cs-uri"]);
        let text = "2023-11-14 22:13:20 \"a \"\"b\"\" c\" GET /";
        let one = logged(directives.parse(text));
        assert_eq!(&*one.target, "/");
    }

    #[test]
    fn what_is_malformed_is_a_flaw() {
        for (from, to) in [
            ("2023-11-14", "2023-11-31"),
            ("2023-11-14", "1923-11-14"),
            ("2023-11-14", "-"),
            ("22:13:20", "-"),
            ("22:13:20", "25:13:20"),
            (" 200 ", " 2000 "),
            (" 5120 ", " -5120 "),
            (" 5120 ", " 5120 5120 "),
            (" 5120 ", " "),
            (" 250", " 2.5"),
            (" 250", " 86400001"),
            (" 250", " \"250"),
        ] {
            let line = LINE.replacen(from, to, 1);
            assert!(after(&[HEAD, FIELDS]).parse(&line).is_err(), "{to}");
        }
        assert_eq!(after(&[]).parse(LINE), Err(Flaw::Part("line #Fields: before it")));
        assert!(after(&[]).parse("# no directive").is_err());
        let many = format!("#Fields: {}", "x ".repeat(MOST + 1));
        assert!(after(&[HEAD, FIELDS]).parse(&many).is_err());
        let none = LINE.replacen("GET", "-", 1);
        assert_eq!(after(&[HEAD, FIELDS]).parse(&none), Ok(Line::NoRequest));
    }
}
