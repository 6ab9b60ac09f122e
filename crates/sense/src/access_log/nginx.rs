//! JSON lines of nginx (`log_format … escape=json`), in which each key is the name of its variable:
//! `{"msec":"$msec","request":"$request","status":$status,"request_time":$request_time,…}`.
//!
//! A line is written after its request has ended. So the request began at the time of the line
//! minus `$request_time`, which counts from the first byte of the request. If there are several
//! times, the most precise one is used. If `$upstream_response_time` is logged and empty, nginx
//! answered the request itself.
//!
//! Source: nginx, `ngx_http_log_module` (`escape`, `$msec`, `$time_iso8601`, `$request_time`),
//! `ngx_http_core_module` (`$request_uri`, `$host`, `$bytes_sent`), `ngx_http_upstream_module`.

use std::borrow::Cow;

use bywash_units::Span;
use serde::Deserialize;

use super::fields::{self, less, seconds, total};
use super::json::{self, Value, missing};
use super::{End, Flaw, Line, Logged, began, browser, date};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Written<'a> {
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
    host: Value<'a>,
    #[serde(borrow)]
    http_host: Value<'a>,
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
}

pub(super) fn parse(text: &str) -> Result<Line<'_>, Flaw> {
    let mut written: Written<'_> = json::object(text)?;
    let (ended, grain) = ended(&written)?;
    let status = written.status.said().ok_or_else(|| missing("status"))?;
    let end = End::of_status(fields::status(status)?);
    let all = written.request_time.said();
    let all = all.map(|text| seconds(text, "request_time in seconds")).transpose()?;
    let (service, elsewhere) = match written.upstream_response_time.text() {
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
    let bytes = written.bytes_sent.said().or(written.body_bytes_sent.said());
    let bytes = bytes.map(fields::bytes).transpose()?.flatten();
    let who = browser(written.remote_addr.said(), written.http_user_agent.said());
    let host = std::mem::take(&mut written.host).into_said();
    let host = host.or_else(|| std::mem::take(&mut written.http_host).into_said());
    let Some((method, target)) = asked(written)? else {
        return Ok(Line::NoRequest);
    };
    Ok(Line::Request(Logged {
        began: began(ended, all.unwrap_or_default())?,
        grain,
        method,
        target,
        host: host.unwrap_or_default(),
        who,
        end,
        waited: all.zip(service).map(|(all, service)| less(all, service)),
        service: service.or(all),
        bytes,
    }))
}

/// Returns the time at which the request ended, by the most precise time in the line.
fn ended(written: &Written<'_>) -> Result<(Span, Span), Flaw> {
    if let Some(text) = written.msec.said() {
        return date::epoch(text);
    }
    if let Some(text) = written.time_iso8601.said() {
        return date::iso(text);
    }
    let local = written.time_local.said().ok_or_else(|| missing("msec` or `time_iso8601"))?;
    Ok((date::common(local)?, Span::from_secs(1)))
}

type Asked<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Returns the method and the target, or `None` if the client did not send HTTP.
fn asked(written: Written<'_>) -> Result<Option<Asked<'_>>, Flaw> {
    if written.request.text().is_some() {
        return Ok(written.request.into_said().and_then(fields::method_and_target));
    }
    let told = |value: &Value<'_>| value.text().is_some();
    if !told(&written.request_method) {
        return Err(missing("request"));
    }
    if !told(&written.request_uri) && !told(&written.uri) {
        return Err(missing("request_uri"));
    }
    let query = written.args;
    let path = written.uri.into_said();
    let path = path.map(|path| fields::with_query(path, query.said().unwrap_or_default()));
    let target = written.request_uri.into_said().or(path);
    let both = written.request_method.into_said().zip(target);
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
        assert_eq!(logged.began, Span::from_millis(1_700_000_000_200));
        assert_eq!(logged.grain, Span::from_millis(1));
        assert_eq!((&*logged.method, &*logged.target), ("GET", "/a?b=\"c\""));
        assert_eq!(logged.service, Some(Span::from_millis(150)));
        assert_eq!(logged.waited, Some(Span::from_millis(150)));
        assert_eq!((logged.end, logged.bytes), (End::Answered(200), Some(9)));
        assert!(matches!(logged.who, Who::Browser(_)));
    }

    #[test]
    fn numbers_may_be_numbers_and_a_request_may_be_in_parts() {
        let one = logged("\"0.300\"", "0.3");
        assert_eq!(one.began, Span::from_millis(1_700_000_000_200));
        for parts in [
            r#""request_method":"GET","request_uri":"/x?y=1""#,
            r#""request_method":"GET","uri":"/x","args":"y=1""#,
        ] {
            let one = logged(r#""request":"GET /a?b=\"c\" HTTP/1.1""#, parts);
            assert_eq!((&*one.method, &*one.target), ("GET", "/x?y=1"));
        }
        let local = r#""time_local":"14/Nov/2023:22:13:21 +0000""#;
        let one = logged(r#""msec":"1700000000.500""#, r#""bytes_sent":300"#);
        assert_eq!((one.grain, one.bytes), (Span::from_secs(1), Some(300)));
        assert!(line(r#""msec":"1700000000.500""#, local).is_ok());
    }

    #[test]
    fn the_host_is_that_of_either_variable() {
        let host = |keys: &str| {
            let to = format!("{keys},\"connection\":\"7\"");
            logged("\"connection\":\"7\"", &to).host.into_owned()
        };
        assert_eq!(host(r#""http_host":"shop.example:80""#), "shop.example:80");
        assert_eq!(host(r#""http_host":"","host":"shop.example""#), "shop.example");
        assert_eq!(logged("", "").host, "");
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
