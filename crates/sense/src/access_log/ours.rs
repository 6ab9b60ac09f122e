//! Parses the log of bywash: the JSON objects that `docs/reference/log.md` describes.
//!
//! Only the necessary keys are read and all others are ignored, so that lines of later versions are
//! valid too. The key `time` is the time at which the request ended.

use std::borrow::Cow;

use bywash_units::TimeSpan;
use serde::Deserialize;

use super::json::{self, missing};
use super::{End, Flaw, Line, Logged, Who, began, key};

#[derive(Deserialize)]
struct JsonEntry<'a> {
    /// The time at which the request ended, in milliseconds since 1970.
    time: u64,
    #[serde(borrow)]
    client: Cow<'a, str>,
    status: Option<u16>,
    #[serde(default, borrow)]
    fault: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    target: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    session: Option<Cow<'a, str>>,
    #[serde(default)]
    outcome: Option<Outcome>,
    #[serde(default)]
    queue_wait_us: Option<u64>,
    #[serde(default)]
    service_us: Option<u64>,
    /// The number of bytes of the response body.
    #[serde(default)]
    response_bytes: Option<u64>,
}

/// The outcomes of a request in `docs/reference/log.md`. A line with another outcome is invalid.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Served,
    Late,
    Shed,
    Throttled,
    Expired,
    Terminated,
    Orphaned,
    UpstreamError,
}

pub(super) fn parse(text: &str) -> Result<Line<'_>, Flaw> {
    let entry: JsonEntry<'_> = json::object(text)?;
    if entry.fault.is_some() {
        return Ok(Line::NoRequest);
    }
    let outcome = entry.outcome.ok_or_else(|| missing("outcome"))?;
    let target = entry.target.filter(|target| !target.is_empty());
    let waited = entry.queue_wait_us.map(TimeSpan::from_micros);
    let service = entry.service_us.map(TimeSpan::from_micros);
    let took = waited.unwrap_or_default() + service.unwrap_or_default();
    Ok(Line::Request(Logged {
        began: began(TimeSpan::from_millis(entry.time), took)?,
        grain: TimeSpan::from_millis(1),
        method: entry.method.ok_or_else(|| missing("method"))?,
        target: target.ok_or_else(|| missing("target"))?,
        host: None,
        who: who(&entry.client, entry.session.as_deref()),
        agent: None,
        end: end(outcome, entry.status),
        waited,
        service,
        bytes: entry.response_bytes,
    }))
}

fn who(client: &str, session: Option<&str>) -> Who {
    let address = key(&[client]);
    match session {
        Some(session) => Who::Session { session: key(&[session]), address },
        None => Who::Stranger { address },
    }
}

fn end(outcome: Outcome, status: Option<u16>) -> End {
    match (outcome, status) {
        (Outcome::Served, Some(status)) => End::Answered(status),
        (Outcome::Late, Some(status)) => End::Late(status),
        (Outcome::Shed | Outcome::Throttled | Outcome::Expired, _) => End::Refused,
        (Outcome::UpstreamError | Outcome::Terminated, _) => End::Failed,
        // The client received no response.
        (Outcome::Orphaned, _) | (Outcome::Served | Outcome::Late, None) => End::Left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVED: &str = r#"{"class":"main","client":"127.0.0.1","decision":"run",
        "method":"GET","mode":"enforce","outcome":"served","protocol":"HTTP/1.1",
        "queue_wait_us":2000,"reason":"slot_free","request":"00","request_bytes":0,
        "response_bytes":9,"server":0,"service_us":3000,"session":null,"status":200,
        "target":"/a?b=\"c\"","time":1700000000010}"#;

    fn logged(from: &str, to: &str) -> Result<Logged<'static>, Flaw> {
        assert!(SERVED.contains(from), "{from}");
        let text: &'static str = SERVED.replacen(from, to, 1).leak();
        match parse(text)? {
            Line::Request(logged) => Ok(logged),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_began_when_it_ended_less_what_it_took() {
        let logged = logged("", "").unwrap();
        assert_eq!(logged.began, TimeSpan::from_millis(1_700_000_000_005));
        assert_eq!((logged.method.as_ref(), logged.target.as_ref()), ("GET", "/a?b=\"c\""));
        assert_eq!(logged.waited, Some(TimeSpan::from_millis(2)));
        assert_eq!(logged.service, Some(TimeSpan::from_millis(3)));
        assert_eq!((logged.end, logged.bytes), (End::Answered(200), Some(9)));
    }

    #[test]
    fn a_session_is_known_by_its_hash_and_a_stranger_by_the_address() {
        let stranger = logged("", "").unwrap().who;
        let session = logged("\"session\":null", "\"session\":\"0a\"").unwrap().who;
        let Who::Stranger { address: at } = stranger else { panic!("{stranger:?}") };
        assert!(matches!(session, Who::Session { address, .. } if address == at));
    }

    #[test]
    fn every_outcome_is_an_end() {
        let end = |word: &str| logged("\"served\"", &format!("\"{word}\"")).map(|line| line.end);
        for word in ["shed", "throttled", "expired"] {
            assert_eq!(end(word), Ok(End::Refused), "{word}");
        }
        for word in ["upstream_error", "terminated"] {
            assert_eq!(end(word), Ok(End::Failed), "{word}");
        }
        assert_eq!(end("late"), Ok(End::Late(200)));
        assert_eq!(end("orphaned"), Ok(End::Left));
        assert!(matches!(end("eaten"), Err(Flaw::Json(_))));
        let untold = logged("\"status\":200", "\"status\":null").unwrap();
        assert_eq!(untold.end, End::Left);
    }

    #[test]
    fn a_flaw_that_quotes_the_line_is_short_and_harmless() {
        let word = format!("\"a\\u001b[2J{}\"", "x".repeat(1000));
        let Err(Flaw::Json(why)) = logged("\"served\"", &word) else {
            panic!("{word} is no outcome")
        };
        assert!(why.contains("a\u{fffd}[2Jx") && why.chars().count() <= 100, "{why:?}");
    }

    #[test]
    fn what_is_absurd_is_a_flaw() {
        let flaw = |from, to| logged(from, to).unwrap_err();
        assert_eq!(flaw("1700000000010", "5"), Flaw::Time);
        assert_eq!(flaw("1700000000010", "18446744073709551615"), Flaw::Time);
        assert_eq!(flaw(":3000,", ":86400000001,"), Flaw::Duration);
        assert_eq!(flaw(":3000,", ":18446744073709551615,"), Flaw::Duration);
        assert!(matches!(flaw(":3000,", ":-1,"), Flaw::Json(_)));
        assert!(matches!(flaw("\"status\":200", "\"status\":70000"), Flaw::Json(_)));
        assert_eq!(flaw("\"method\":\"GET\",", ""), Flaw::Json("no `method`".into()));
        assert_eq!(flaw("/a?b=\\\"c\\\"", ""), Flaw::Json("no `target`".into()));
    }
}
