//! Parses Caddy's access log: JSON objects of the logger `http.log.access`, perhaps mixed with
//! those of other loggers.
//!
//! An entry is written after a request has been handled, so the request began at `ts` minus
//! `duration`, both in seconds. `ts` may be a date if the operator configured one (`time_format`
//! with a zone). A `duration_format` other than seconds must not be set, because the line does not
//! show the unit if the value is a number.
//!
//! Source: Caddy, "How Logging Works" (the example of an access log) and the `log` directive
//! (encoders and their `time_format` and `duration_format`).

use std::borrow::Cow;

use serde::Deserialize;

use super::fields::{self, seconds};
use super::json::{self, Text, Value, missing};
use super::{End, Flaw, Line, Logged, began, browser, date};

#[derive(Deserialize)]
struct JsonEntry<'a> {
    #[serde(borrow)]
    logger: Cow<'a, str>,
    #[serde(default, borrow)]
    ts: Value<'a>,
    #[serde(default, borrow)]
    request: Option<Request<'a>>,
    #[serde(default, borrow)]
    duration: Value<'a>,
    #[serde(default, borrow)]
    status: Value<'a>,
    #[serde(default, borrow)]
    size: Value<'a>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    uri: Cow<'a, str>,
    #[serde(default, borrow)]
    host: Text<'a>,
    /// The address of the client behind trusted proxies, since Caddy 2.7.
    #[serde(default, borrow)]
    client_ip: Value<'a>,
    #[serde(default, borrow)]
    remote_ip: Value<'a>,
    #[serde(default, borrow)]
    headers: Headers<'a>,
}

#[derive(Default, Deserialize)]
struct Headers<'a> {
    #[serde(default, borrow, rename = "User-Agent")]
    user_agent: Vec<Cow<'a, str>>,
}

pub(super) fn parse(text: &str) -> Result<Line<'_>, Flaw> {
    let entry: JsonEntry<'_> = json::object(text)?;
    if !is_access(&entry.logger) {
        return Ok(Line::Metadata);
    }
    let ts = entry.ts.value().ok_or_else(|| missing("ts"))?;
    let (ended, grain) = if ts.contains('-') { date::iso(ts)? } else { date::epoch(ts)? };
    let took = entry.duration.value().ok_or_else(|| missing("duration"))?;
    let took = seconds(took, "duration in seconds")?;
    let end = match entry.status.value().ok_or_else(|| missing("status"))? {
        // Caddy logs status 0 if no response was written.
        "0" => End::Failed,
        status => End::of_status(fields::status(status)?),
    };
    let request = entry.request.ok_or_else(|| missing("request"))?;
    if !fields::is_request(&request.method, &request.uri) {
        return Ok(Line::NoRequest);
    }
    let address = request.client_ip.value().or(request.remote_ip.value());
    let agent = request.headers.user_agent.into_iter().next();
    Ok(Line::Request(Logged {
        began: began(ended, took)?,
        grain,
        who: browser(address, agent.as_deref()),
        agent,
        method: request.method,
        target: request.uri,
        host: request.host.into_value(),
        end,
        waited: None,
        service: Some(took),
        bytes: entry.size.value().map(fields::bytes).transpose()?.flatten(),
    }))
}

/// Returns whether a logger's name is `http.log.access`, or `http.log.access.NAME` of a named log.
fn is_access(logger: &str) -> bool {
    let behind = logger.strip_prefix("http.log.access");
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use bywash_units::TimeSpan;

    use super::super::Who;
    use super::*;

    const LINE: &str = r#"{"level":"info","ts":1646861401.5241024,"logger":"http.log.access.log0",
        "msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342",
        "client_ip":"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b",
        "headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"]},"tls":{"resumed":false}},
        "bytes_read":0,"user_id":"","duration":0.5241024,"size":10900,"status":200,
        "resp_headers":{"Server":["Caddy"]}}"#;

    fn line(from: &str, to: &str) -> Result<Line<'static>, Flaw> {
        assert!(LINE.contains(from), "{from}");
        parse(LINE.replacen(from, to, 1).leak())
    }

    fn logged(from: &str, to: &str) -> Logged<'static> {
        match line(from, to) {
            Ok(Line::Request(logged)) => logged,
            other => panic!("{other:?} with {to}"),
        }
    }

    #[test]
    fn a_request_began_when_it_was_handled_less_its_duration() {
        let one = logged("", "");
        assert_eq!(one.began.as_millis(), 1_646_861_401_000);
        assert_eq!(one.service.map(TimeSpan::as_micros), Some(524_102));
        assert_eq!((&*one.method, &*one.target), ("GET", "/a?b"));
        assert_eq!(one.host.as_deref(), Some("localhost"));
        assert_eq!((one.end, one.bytes), (End::Answered(200), Some(10_900)));
        let other = logged("\"client_ip\":\"127", "\"client_ip\":\"128").who;
        assert!(matches!(one.who, Who::Browser { .. }) && one.who != other);
        let dated = logged("1646861401.5241024", "\"2022-03-09T21:30:01.524Z\"");
        assert_eq!(dated.grain, TimeSpan::from_millis(1));
    }

    #[test]
    fn what_other_loggers_say_is_no_request_and_no_flaw() {
        assert_eq!(line("http.log.access.log0", "tls.obtain"), Ok(Line::Metadata));
        assert_eq!(line("http.log.access.log0", "http.log.accessory"), Ok(Line::Metadata));
        assert_eq!(logged("\"status\":200", "\"status\":0").end, End::Failed);
    }

    #[test]
    fn what_is_malformed_is_a_flaw() {
        for (from, to) in [
            ("1646861401.5241024", "\"yesterday\""),
            ("1646861401.5241024", "-1"),
            ("1646861401.5241024", "1e300"),
            ("0.5241024", "\"524ms\""),
            ("0.5241024", "86400.5"),
            ("0.5241024", "-1"),
            ("\"status\":200", "\"status\":2000"),
            ("\"status\":200", "\"status\":null"),
            (":10900", ":-1"),
            ("\"uri\":\"/a?b\",", ""),
            ("\"request\":", "\"other\":"),
            ("[\"curl/7.82.0\"]", "{}"),
            ("\"logger\"", "\"other\""),
        ] {
            assert!(line(from, to).is_err(), "{to}");
        }
        assert_eq!(line("\"GET\"", "\"G\\u0000T\""), Ok(Line::NoRequest));
        assert_eq!(line("\"/a?b\"", "\"/a\\u001b[2J\""), Ok(Line::NoRequest));
    }
}
