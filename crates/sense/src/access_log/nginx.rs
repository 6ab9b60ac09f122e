//! Parses JSON lines of nginx (`log_format … escape=json`), in which each key is the name of its
//! variable:
//! `{"msec":"$msec","request":"$request","status":$status,"request_time":$request_time,…}`.
//!
//! A line is written after its request has ended. So the request began at the time of the line
//! minus `$request_time`, which counts from the first byte of the request. If a line has several
//! times of its end, the most precise one is used. If `$upstream_response_time` is logged and
//! empty, nginx answered the request itself.
//!
//! Source: nginx, `ngx_http_log_module` (`escape`, `$msec`, `$time_iso8601`, `$request_time`),
//! `ngx_http_core_module` (`$request_uri`, `$bytes_sent`, `$host`, `$server_name`),
//! `ngx_http_upstream_module`.

use std::borrow::Cow;

use bywash_units::TimeSpan;
use serde::Deserialize;

use super::fields::{self, less, seconds, total};
use super::json::{self, Text, Value, missing};
use super::{End, Flaw, Line, Logged, began, browser, date};

#[derive(Default, Deserialize)]
#[serde(default)]
struct JsonEntry<'a> {
    #[serde(borrow)]
    msec: Value<'a>,
    #[serde(borrow)]
    time_iso8601: Value<'a>,
    #[serde(borrow)]
    time_local: Value<'a>,
    #[serde(borrow)]
    request_time: Value<'a>,
    #[serde(borrow)]
    upstream_response_time: Value<'a>,
    #[serde(borrow)]
    request: Value<'a>,
    #[serde(borrow)]
    request_method: Value<'a>,
    #[serde(borrow)]
    request_uri: Value<'a>,
    #[serde(borrow)]
    uri: Value<'a>,
    #[serde(borrow, alias = "query_string")]
    args: Value<'a>,
    #[serde(borrow)]
    status: Value<'a>,
    #[serde(borrow)]
    bytes_sent: Value<'a>,
    #[serde(borrow)]
    body_bytes_sent: Value<'a>,
    #[serde(borrow)]
    remote_addr: Value<'a>,
    #[serde(borrow)]
    http_user_agent: Value<'a>,
    #[serde(borrow)]
    host: Text<'a>,
    #[serde(borrow)]
    http_host: Text<'a>,
    #[serde(borrow)]
    server_name: Text<'a>,
}

pub(super) fn parse(text: &str) -> Result<Line<'_>, Flaw> {
    let mut entry: JsonEntry<'_> = json::object(text)?;
    let (ended, grain) = ended(&entry)?;
    let status = entry.status.value().ok_or_else(|| missing("status"))?;
    let end = End::of_status(fields::status(status)?);
    let all = entry.request_time.value();
    let all = all.map(|text| seconds(text, "request_time in seconds")).transpose()?;
    let (service, elsewhere) = match entry.upstream_response_time.text() {
        None => (None, false),
        Some("") => (None, true),
        Some(list) if !list.bytes().all(|b| b.is_ascii_digit() || b".-,: ".contains(&b)) => {
            return Err(Flaw::Part("upstream_response_time in seconds"));
        }
        Some(list) => {
            let sum = total(list, "upstream_response_time in seconds")?;
            (sum, sum.is_none())
        }
    };
    if elsewhere && !matches!(end, End::Refused | End::Left) {
        return Ok(Line::Elsewhere);
    }
    let bytes = entry.bytes_sent.value().or(entry.body_bytes_sent.value());
    let bytes = bytes.map(fields::bytes).transpose()?.flatten();
    let who = browser(entry.remote_addr.value(), entry.http_user_agent.value());
    let agent = std::mem::take(&mut entry.http_user_agent).into_value();
    let [host, http_host, server_name] =
        [&mut entry.host, &mut entry.http_host, &mut entry.server_name]
            .map(|text| std::mem::take(text).into_value());
    let Some((method, target)) = asked(entry)? else {
        return Ok(Line::NoRequest);
    };
    Ok(Line::Request(Logged {
        began: began(ended, all.unwrap_or_default())?,
        grain,
        method,
        target,
        host: host.or(http_host).or(server_name),
        who,
        agent,
        end,
        waited: all.zip(service).map(|(all, service)| less(all, service)),
        service: service.or(all),
        bytes,
    }))
}

/// Returns the time since 1970 at which the request ended, and its precision. Uses the most precise
/// time in the line.
fn ended(entry: &JsonEntry<'_>) -> Result<(TimeSpan, TimeSpan), Flaw> {
    if let Some(text) = entry.msec.value() {
        return date::epoch(text);
    }
    if let Some(text) = entry.time_iso8601.value() {
        return date::iso(text);
    }
    let local = entry.time_local.value().ok_or_else(|| missing("msec` or `time_iso8601"))?;
    Ok((date::common(local)?, TimeSpan::from_secs(1)))
}

type RequestParts<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Returns the method and the target of the request. Returns `None` if the client did not send
/// HTTP.
fn asked(entry: JsonEntry<'_>) -> Result<Option<RequestParts<'_>>, Flaw> {
    if entry.request.text().is_some() {
        return Ok(entry.request.into_value().and_then(fields::method_and_target));
    }
    let has_value = |value: &Value<'_>| value.text().is_some();
    if !has_value(&entry.request_method) {
        return Err(missing("request"));
    }
    if !has_value(&entry.request_uri) && !has_value(&entry.uri) {
        return Err(missing("request_uri"));
    }
    let query = entry.args;
    let path = entry.uri.into_value();
    let path = path.map(|path| fields::with_query(path, query.value().unwrap_or_default()));
    let target = entry.request_uri.into_value().or(path);
    let both = entry.request_method.into_value().zip(target);
    Ok(both.filter(|(method, target)| fields::is_request(method, target)))
}

#[cfg(test)]
mod tests {
    use super::super::Who;
    use super::*;

    const LINE: &str = r#"{"time_iso8601":"2023-11-14T22:13:20+00:00","msec":"1700000000.500",
        "remote_addr":"203.0.113.9","request":"GET /a?b=\"c\" HTTP/1.1","status":"200",
        "request_time":"0.300","upstream_response_time":"0.100, 0.050","body_bytes_sent":"9",
        "http_user_agent":"x","connection":"7"}"#;

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
    fn a_request_began_when_its_line_was_written_less_what_it_took() {
        let logged = logged("", "");
        assert_eq!(logged.began, TimeSpan::from_millis(1_700_000_000_200));
        assert_eq!(logged.grain, TimeSpan::from_millis(1));
        assert_eq!((&*logged.method, &*logged.target), ("GET", "/a?b=\"c\""));
        assert_eq!(logged.service, Some(TimeSpan::from_millis(150)));
        assert_eq!(logged.waited, Some(TimeSpan::from_millis(150)));
        assert_eq!((logged.end, logged.bytes), (End::Answered(200), Some(9)));
        assert!(matches!(logged.who, Who::Browser { .. }));
    }

    #[test]
    fn numbers_may_be_numbers_and_a_request_may_be_in_parts() {
        let one = logged("\"0.300\"", "0.3");
        assert_eq!(one.began, TimeSpan::from_millis(1_700_000_000_200));
        for parts in [
            r#""request_method":"GET","request_uri":"/x?y=1""#,
            r#""request_method":"GET","uri":"/x","args":"y=1""#,
        ] {
            let one = logged(r#""request":"GET /a?b=\"c\" HTTP/1.1""#, parts);
            assert_eq!((&*one.method, &*one.target), ("GET", "/x?y=1"));
        }
        let local = r#""time_local":"14/Nov/2023:22:13:21 +0000""#;
        let one = logged(r#""msec":"1700000000.500""#, r#""bytes_sent":300"#);
        assert_eq!((one.grain, one.bytes), (TimeSpan::from_secs(1), Some(300)));
        assert!(line(r#""msec":"1700000000.500""#, local).is_ok());
    }

    #[test]
    fn the_host_is_a_text_under_any_of_its_names() {
        let host = |fields: &str| logged("\"connection\":\"7\"", fields).host;
        assert_eq!(host("\"connection\":\"7\""), None);
        for fields in [
            r#""host":"a","http_host":"b:80","server_name":"c""#,
            r#""host":{"name":"web1"},"http_host":"a""#,
            r#""host":"-","server_name":"a""#,
        ] {
            assert_eq!(host(fields).as_deref(), Some("a"), "{fields}");
        }
    }

    #[test]
    fn where_no_application_had_a_part_it_says_so() {
        for nothing in ["\"\"", "\"-\"", "null"] {
            assert_eq!(line("\"0.100, 0.050\"", nothing), Ok(Line::Elsewhere), "{nothing}");
        }
        for request in [r#""""#, r#""-""#, r#""\\x16\\x03""#, "null"] {
            let to = format!(r#""request":{request}"#);
            assert_eq!(line(r#""request":"GET /a?b=\"c\" HTTP/1.1""#, &to), Ok(Line::NoRequest));
        }
        assert_eq!(logged("\"200\"", "499").end, End::Left);
    }

    #[test]
    fn what_is_malformed_is_a_flaw() {
        for (from, to) in [
            ("1700000000.500", "now"),
            ("1700000000.500", "12.5"),
            ("1700000000.500", "99999999999"),
            ("\"200\"", "\"OK\""),
            ("\"200\"", "20.0"),
            ("\"status\":\"200\",", ""),
            ("0.300", "-0.3"),
            ("0.300", "1e3"),
            ("0.300", "86401"),
            ("0.100, 0.050", "0.1, x1"),
            ("\"9\"", "-9"),
            ("\"request\"", "\"other\""),
            ("\"remote_addr\"", "\"msec\""),
            ("}", ""),
        ] {
            let found = line(from, to);
            assert!(found.is_err(), "{to}: {found:?}");
        }
    }
}
