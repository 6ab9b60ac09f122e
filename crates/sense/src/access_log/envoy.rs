//! Parses Envoy's default text format, and JSON logs with the usual keys.
//!
//! `START_TIME` is the time at which the request began. `DURATION`, in milliseconds, lasts until
//! the last byte was sent. `X-ENVOY-UPSTREAM-SERVICE-TIME` is the time in milliseconds until the
//! headers of the application's response arrived. It is used as the service time where it is known,
//! because the rest of the duration mostly depends on the speed of the client. The response flags
//! tell which side ended a request that was not simply answered.
//!
//! Envoy does not escape client input in its text format. A target contains no spaces, so a line is
//! read word by word up to the times, and a quote in a target does no harm. But a client that sends
//! a quote in a header can choose its apparent identity. The last address in `X-Forwarded-For` is
//! the one that Envoy saw itself. JSON with `downstream_remote_address` is more reliable.
//!
//! Source: Envoy, "Access logging" (default format, command operators, response flags; a response
//! code of 0 means that no response began), "HTTP header manipulation" (`x-forwarded-for`,
//! `x-envoy-upstream-service-time`).

use std::borrow::Cow;

use bywash_units::TimeSpan;
use serde::Deserialize;

use super::fields::{self, duration};
use super::json::{self, Text, Value, missing};
use super::{End, Flaw, Line, Logged, began, browser, date};

const DURATION_FIELD: &str = "duration in milliseconds";
const UPSTREAM: &str = "upstream service time in milliseconds";

/// The fields that the text form and the JSON form both have.
struct FieldValues<'a, 't> {
    start: &'t str,
    method: Cow<'a, str>,
    target: Cow<'a, str>,
    code: &'t str,
    flags: &'t str,
    sent: Option<&'t str>,
    took: &'t str,
    upstream: Option<&'t str>,
    address: Option<&'t str>,
    agent: Option<Cow<'a, str>>,
    host: Option<Cow<'a, str>>,
    /// Whether no upstream server was involved.
    elsewhere: bool,
}

pub(super) fn parse_text(text: &str) -> Result<Line<'_>, Flaw> {
    let time = text.strip_prefix('[').and_then(|text| text.split_once("] \""));
    let (start, rest) = time.ok_or(Flaw::Part("time in brackets"))?;
    let mut words = rest.splitn(9, ' ');
    let mut next = |part| words.next().ok_or(Flaw::Part(part));
    let (method, target) = (next("request in quotes")?, next("request in quotes")?);
    let protocol = next("request in quotes")?;
    if !protocol.ends_with('"') {
        return Err(Flaw::Part("request in quotes"));
    }
    let (code, flags) = (next("response code")?, next("response flags")?);
    let _received = fields::bytes(next("number of bytes")?)?;
    let (sent, took) = (next("number of bytes")?, next(DURATION_FIELD)?);
    let (upstream, behind) = next(UPSTREAM)?.split_once(' ').ok_or(Flaw::Part("forwarded for"))?;
    let mut quoted = behind.split('"').skip(1).step_by(2);
    let (forwarded, agent) = (quoted.next(), quoted.next());
    // Search for the host from the end of the line. The headers of the client, which may contain
    // quotes, come before it.
    let host = behind.rsplit('"').nth(3).filter(|host| !matches!(*host, "" | "-"));
    request(FieldValues {
        start,
        method: Cow::Borrowed(method),
        target: Cow::Borrowed(target),
        code,
        flags,
        sent: Some(sent),
        took,
        upstream: Some(upstream),
        address: forwarded.and_then(last_address),
        agent: agent.map(Cow::Borrowed),
        host: host.map(Cow::Borrowed),
        elsewhere: behind.ends_with(" \"-\""),
    })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JsonEntry<'a> {
    #[serde(borrow)]
    start_time: Value<'a>,
    #[serde(borrow, alias = ":method")]
    method: Value<'a>,
    #[serde(borrow, alias = "x-envoy-original-path")]
    x_envoy_original_path: Value<'a>,
    #[serde(borrow, alias = ":path")]
    path: Value<'a>,
    #[serde(borrow)]
    response_code: Value<'a>,
    #[serde(borrow)]
    response_flags: Value<'a>,
    #[serde(borrow)]
    bytes_sent: Value<'a>,
    #[serde(borrow)]
    duration: Value<'a>,
    #[serde(borrow, alias = "x_envoy_upstream_service_time")]
    #[serde(alias = "x-envoy-upstream-service-time")]
    upstream_service_time: Value<'a>,
    #[serde(borrow)]
    upstream_host: Value<'a>,
    #[serde(borrow, alias = "user-agent")]
    user_agent: Value<'a>,
    #[serde(borrow, alias = "x-forwarded-for")]
    x_forwarded_for: Value<'a>,
    #[serde(borrow)]
    downstream_remote_address: Value<'a>,
    #[serde(borrow, alias = ":authority")]
    authority: Text<'a>,
}

pub(super) fn parse_json(text: &str) -> Result<Line<'_>, Flaw> {
    let mut entry: JsonEntry<'_> = json::object(text)?;
    if entry.method.text().is_none() || entry.path.text().is_none() {
        return Err(missing("method` and `path"));
    }
    let method = std::mem::take(&mut entry.method).into_value();
    let original = std::mem::take(&mut entry.x_envoy_original_path).into_value();
    let target = original.or(std::mem::take(&mut entry.path).into_value());
    let host = std::mem::take(&mut entry.authority).into_value();
    let agent = std::mem::take(&mut entry.user_agent).into_value();
    let address = entry.downstream_remote_address.value().map(without_port);
    let values = FieldValues {
        start: entry.start_time.value().ok_or_else(|| missing("start_time"))?,
        method: method.unwrap_or_default(),
        target: target.unwrap_or_default(),
        code: entry.response_code.value().ok_or_else(|| missing("response_code"))?,
        flags: entry.response_flags.value().unwrap_or("-"),
        sent: entry.bytes_sent.value(),
        took: entry.duration.value().ok_or_else(|| missing("duration"))?,
        upstream: entry.upstream_service_time.value(),
        address: address.or(entry.x_forwarded_for.value().and_then(last_address)),
        agent,
        host,
        elsewhere: entry.upstream_host.text() == Some("-"),
    };
    request(values)
}

fn request<'a>(values: FieldValues<'a, '_>) -> Result<Line<'a>, Flaw> {
    let (came, grain) = date::iso(values.start)?;
    let took = duration(values.took, TimeSpan::from_millis(1), DURATION_FIELD)?;
    let upstream = values.upstream.filter(|text| *text != "-");
    let upstream =
        upstream.map(|text| duration(text, TimeSpan::from_millis(1), UPSTREAM)).transpose()?;
    let Some(end) = end(values.flags, values.code)? else {
        return Ok(Line::NoRequest);
    };
    if !fields::is_request(&values.method, &values.target) {
        return Ok(Line::NoRequest);
    }
    if values.elsewhere && matches!(end, End::Answered(_)) {
        return Ok(Line::Elsewhere);
    }
    Ok(Line::Request(Logged {
        began: began(came, TimeSpan::ZERO)?,
        grain,
        method: values.method,
        target: values.target,
        host: values.host,
        who: browser(values.address, values.agent.as_deref()),
        agent: values.agent,
        end,
        waited: None,
        service: Some(upstream.unwrap_or(took)),
        bytes: values.sent.map(fields::bytes).transpose()?.flatten(),
    }))
}

/// Returns the result of a request by its response flags, otherwise by its status code. Returns
/// `None` if the request was malformed.
fn end(flags: &str, code: &str) -> Result<Option<End>, Flaw> {
    let is_flag = |c: char| c.is_ascii_alphanumeric() || matches!(c, ',' | '_' | '-' | ':');
    if flags.is_empty() || !flags.chars().all(is_flag) {
        return Err(Flaw::Part("response flags"));
    }
    let any = |named: &[&str]| flags.split(',').any(|flag| named.contains(&flag));
    let by_code = match code {
        "0" => End::Failed,
        code => End::of_status(fields::status(code).map_err(|_| Flaw::Part("response code"))?),
    };
    Ok(Some(if any(&["DPE"]) {
        return Ok(None);
    } else if any(&["DC", "DR"]) {
        End::Left
    } else if any(&["UO", "RL", "RLSE", "UAEX", "OM", "DO"]) {
        End::Refused
    } else if any(FAILURES) {
        End::Failed
    } else {
        by_code
    }))
}

/// The response flags of requests that no upstream server answered completely.
const FAILURES: &[&str] = &[
    "UF", "UH", "UC", "UT", "LR", "NR", "UR", "UPE", "URX", "NC", "NFCF", "DF", "SI", "DT",
    "UMSDR", "LH",
];

/// Returns the last of the comma-separated addresses of `X-Forwarded-For`, which Envoy itself
/// appended. Returns `None` if it is missing.
fn last_address(addresses: &str) -> Option<&str> {
    let last = addresses.rsplit(',').next().unwrap_or_default().trim();
    (!matches!(last, "" | "-")).then_some(last)
}

/// Removes the port from `192.0.2.1:1234` or `[2001:db8::1]:1234`.
fn without_port(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(address, _)| address)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example line of Envoy's documentation.
    const TEXT: &str = "[2016-04-15T20:17:00.310Z] \"POST /api/v1/locations?a=1 HTTP/2\" 204 - 154 0 226 \
        100 \"10.0.35.28, 192.0.2.7\" \"nsq2http\" \"cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2\" \
        \"locations\" \"tcp://10.0.2.1:80\"";

    const JSON: &str = r#"{"start_time":"2016-04-15T20:17:00.310Z","method":"POST",
        "path":"/api/v1/locations?a=1","protocol":"HTTP/2","response_code":204,
        "response_flags":"-","bytes_received":154,"bytes_sent":0,"duration":226,
        "upstream_service_time":"100","x_forwarded_for":"10.0.35.28, 192.0.2.7",
        "user_agent":"nsq2http","authority":"locations","upstream_host":"10.0.2.1:80"}"#;

    fn text(from: &str, to: &str) -> Result<Line<'static>, Flaw> {
        assert!(TEXT.contains(from), "{from}");
        parse_text(TEXT.replacen(from, to, 1).leak())
    }

    fn object(from: &str, to: &str) -> Result<Line<'static>, Flaw> {
        assert!(JSON.contains(from), "{from}");
        parse_json(JSON.replacen(from, to, 1).leak())
    }

    fn logged(line: Result<Line<'static>, Flaw>) -> Logged<'static> {
        match line {
            Ok(Line::Request(logged)) => logged,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_forms_tell_the_same_of_a_request() {
        let one = logged(text("", ""));
        assert_eq!(one.began, TimeSpan::from_millis(1_460_751_420_310));
        assert_eq!((&*one.method, &*one.target), ("POST", "/api/v1/locations?a=1"));
        assert_eq!(one.host.as_deref(), Some("locations"));
        assert_eq!((one.service, one.waited), (Some(TimeSpan::from_millis(100)), None));
        assert_eq!((one.end, one.bytes), (End::Answered(204), Some(0)));
        assert_eq!(logged(object("", "")), one);
        assert_eq!(logged(text(" 100 ", " - ")).service, Some(TimeSpan::from_millis(226)));
        let null = object("\"100\"", "null");
        assert_eq!(logged(null).service, Some(TimeSpan::from_millis(226)));
    }

    #[test]
    fn the_flags_say_who_ended_it() {
        for (flags, end) in [
            ("DC", Some(End::Left)),
            ("UO", Some(End::Refused)),
            ("RL", Some(End::Refused)),
            ("RLSE", Some(End::Refused)),
            ("UF", Some(End::Failed)),
            ("UH", Some(End::Failed)),
            ("UF,URX", Some(End::Failed)),
            ("UT", Some(End::Failed)),
            ("NR", Some(End::Failed)),
            ("DI", Some(End::Answered(204))),
            ("DPE", None),
        ] {
            let of_text = text(" 204 - ", &format!(" 204 {flags} "));
            let of_object = object("\"-\"", &format!("\"{flags}\""));
            match end {
                Some(end) => {
                    assert_eq!((logged(of_text).end, logged(of_object).end), (end, end), "{flags}");
                }
                None => {
                    assert_eq!((of_text, of_object), (Ok(Line::NoRequest), Ok(Line::NoRequest)));
                }
            }
        }
        assert_eq!(logged(text(" 204 - ", " 0 DC ")).end, End::Left);
        assert_eq!(logged(text(" 204 - ", " 0 - ")).end, End::Failed);
    }

    #[test]
    fn what_envoy_answered_itself_was_elsewhere() {
        assert_eq!(text("\"tcp://10.0.2.1:80\"", "\"-\""), Ok(Line::Elsewhere));
        assert_eq!(object("\"10.0.2.1:80\"", "null"), Ok(Line::Elsewhere));
        let refused = text("204 - 154 0 226 100", "503 UO 0 9 0 -");
        assert_eq!(logged(refused).end, End::Refused);
    }

    #[test]
    fn a_client_is_where_envoy_saw_it_whatever_it_says_itself() {
        let one = logged(text("", "")).who;
        assert_eq!(logged(text("10.0.35.28,", "6.6.6.6,")).who, one);
        assert_ne!(logged(text("192.0.2.7", "192.0.2.8")).who, one);
        let direct = |address: &str| {
            let to = format!("\"downstream_remote_address\":\"{address}\",\"user_agent\"");
            logged(object("\"user_agent\"", &to)).who
        };
        assert_eq!(direct("192.0.2.7:1"), direct("192.0.2.7:2"));
        assert_eq!(direct("192.0.2.7:1"), one);
    }

    #[test]
    fn a_quote_in_a_target_moves_nothing() {
        let one = logged(text("locations?a=1", "x\"?200"));
        assert_eq!((&*one.target, one.end), ("/api/v1/x\"?200", End::Answered(204)));
        assert!(text("locations?a=1", "x\" 200 - 0 0 0 0 \"a\" \"b").is_err());
    }

    #[test]
    fn what_is_malformed_is_a_flaw() {
        for (from, to) in [
            ("[2016", "2016"),
            ("2016-04-15", "2016-04-31"),
            ("2016-04-15", "1916-04-15"),
            ("HTTP/2\"", "HTTP/2"),
            (" 204 ", " 2040 "),
            (" - ", " \u{e9} "),
            (" 154 ", " x "),
            (" 0 ", " -0 "),
            (" 226 ", " 86400001 "),
            (" 226 ", " 2.26 "),
            (" 100 ", " -100 "),
        ] {
            assert!(text(from, to).is_err(), "{to}");
        }
        for (from, to) in [
            ("\"method\"", "\"m\""),
            ("\"path\"", "\"p\""),
            ("\"start_time\"", "\"s\""),
            (":204", ":20"),
            (":226", ":-1"),
            (":226", ":null"),
            ("\"100\"", "[]"),
            ("\"bytes_sent\":0", "\"bytes_sent\":\"x\""),
        ] {
            assert!(object(from, to).is_err(), "{to}");
        }
        for line in ["", "[", "[]", "[] \"", "[] \"a b c\"", "[] \"a b c\" 1 2 3 4 5 6"] {
            assert!(parse_text(line).is_err(), "{line}");
        }
        assert_eq!(text("/api/v1/locations?a=1", "-"), Ok(Line::NoRequest));
    }
}
