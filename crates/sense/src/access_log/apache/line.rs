//! Parses a line by the `LogFormat` with which it was written.

use std::borrow::Cow;

use bywash_units::TimeSpan;

use super::super::fields::{self, duration, unescaped};
use super::super::{End, Flaw, Line, Logged, began, browser};
use super::clock::ParsedTime;
use super::{Field, LogFormat, Piece};

/// The fields of one line. A field whose text is `-` is `None`.
#[derive(Default)]
struct FieldValues<'a> {
    begin: Time,
    end: Time,
    client: Option<&'a str>,
    host: Option<&'a str>,
    peer: Option<&'a str>,
    request: Option<&'a str>,
    method: Option<&'a str>,
    path: Option<&'a str>,
    query: Option<&'a str>,
    first_status: Option<&'a str>,
    last_status: Option<&'a str>,
    body: Option<u64>,
    sent: Option<u64>,
    took: Option<(TimeSpan, TimeSpan)>,
    connection: Option<&'a str>,
    agent: Option<&'a str>,
}

/// A time from one field, and its fraction of a second from another field. Each comes with its
/// grain, which is the unit of its last digit.
#[derive(Default)]
struct Time {
    whole: Option<(TimeSpan, TimeSpan)>,
    fraction: Option<(TimeSpan, TimeSpan)>,
}

impl Time {
    fn take(&mut self, parsed: ParsedTime) {
        match parsed {
            // Keep the most precise of several times.
            ParsedTime::Time(at, grain) => {
                if self.whole.is_none_or(|(_, known)| grain < known) {
                    self.whole = Some((at, grain));
                }
            }
            ParsedTime::Fraction(part, grain) => self.fraction = Some((part, grain)),
        }
    }

    fn resolved(&self) -> Option<(TimeSpan, TimeSpan)> {
        let (whole, grain) = self.whole?;
        match self.fraction {
            Some((part, finer)) if grain == TimeSpan::from_secs(1) => Some((whole + part, finer)),
            Some(_) | None => Some((whole, grain)),
        }
    }
}

impl LogFormat {
    pub(in super::super) fn parse<'a>(&self, text: &'a str) -> Result<Line<'a>, Flaw> {
        let values = self.values(text)?;
        let took = values.took.map(|(took, _)| took);
        let (began, grain) = match (values.begin.resolved(), values.end.resolved()) {
            (Some((at, grain)), _) => (began(at, TimeSpan::ZERO)?, grain),
            (None, Some((at, grain))) => (began(at, took.unwrap_or_default())?, grain),
            (None, None) => return Err(Flaw::Part("time")),
        };
        let end = values.end_by_status()?;
        let Some((method, target)) = values.asked() else {
            return Ok(Line::NoRequest);
        };
        let address = values.client.or(values.host).or(values.peer);
        let who = browser(address, values.agent);
        let bytes = values.sent.or(values.body);
        Ok(Line::Request(Logged {
            began,
            grain,
            method,
            target,
            host: None,
            who,
            agent: values.agent.map(Cow::Borrowed),
            end,
            waited: None,
            service: took,
            bytes,
        }))
    }

    /// Parses a line piece by piece into the values of its fields.
    fn values<'a>(&self, text: &'a str) -> Result<FieldValues<'a>, Flaw> {
        let (mut values, mut rest) = (FieldValues::default(), text);
        for (at, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Literal(literal) => {
                    rest = rest
                        .strip_prefix(&**literal)
                        .ok_or(Flaw::Part("text that the format has here"))?;
                }
                Piece::Time { clock, end } => {
                    let (time, behind) = clock.read(rest)?;
                    let of_which = if *end { &mut values.end } else { &mut values.begin };
                    of_which.take(time);
                    rest = behind;
                }
                Piece::Field(field) => {
                    let next = match self.pieces.get(at + 1) {
                        Some(Piece::Literal(literal)) => literal,
                        Some(Piece::Field(_) | Piece::Time { .. }) | None => "",
                    };
                    let end = end_of_field(rest, next)
                        .ok_or(Flaw::Part("text that the format has here"))?;
                    values.take(*field, &rest[..end])?;
                    rest = &rest[end..];
                }
            }
        }
        if rest.is_empty() {
            Ok(values)
        } else {
            Err(Flaw::Part("end after the last field of the format"))
        }
    }
}

/// Returns the byte position at which a field ends and `literal` begins. A quote with a backslash
/// before it is part of the field.
fn end_of_field(text: &str, literal: &str) -> Option<usize> {
    if literal.is_empty() {
        return Some(text.len());
    }
    if !literal.starts_with('"') {
        return text.find(literal);
    }
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return text[at..].starts_with(literal).then_some(at),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

impl<'a> FieldValues<'a> {
    fn take(&mut self, field: Field, text: &'a str) -> Result<(), Flaw> {
        if text == "-" && field != Field::Body {
            return Ok(());
        }
        let text_of = match field {
            Field::Client => &mut self.client,
            Field::Host => &mut self.host,
            Field::Peer => &mut self.peer,
            Field::Request => &mut self.request,
            Field::Method => &mut self.method,
            Field::Path | Field::PathAndQuery => &mut self.path,
            Field::Query => &mut self.query,
            Field::FirstStatus => &mut self.first_status,
            Field::LastStatus => &mut self.last_status,
            Field::Connection => &mut self.connection,
            Field::Agent => &mut self.agent,
            Field::Body => {
                // `%b` writes `-` if there are no bytes.
                self.body = Some(fields::bytes(text)?.unwrap_or(0));
                return Ok(());
            }
            Field::Sent => {
                self.sent = fields::bytes(text)?;
                return Ok(());
            }
            Field::Took(unit) => return self.set_duration(text, unit),
            Field::Other => return Ok(()),
        };
        *text_of = Some(text);
        Ok(())
    }

    /// Records a duration, which `text` gives as a number of `unit`. The most precise of
    /// several durations is kept.
    fn set_duration(&mut self, text: &str, unit: TimeSpan) -> Result<(), Flaw> {
        let took = duration(text, unit, "duration")?;
        if self.took.is_none_or(|(_, known)| unit < known) {
            self.took = Some((took, unit));
        }
        Ok(())
    }

    /// Returns the result of the request by its status. If the connection was aborted before the
    /// response was complete, the client has left.
    fn end_by_status(&self) -> Result<End, Flaw> {
        let status = self.last_status.or(self.first_status);
        let status = status.map(fields::status).transpose()?;
        match self.connection {
            Some("X") => Ok(End::Left),
            None | Some("+" | "-") => Ok(fields::end(status)),
            Some(_) => Err(Flaw::Part("connection status")),
        }
    }

    /// Returns the method and the target, or `None` if the client did not send HTTP. A request line
    /// has the target as it was sent. A separate path was decoded by the server, so `%20` is a
    /// space in it.
    fn asked(&self) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
        if let Some(request) = self.request {
            return fields::method_and_target(unescaped(request, r"\x"));
        }
        let path = self.path.filter(|path| !path.is_empty())?;
        let query = self.query.map_or("", |query| query.strip_prefix('?').unwrap_or(query));
        let target = fields::with_query(unescaped(path, r"\x"), &unescaped(query, r"\x"));
        let is_one = self.method.is_none_or(|method| fields::is_request(method, "/"));
        is_one.then(|| (Cow::Borrowed(self.method.unwrap_or_default()), target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse<'a>(format: &str, text: &'a str) -> Result<Line<'a>, Flaw> {
        format.parse::<LogFormat>().unwrap().parse(text)
    }

    fn logged<'a>(format: &str, text: &'a str) -> Logged<'a> {
        match parse(format, text) {
            Ok(Line::Request(logged)) => logged,
            other => panic!("{other:?} of {text}"),
        }
    }

    const TIMED: &str = r#"%a %l %u %t "%r" %>s %O "%{Referer}i" "%{User-Agent}i" %D"#;
    const LINE: &str =
        r#"203.0.113.9 - - [14/Nov/2023:22:13:20 +0000] "GET /a?b HTTP/1.1" 200 512 "-" "x" 2500"#;

    #[test]
    fn a_request_is_what_its_format_says() {
        let one = logged(TIMED, LINE);
        assert_eq!(one.began, TimeSpan::from_secs(1_700_000_000));
        assert_eq!((&*one.method, &*one.target), ("GET", "/a?b"));
        assert_eq!((one.end, one.bytes), (End::Answered(200), Some(512)));
        assert_eq!((one.service, one.waited), (Some(TimeSpan::from_micros(2500)), None));
    }

    #[test]
    fn a_line_of_2005_is_read_by_its_own_format() {
        let text = "10.1.1.2 20296 + 1377 1102213360 0 /PHP/RUBiS_logo.jpg";
        let one = logged("%a %D %X %P %{%s}t %T %U", text);
        assert_eq!(one.began, TimeSpan::from_secs(1_102_213_360));
        assert_eq!((&*one.method, &*one.target), ("", "/PHP/RUBiS_logo.jpg"));
        assert_eq!((one.end, one.service), (End::Untold, Some(TimeSpan::from_micros(20_296))));
        assert_eq!(one.who, browser(Some("10.1.1.2"), None));
        let left = text.replacen('+', "X", 1);
        assert_eq!(logged("%a %D %X %P %{%s}t %T %U", &left).end, End::Left);
    }

    #[test]
    fn time_may_be_in_parts_and_of_the_end() {
        let format = "%{end:sec}t.%{end:usec_frac}t %{ms}T %m %U%q";
        let one = logged(format, "1700000000.250000 100 GET /a?b=%20c");
        assert_eq!(one.began, TimeSpan::from_millis(1_700_000_000_150));
        assert_eq!((one.grain, &*one.target), (TimeSpan::from_micros(1), "/a?b=%20c"));
        let format = "%t %{msec}t %{end:msec}t %U";
        let one = logged(format, "[14/Nov/2023:22:13:20 +0000] 1700000000007 1700000000999 /");
        assert_eq!(one.began, TimeSpan::from_millis(1_700_000_000_007));
    }

    #[test]
    fn nothing_is_told_by_a_dash() {
        let one = logged("%t %a %m %U %q %>s %b %D", "[14/Nov/2023:22:13:20 +0000] - GET /  - - -");
        assert_eq!((one.end, one.bytes, one.service), (End::Untold, Some(0), None));
        assert_eq!(one.who, super::super::super::Who::Untold);
        let both = r#"[14/Nov/2023:22:13:20 +0000] "GET /a%20b HTTP/1.1" "/a b""#;
        assert_eq!(logged("%t \"%r\" \"%U%q\"", both).target, "/a%20b");
        let redirected = logged("%t %U %s %>s", "[14/Nov/2023:22:13:20 +0000] / 302 503");
        assert_eq!(redirected.end, End::Refused);
    }

    #[test]
    fn a_client_cannot_end_its_field_in_quotes() {
        let text = LINE.replacen("\"x\"", r#""x\" 1 \" 9 \\\" 3""#, 1);
        assert_eq!(logged(TIMED, &text).service, Some(TimeSpan::from_micros(2500)));
        let text = LINE.replacen("/a?b", r#"/a\"HTTP/1.1\"\x22\x1b"#, 1);
        assert_eq!(logged(TIMED, &text).target, r#"/a"HTTP/1.1""\x1b"#);
        let text = LINE.replacen("/a?b", r#"/a" 200 1 "-" "-" 9"#, 1);
        assert!(parse(TIMED, &text).is_err());
    }

    #[test]
    fn what_is_malformed_is_a_flaw() {
        for (from, to) in [
            ("[14/Nov", "14/Nov"),
            ("14/Nov", "31/Nov"),
            ("2023", "1923"),
            (" 200 ", " 20 "),
            (" 512 ", " -512 "),
            (" 512 ", " 512  "),
            (" 2500", " 2.5"),
            (" 2500", " 86400000001"),
            (" 2500", " 2500 1"),
            (" 2500", ""),
            ("\"x\"", "\"x"),
            ("\"x\"", "\"x\\\""),
            ("\"GET", "GET"),
        ] {
            assert!(parse(TIMED, &LINE.replacen(from, to, 1)).is_err(), "{to}");
        }
        for request in ["-", "", r"\x16\x03", "GET"] {
            let text = LINE.replacen("GET /a?b HTTP/1.1", request, 1);
            assert_eq!(parse(TIMED, &text), Ok(Line::NoRequest), "{request}");
        }
        assert!(parse("%t %X %U", "[14/Nov/2023:22:13:20 +0000] ? /").is_err());
    }
}
