//! Parses the `common` and `combined` formats of Apache httpd and nginx: `CLIENT IDENTITY USER
//! [TIME] "REQUEST" STATUS BYTES "REFERRER" "BROWSER" …`.
//!
//! nginx is often configured to add `rt=$request_time` and `urt=$upstream_response_time`, in
//! seconds. With them, the start and the service time of a request are known. Without them, the
//! line only contains one time, to the second.
//!
//! Text in quotes comes from clients. More quoted fields may follow (`"$http_x_forwarded_for"`).
//! Both servers escape quotes in such text (`\"`, `\x22`), so a field ends at the first quote
//! without a backslash before it. The fields `rt=` and `urt=` are searched between quoted fields,
//! never inside them.

use std::borrow::Cow;

use bywash_units::TimeSpan;

use super::fields::{self, leading_number, less, quoted, seconds, total};
use super::{End, Flaw, Line, Logged, began, browser, date};

pub(super) fn parse(text: &str) -> Result<Line<'_>, Flaw> {
    let client = text.split(' ').next().filter(|client| !client.is_empty());
    let client = client.ok_or(Flaw::Part("client"))?;
    let (_, rest) = text.split_once(" [").ok_or(Flaw::Part("time in brackets"))?;
    let (time, rest) = rest.split_once(']').ok_or(Flaw::Part("time in brackets"))?;
    let logged_at = date::common(time)?;
    let (request, rest) = quoted(rest.trim_start()).ok_or(Flaw::Part("request in quotes"))?;
    let mut words = rest.trim_start().splitn(3, ' ');
    let status = fields::status(words.next().unwrap_or_default())?;
    // Apache's `%b` is `-` if there are no bytes.
    let bytes = fields::bytes(words.next().unwrap_or_default())?.unwrap_or(0);
    let (agent, rest) = agent(words.next().unwrap_or_default());
    let times = Times::read(rest)?;
    if times.elsewhere && !matches!(End::of_status(status), End::Refused | End::Left) {
        return Ok(Line::Elsewhere);
    }
    let request = fields::unescaped(request, r"\x");
    let Some((method, target)) = fields::method_and_target(request) else {
        return Ok(Line::NoRequest);
    };
    Ok(Line::Request(Logged {
        began: began(logged_at, times.all.unwrap_or_default())?,
        grain: TimeSpan::from_secs(1),
        method,
        target,
        host: None,
        who: browser(Some(client), Some(agent)),
        agent: Some(Cow::Borrowed(agent)),
        end: End::of_status(status),
        waited: times.waited(),
        service: times.service.or(times.all),
        bytes: Some(bytes),
    }))
}

/// Returns the user agent, which is the second of two quoted fields, and the rest of the text. If
/// the fields are missing, the user agent is empty.
fn agent(text: &str) -> (&str, &str) {
    let both = quoted(text.trim_start()).and_then(|(_, rest)| quoted(rest.trim_start()));
    both.unwrap_or(("", text))
}

/// The times that nginx has appended to a line.
#[derive(Default)]
struct Times {
    /// The time from the first byte of the request to the last byte of the response.
    all: Option<TimeSpan>,
    /// The part of `all` that the application took.
    service: Option<TimeSpan>,
    /// Whether the line shows that no application was involved.
    elsewhere: bool,
}

impl Times {
    fn read(text: &str) -> Result<Self, Flaw> {
        let mut times = Self::default();
        if let Some(value) = named(text, "rt=") {
            times.all = Some(seconds(leading_number(value).0, TIMES)?);
        }
        if let Some(list) = named(text, "urt=") {
            times.service = total(list, TIMES)?;
            times.elsewhere = times.service.is_none();
        }
        Ok(times)
    }

    fn waited(&self) -> Option<TimeSpan> {
        let (all, service) = (self.all?, self.service?);
        Some(less(all, service))
    }
}

/// Returns the text after `name`, which must begin a word outside of quotes. Quoted fields are
/// skipped. Returns `None` if there is no such word.
fn named<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = text.trim_start();
    loop {
        if rest.starts_with('"') {
            rest = quoted(rest)?.1.trim_start();
        } else if let Some(value) = rest.strip_prefix(name) {
            return Some(value.strip_prefix('"').unwrap_or(value));
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || c == '"')?;
            rest = rest[end..].trim_start();
        }
    }
}

const TIMES: &str = "time in seconds after rt= and urt=";

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<Line<'_>, Flaw> {
        parse(text)
    }

    fn logged(text: &str) -> Logged<'_> {
        match parse(text) {
            Ok(Line::Request(logged)) => logged,
            other => panic!("{other:?} of {text}"),
        }
    }

    const AT: &str = "[14/Nov/2023:22:13:20 +0000]";

    #[test]
    fn the_common_format_says_who_what_and_when() {
        let text = format!(r#"203.0.113.9 - frank {AT} "GET /a.gif?x=1 HTTP/1.0" 200 2326"#);
        let logged = logged(&text);
        assert_eq!(logged.began, TimeSpan::from_secs(1_700_000_000));
        assert_eq!((logged.method.as_ref(), logged.target.as_ref()), ("GET", "/a.gif?x=1"));
        assert_eq!((logged.end, logged.service), (End::Answered(200), None));
        assert_eq!(logged.bytes, Some(2326));
    }

    #[test]
    fn address_and_browser_are_who() {
        let of = |client: &str, browser: &str| {
            let text = format!(r#"{client} - - {AT} "GET / HTTP/1.1" 200 - "-" "{browser}""#);
            parse(&text).map(|line| match line {
                Line::Request(logged) => logged.who,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(of("2001:db8::1", "Firefox"), of("2001:db8::1", "Firefox"));
        assert_ne!(of("2001:db8::1", "Firefox"), of("2001:db8::2", "Firefox"));
        assert_ne!(of("2001:db8::1", "Firefox"), of("2001:db8::1", "Fire\\\"fox"));
    }

    #[test]
    fn times_of_nginx_are_read_and_summed() {
        let tail = |tail: &str| format!(r#"::1 - - {AT} "POST /b HTTP/2.0" 201 9 "-" "x" {tail}"#);
        let text = tail("rt=0.500 uct=0.001 uht=0.2 urt=0.100, 0.200 : 0.050");
        let one = logged(&text);
        assert_eq!(one.began, TimeSpan::from_millis(1_699_999_999_500));
        assert_eq!(one.service, Some(TimeSpan::from_millis(350)));
        assert_eq!(one.waited, Some(TimeSpan::from_millis(150)));
        let text = tail("rt=\"0.250\" pipe=.");
        assert_eq!(logged(&text).service, Some(TimeSpan::from_millis(250)));
        assert_eq!(line(&tail("rt=0.001 urt=-")), Ok(Line::Elsewhere));
        assert!(line(&tail("rt=never")).is_err());
        assert_eq!(line(&tail("rt=99999999")), Err(Flaw::Duration));
    }

    #[test]
    fn the_field_behind_a_time_is_no_part_of_it() {
        let tail = |tail: &str| {
            let text = format!(r#"::1 - - {AT} "GET /b HTTP/2.0" 200 9 "-" "x" {tail}"#);
            let logged = logged(&text);
            (1_700_000_000_000 - logged.began.as_millis(), logged.service)
        };
        let both = |all, service| (all, Some(TimeSpan::from_millis(service)));
        for (text, expected) in [
            ("rt=0.050 512", both(50, 50)),
            ("rt=0.050 512 urt=0.040 200 10.0.0.1:80", both(50, 40)),
            ("urt=0.040 10.0.0.1:80 rt=0.050", both(50, 40)),
            ("urt=0.010, 0.020 : - : 0.005 200, 200 : 200 rt=0.050", both(50, 35)),
            ("rt=0.050, urt=0.040, uct=0.9", both(50, 40)),
        ] {
            assert_eq!(tail(text), expected, "{text}");
        }
    }

    #[test]
    fn a_refusal_by_nginx_itself_is_a_request_that_nobody_served() {
        let text = format!(r#"::1 - - {AT} "GET / HTTP/1.1" 503 9 "-" "x" rt=0.000 urt=-"#);
        assert_eq!(logged(&text).end, End::Refused);
        let text = text.replace(" 503 ", " 499 ");
        assert_eq!(logged(&text).end, End::Left);
    }

    #[test]
    fn a_browser_cannot_say_how_long_it_took() {
        let text = format!(r#"::1 - - {AT} "GET / HTTP/1.1" 200 9 "-" "x\" rt=9 urt=9 \"""#);
        assert_eq!(logged(&text).service, None);
        let text = format!(r#"::1 - - {AT} "GET /\" 200 1 rt=9 HTTP/1.1" 404 9 "-" "\\""#);
        let logged = logged(&text);
        assert_eq!((logged.end, logged.service), (End::Answered(404), None));
    }

    #[test]
    fn nor_can_any_other_field_in_quotes() {
        for tail in [
            r#""x rt=80000 urt=0" rt=0.010 urt=0.010"#,
            r#"rt=0.010 "rt=9" urt=0.010 "urt=9""#,
            r#""\" rt=9 urt=9 \"" rt="0.010" urt="0.010""#,
            r#"xff="1 rt=9 urt=9" rt="0.010" x"rt=9"urt=0.010"#,
        ] {
            let text = format!(r#"::1 - - {AT} "GET / HTTP/1.1" 200 9 "-" "x" {tail}"#);
            let logged = logged(&text);
            assert_eq!(logged.service, Some(TimeSpan::from_millis(10)), "{tail}");
            assert_eq!(logged.began, TimeSpan::from_millis(1_699_999_999_990), "{tail}");
        }
        let text = format!(r#"::1 - - {AT} "GET / HTTP/1.1" 200 9 "-" "x" "half rt=9 urt=9"#);
        assert_eq!(logged(&text).service, None);
    }

    #[test]
    fn what_is_no_http_is_no_request() {
        for request in [r"\x16\x03\x01", "-", "", "hello world", "GET"] {
            let text = format!(r#"::1 - - {AT} "{request}" 400 0"#);
            assert_eq!(line(&text), Ok(Line::NoRequest), "{request}");
        }
    }

    #[test]
    fn a_part_that_is_missing_is_named() {
        for (text, part) in [
            ("::1 - - \"GET /\" 200 1".to_owned(), "time in brackets"),
            (format!("::1 - - {AT} GET / 200 1"), "request in quotes"),
            (format!("::1 - - {AT} \"GET / 200 1\\\""), "request in quotes"),
            (format!("::1 - - {AT} \"GET /\" OK 1"), "status"),
            (format!("::1 - - {AT} \"GET /\" +20 1"), "status"),
            (format!("::1 - - {AT} \"GET /\" 200 x"), "number of bytes"),
        ] {
            assert_eq!(line(&text), Err(Flaw::Part(part)), "{text}");
        }
        let early = "::1 - - [01/Jan/1980:00:00:00 +0000] \"GET / HTTP/1.1\" 200 1";
        assert_eq!(line(early), Err(Flaw::Time));
    }
}
