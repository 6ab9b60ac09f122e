//! The format `option httplog` of `HAProxy`, with or without the prefix of syslog:
//! `CLIENT:PORT [DATE] FRONTEND BACKEND/SERVER TR/Tw/Tc/Tr/Ta STATUS BYTES COOKIE COOKIE STATE
//! CONNECTIONS QUEUES {HEADERS} {HEADERS} "REQUEST"`.
//!
//! The date is the time of the first byte of the request. The times are in milliseconds:
//! - `TR`: the time that the client took to send the request.
//! - `Tw`: the wait in the queues.
//! - `Tc`: the time to connect to a server.
//! - `Tr`: the wait for the headers of the response.
//! - `Ta`: the total time.
//!
//! Therefore a request was complete at the date plus `TR`, waited for `Tw`, and was served for the
//! rest of `Ta`. `-1` marks a point that was never reached. A `TR` of `-1` means that there was no
//! complete request.
//!
//! The first letter of the state tells which side ended the session, the second letter in which
//! phase. With `option logasap`, a line is written before the response has ended, and a `+`
//! precedes `Ta` and the number of bytes. The service time then lasts until the head of the
//! response, and the number of bytes is unknown.
//!
//! The date has no zone, and is taken for UTC. So all times of a file may be wrong by the same
//! offset. Captured headers have no names, so a client is identified by its address alone.
//!
//! Source: `HAProxy`, Configuration Manual, "HTTP log format", "Timing events", "Session state at
//! disconnection", "Non-printable characters" (`#` and two digits stand for a byte).

use std::borrow::Cow;

use bywash_units::TimeSpan;

use super::fields::{self, duration, less};
use super::{End, Flaw, Line, Logged, began, browser, date};

pub(super) fn parse(text: &str) -> Result<Line<'_>, Flaw> {
    let (client, (came, grain), rest) = client_and_date(text)?;
    let mut words = rest.split_ascii_whitespace();
    let mut next = |part| words.next().ok_or(Flaw::Part(part));
    next("frontend")?;
    next("backend and server")?;
    let times = Times::read(next("times TR/Tw/Tc/Tr/Ta")?)?;
    let status = next("status")?;
    let sent = next("number of bytes")?;
    next("captured cookies")?;
    next("captured cookies")?;
    let state = next("termination state")?;
    let end = end(state, status)?;
    // A line that syslog truncated has no quote at its end, so its request is unknown. Quotes in a
    // request are escaped.
    let request = rest.strip_suffix('"').and_then(|rest| rest.rsplit_once('"'));
    let (_, request) = request.ok_or(Flaw::Part("request in quotes"))?;
    let (Some(times), Some(end)) = (times, end) else {
        return Ok(Line::NoRequest);
    };
    if state.starts_with("LR") && end != End::Refused {
        return Ok(Line::Elsewhere);
    }
    let in_frames = request.ends_with(" HTTP/2.0") || request.ends_with(" HTTP/3.0");
    let Some((method, target)) = fields::method_and_target(fields::unescaped(request, "#")) else {
        return Ok(Line::NoRequest);
    };
    let (host, target) = if in_frames { host_and_path(target) } else { (None, target) };
    Ok(Line::Request(Logged {
        began: began(came + times.sending, TimeSpan::ZERO)?,
        grain,
        method,
        target,
        host,
        who: browser(Some(client), None),
        agent: None,
        end,
        waited: times.waited,
        service: Some(times.service),
        bytes: if sent.starts_with('+') { None } else { fields::bytes(sent)? },
    }))
}

/// Returns the client's address, the date and the rest of a line. The address precedes the first
/// date in brackets. No earlier text can imitate such a date, because clients do not control the
/// prefix of syslog.
fn client_and_date(text: &str) -> Result<(&str, date::TimeAndGrain, &str), Flaw> {
    let mut flaw = Flaw::Part("time in brackets");
    for (at, _) in text.match_indices(" [") {
        let Some((date, rest)) = text[at + 2..].split_once(']') else { break };
        match date::haproxy(date) {
            Ok(parsed) => {
                let client = text[..at].rsplit(' ').next().unwrap_or_default();
                let client = client.rsplit_once(':').map(|(address, _)| address);
                let client = client.filter(|address| !address.is_empty());
                return Ok((client.ok_or(Flaw::Part("client and port"))?, parsed, rest));
            }
            Err(why) => flaw = why,
        }
    }
    Err(flaw)
}

struct Times {
    /// The time that the client took to send its request.
    sending: TimeSpan,
    /// The time in the queues, or `None` if the request did not leave them.
    waited: Option<TimeSpan>,
    /// The service time: `Ta` minus `TR` and `Tw`. Without a `Ta`, it is the sum of `Tc` and `Tr`.
    service: TimeSpan,
}

impl Times {
    /// Parses the field `TR/Tw/Tc/Tr/Ta`. Returns `None` if there was no complete request.
    fn read(text: &str) -> Result<Option<Self>, Flaw> {
        const PART: &str = "times TR/Tw/Tc/Tr/Ta";
        let read = |text: &str| match text {
            "-1" => Ok(None),
            text => duration(text, TimeSpan::from_millis(1), PART).map(Some),
        };
        let mut parts = text.split('/');
        let mut next = || parts.next().ok_or(Flaw::Part(PART));
        let (sending, waited) = (read(next()?)?, read(next()?)?);
        let (connect, head) = (read(next()?)?, read(next()?)?);
        let all = next()?;
        if parts.next().is_some() {
            return Err(Flaw::Part(PART));
        }
        let all = read(all.strip_prefix('+').unwrap_or(all))?;
        let Some(sending) = sending else { return Ok(None) };
        let known = connect.unwrap_or_default() + head.unwrap_or_default();
        let known = fields::within_a_day(known)?;
        let service = all.map(|all| less(less(all, sending), waited.unwrap_or_default()));
        Ok(Some(Self { sending, waited, service: service.unwrap_or(known) }))
    }
}

/// Returns how a session ended, by its termination state. The first letter of the state is the side
/// that ended the session, and the second letter the phase. Returns `None` if the session ended
/// before there was a request.
fn end(state: &str, status: &str) -> Result<Option<End>, Flaw> {
    let mut letters = state.chars();
    let (who, phase) = (letters.next().unwrap_or(' '), letters.next().unwrap_or(' '));
    if !(2..=4).contains(&state.len()) || !"-RQCHDLT".contains(phase) {
        return Err(Flaw::Part("termination state"));
    }
    let before_the_server = matches!(phase, 'R' | 'Q' | 'C' | 'T');
    Ok(Some(match who {
        '-' | 'L' => End::of_status(fields::status(status)?),
        'C' | 'c' if phase == 'R' => return Ok(None),
        'C' | 'c' => End::Left,
        // The request timed out in the queue.
        'S' | 's' if phase == 'Q' => End::Refused,
        // The proxy itself ended the session: a rule, a limit or an exhausted resource.
        'P' | 'R' if before_the_server => End::Refused,
        'S' | 's' | 'P' | 'R' | 'I' | 'D' | 'U' | 'K' => End::Failed,
        _ => return Err(Flaw::Part("termination state")),
    }))
}

/// Splits a target into the host and the path. Requests of HTTP/2 and HTTP/3 are logged with scheme
/// and host. Any other target is returned without a host.
fn host_and_path(target: Cow<'_, str>) -> (Option<Cow<'_, str>>, Cow<'_, str>) {
    let behind = target.split_once("://").map(|(_, behind)| behind);
    let parts = behind.and_then(|behind| {
        let (host, path) = behind.split_at(behind.find('/')?);
        Some((host.to_owned(), path.to_owned()))
    });
    match parts {
        Some((host, path)) if !target.starts_with('/') => (Some(host.into()), path.into()),
        Some(_) | None => (None, target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example line of the manual.
    const LINE: &str = "Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 \
        [06/Feb/2009:12:14:14.655] http-in static/srv1 10/20/30/69/209 200 2750 - - ---- \
        1/1/1/1/0 0/0 {1wt.eu} {} \"GET /index.html?a=#22 HTTP/1.1\"";

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
    fn a_request_came_whole_waited_and_was_worked_on() {
        let one = logged("", "");
        assert_eq!(one.began, TimeSpan::from_millis(1_233_922_454_665));
        assert_eq!(one.waited, Some(TimeSpan::from_millis(20)));
        assert_eq!(one.service, Some(TimeSpan::from_millis(179)));
        assert_eq!((&*one.method, &*one.target), ("GET", "/index.html?a=\""));
        assert_eq!((one.end, one.bytes), (End::Answered(200), Some(2750)));
    }

    #[test]
    fn the_prefix_of_syslog_may_be_missing_or_another() {
        let one = logged("", "");
        for prefix in ["", "<134>1 2009-02-06T12:14:14.655Z host haproxy 14389 - [x y] "] {
            assert_eq!(logged("Feb  6 12:14:14 localhost haproxy[14389]: ", prefix), one);
        }
        let other = logged("10.0.1.2:", "2001:db8::1:");
        assert_ne!(other.who, one.who);
    }

    #[test]
    fn the_state_says_who_ended_it() {
        let ended = |state: &str, status: &str| {
            logged("200 2750 - - ----", &format!("{status} 2750 - - {state}")).end
        };
        for state in ["CD--", "cD--", "CH--", "CQ--", "CC--", "CDVN"] {
            assert_eq!(ended(state, "200"), End::Left, "{state}");
        }
        for state in ["SC--", "SH--", "sH--", "sC--", "SD--", "PH--", "IH--", "DD--", "KD--"] {
            assert_eq!(ended(state, "503"), End::Failed, "{state}");
        }
        for state in ["PQ--", "sQ--", "PR--", "PT--", "RC--", "PC--"] {
            assert_eq!(ended(state, "403"), End::Refused, "{state}");
        }
        assert_eq!(ended("----", "429"), End::Refused);
        assert_eq!(ended("LR--", "503"), End::Refused);
        assert_eq!(line("----", "LR--"), Ok(Line::Elsewhere));
        for state in ["CR--", "cR--"] {
            assert_eq!(line("----", state), Ok(Line::NoRequest), "{state}");
        }
    }

    #[test]
    fn points_that_were_never_reached_are_told_by_minus_one() {
        let queued = logged("10/20/30/69/209 200 2750 - - ----", "0/500/-1/-1/500 503 2 - - sQ--");
        assert_eq!(queued.waited, Some(TimeSpan::from_millis(500)));
        assert_eq!((queued.service, queued.end), (Some(TimeSpan::ZERO), End::Refused));
        assert_eq!(line("10/20/30/69/209", "-1/-1/-1/-1/5000"), Ok(Line::NoRequest));
        assert_eq!(logged("10/20/30/69/209", "0/-1/-1/-1/5").waited, None);
        let early = logged("10/20/30/69/209 200 2750", "9/10/7/14/+40 200 +243");
        assert_eq!((early.service, early.bytes), (Some(TimeSpan::from_millis(21)), None));
    }

    #[test]
    fn a_target_of_http_2_is_its_host_and_its_path() {
        let logged = |request: &str| logged("GET /index.html?a=#22 HTTP/1.1", request);
        let target = |request: &str| logged(request).target;
        assert_eq!(logged("GET https://host:1/a HTTP/2.0").host.as_deref(), Some("host:1"));
        assert_eq!(logged("GET /a HTTP/2.0").host, None);
        assert_eq!(target("GET https://host:1/a?b=x://y/ HTTP/2.0"), "/a?b=x://y/");
        assert_eq!(target("GET /a?b=x://y/ HTTP/2.0"), "/a?b=x://y/");
        assert_eq!(target("GET https://host HTTP/2.0"), "https://host");
        assert_eq!(target("GET http://host/a HTTP/1.1"), "http://host/a");
    }

    #[test]
    fn what_is_malformed_is_a_flaw() {
        for (from, to) in [
            ("[06/Feb/2009:12:14:14.655]", "06/Feb/2009:12:14:14.655"),
            ("06/Feb/2009", "30/Feb/2009"),
            ("06/Feb/2009", "06/Feb/1970"),
            ("10.0.1.2:33317", "10.0.1.2"),
            ("10.0.1.2:33317", ":1"),
            ("/209 ", " "),
            ("/209 ", "/209/1 "),
            ("/209 ", "/-2 "),
            ("/209 ", "/86400001 "),
            (" 200 ", " 20x "),
            (" 2750 ", " -2750 "),
            ("----", "X---"),
            ("----", "-X--"),
            ("----", "-------"),
            ("----", "é"),
            ("HTTP/1.1\"", "HTTP/1.1"),
            ("\"GET", "GET"),
        ] {
            assert!(line(from, to).is_err(), "{to}");
        }
        for text in
            ["", "a [", "a [b]", "a [06/Feb/2009:12:14:14.655]", ":1 [06/Feb/2009:12:14:14.655] a"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(line("GET /index.html?a=#22 HTTP/1.1", "<BADREQ>"), Ok(Line::NoRequest));
    }
}
