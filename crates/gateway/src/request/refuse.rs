//! Responses of the gateway itself. This module alone turns the engine's reasons into HTTP.
//!
//! 503 means that the site is too busy for this request now. 429 means that this client has
//! requested too much at once, or that an agent has an appointment. `Retry-After` says when to
//! retry. 502 and 504 mean that the upstream
//! failed, and 4xx means that the message is at fault.
//!
//! `Proxy-Status` (RFC 9209) tells programs the error: every client gets its general type. Trusted
//! peers also get the reason, the class and the wait. Other clients do not, because an attacker
//! could use them to find out which requests are spared. The body is a page for browsers,
//! problem+json (RFC 9457) for programs that accept JSON, and otherwise a line of text.
//!
//! Each function here that takes the request's record also ends the request.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use bytes::Bytes;
use bywash_config::Details;
use bywash_engine::{Outcome, Reason, Refusal};
use bywash_message::{Fields, Name, ParseError};
use http::StatusCode;

use super::Peer;
use crate::driver::Ticket;
use crate::io::body::BodyError;
use crate::process::local_fault::LocalFault;
use crate::request::record::Record;
use crate::request::reply::Reply;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::upstream::UpstreamError;

/// The format of the gateway's own responses to one request.
pub(super) struct RefusalFormat {
    kind: BodyFormat,
    /// Whether the client may know the exact reason, by `answers.details`.
    details: bool,
    page: Bytes,
    name: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyFormat {
    Text,
    Json,
    Html,
}

impl RefusalFormat {
    pub(super) fn new(settings: &Settings, peer: &Peer, fields: &Fields, name: u64) -> Self {
        let accept = fields.get(Name::Accept).unwrap_or_default();
        let accepts = |kind: &[u8]| accept.windows(kind.len()).any(|part| part == kind);
        let kind = if accepts(b"text/html") {
            BodyFormat::Html
        } else if accepts(b"json") {
            BodyFormat::Json
        } else {
            BodyFormat::Text
        };
        let details = match settings.config.answers.details {
            Details::All => true,
            Details::Trusted => peer.is_trusted,
            Details::None => false,
        };
        Self { kind, details, page: settings.page.clone(), name }
    }

    fn reply(&self, status: StatusCode, fields: Fields, problem: &Problem<'_>) -> Reply {
        let text = || ("text/plain; charset=utf-8", Bytes::from(format!("{}\n", problem.text)));
        let (kind, words) = match self.kind {
            // The page describes a busy site, so it is not used for other errors.
            BodyFormat::Html if problem.retry_after.is_some() => {
                ("text/html; charset=utf-8", self.page.clone())
            }
            BodyFormat::Json => ("application/problem+json", problem.json(status, self.name)),
            BodyFormat::Html | BodyFormat::Text => text(),
        };
        let mut fields = fields;
        fields.push(b"Content-Type", kind.as_bytes());
        fields.push(b"Cache-Control", b"no-store");
        Reply::local(status, fields, words)
    }
}

/// The content of a response with an error.
struct Problem<'a> {
    /// The URI of the problem type (RFC 9457).
    kind: &'static str,
    text: &'a str,
    retry_after: Option<u64>,
}

impl Problem<'_> {
    fn json(&self, status: StatusCode, name: u64) -> Bytes {
        let mut problem = serde_json::json!({
            "type": self.kind,
            "title": self.text,
            "status": status.as_u16(),
            "request": format!("{name:016x}"),
        });
        if let Some(seconds) = self.retry_after {
            problem["retry-after"] = seconds.into();
        }
        Bytes::from(problem.to_string())
    }
}

/// The problem type of the IETF's `RateLimit` draft for a busy site.
const BUSY: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
/// The problem type of the IETF's `RateLimit` draft for a client that requests too much.
const TOO_MUCH: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
/// The problem type that says no more than the status (RFC 9457 §4.2.1).
const PLAIN: &str = "about:blank";

/// Refuses a request, because the site is too busy for it or because its client requests too much.
/// Ends the record with the engine's reason.
pub(super) fn busy(format: &RefusalFormat, record: &mut Record, refusal: &Refusal) -> Reply {
    let reply = retry_later(
        format,
        record,
        refusal,
        "connection_limit_reached",
        record.appointment(refusal.reason),
    );
    record.refused(refusal, reply.status);
    reply
}

/// Answers a request that the engine has stopped while it ran, and ends its record.
pub(super) fn stopped(format: &RefusalFormat, record: &mut Record, refusal: &Refusal) -> Reply {
    let reply = retry_later(format, record, refusal, "http_response_timeout", None);
    record.stopped(refusal, reply.status);
    reply
}

/// Returns the response to a request that was refused or stopped. `appointment` is the time at which
/// its agent should come again, in seconds from now, if it has an appointment.
fn retry_later(
    format: &RefusalFormat,
    record: &Record,
    refusal: &Refusal,
    error: &str,
    appointment: Option<Range<u64>>,
) -> Reply {
    let (seconds, status) = match appointment {
        Some(time) => (at_random_in(&time), StatusCode::TOO_MANY_REQUESTS),
        None => (jittered(refusal.retry_after.as_secs_f64()), status_of_reason(refusal.reason)),
    };
    let mut fields = Fields::new();
    fields.push(b"Retry-After", seconds.to_string().as_bytes());
    let mut proxy_status = format!("bywash; error={error}");
    if format.details {
        use std::fmt::Write;
        let (reason, class) = (refusal.reason.name(), record.class_name());
        let wait = record.waited(refusal.at).as_millis();
        let _ = write!(
            proxy_status,
            "; bywash-reason={reason}; bywash-class={class}; bywash-wait={wait}"
        );
    }
    fields.push(b"Proxy-Status", proxy_status.as_bytes());
    let text = format!("The site is very busy. Please try again in {seconds} s.");
    let kind = if refusal.reason == Reason::PrincipalCap { TOO_MUCH } else { BUSY };
    format.reply(status, fields, &Problem { kind, text: &text, retry_after: Some(seconds) })
}

/// Returns the status of the response to a request that was refused or stopped for this reason.
const fn status_of_reason(reason: Reason) -> StatusCode {
    match reason {
        Reason::PrincipalCap => StatusCode::TOO_MANY_REQUESTS,
        Reason::SlotFree
        | Reason::Best
        | Reason::FloorShare
        | Reason::AfterOthers
        | Reason::QueueFull
        | Reason::Evicted
        | Reason::SetBack
        | Reason::WaitedTooLong
        | Reason::Reconfigured
        | Reason::Throttled
        | Reason::MemoryFull
        | Reason::ClientLeft
        | Reason::SlowClient => StatusCode::SERVICE_UNAVAILABLE,
        Reason::RanTooLong | Reason::Preempted => StatusCode::GATEWAY_TIMEOUT,
    }
}

/// Answers a request that the upstream has failed, or whose body turned out to be invalid while it
/// was forwarded. Ends the record.
pub(super) fn upstream(
    format: &RefusalFormat,
    record: &mut Record,
    ticket: Option<Ticket>,
    error: &UpstreamError,
) -> Reply {
    let reply = match ProxyError::of(error) {
        Ok(ProxyError { status, kind, detail }) => failed(format, status, kind, detail),
        Err(fault) => faulty_body(record.shared(), fault),
    };
    record.fail(ticket, error, error.end(), reply.status);
    reply
}

/// Answers a request whose client's own deadline has expired (504). Ends the record. It is unknown
/// whether the upstream would have responded.
pub(super) fn out_of_time(format: &RefusalFormat, record: &mut Record) -> Reply {
    let detail = "the client's own deadline";
    let reply = failed(format, StatusCode::GATEWAY_TIMEOUT, "http_response_timeout", detail);
    record.out_of_time(reply.status);
    reply
}

fn failed(format: &RefusalFormat, status: StatusCode, kind: &str, detail: &str) -> Reply {
    let mut fields = Fields::new();
    let mut proxy_status = format!("bywash; error={kind}");
    if format.details {
        // The detail is quoted as it is, because our own texts contain no quotes.
        proxy_status = format!("{proxy_status}; details=\"{detail}\"");
    }
    fields.push(b"Proxy-Status", proxy_status.as_bytes());
    let text = status.canonical_reason().unwrap_or("Upstream error");
    format.reply(status, fields, &Problem { kind: PLAIN, text, retry_after: None })
}

/// Answers a request whose body is invalid before anything was forwarded. Ends the record.
pub(super) fn upload(record: &mut Record, error: BodyError) -> Reply {
    let reply = faulty_body(record.shared(), error);
    record.end(Outcome::Orphaned, reply.status);
    reply
}

/// Returns the response to an invalid body. The response closes the connection.
fn faulty_body(shared: &Shared, error: BodyError) -> Reply {
    match error {
        BodyError::TooSlow => {
            shared.metrics.too_slow();
            too_slow()
        }
        BodyError::Malformed(error) => {
            shared.metrics.malformed(error);
            malformed(error)
        }
        BodyError::TooLarge => too_large(),
        BodyError::BrokenOff => {
            shared.metrics.malformed(ParseError::Body);
            malformed(ParseError::Body)
        }
    }
}

/// Answers a request that has passed too many bywash gateways (508, RFC 5842 §7.2). Ends the
/// record.
pub(super) fn looping(format: &RefusalFormat, record: &mut Record) -> Reply {
    record.end(Outcome::UpstreamError, StatusCode::LOOP_DETECTED);
    let mut fields = Fields::new();
    fields.push(b"Proxy-Status", b"bywash; error=proxy_loop_detected");
    let text = "This request has passed through too many gateways: the proxies form a loop.";
    let problem = Problem { kind: PLAIN, text, retry_after: None };
    format.reply(StatusCode::LOOP_DETECTED, fields, &problem)
}

/// Returns the response to a malformed message.
pub(super) fn malformed(error: ParseError) -> Reply {
    let status = status_of_parse_error(error);
    let mut fields = Fields::new();
    fields.push(b"Content-Type", b"text/plain; charset=utf-8");
    fields.push(b"Proxy-Status", b"bywash; error=http_request_error");
    if error == ParseError::Method {
        fields.push(b"Allow", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    }
    let words = status.canonical_reason().unwrap_or("Bad request");
    Reply::local(status, fields, format!("{words}\n")).closing()
}

/// Returns the response to a message that arrives too slowly (408).
pub(super) fn too_slow() -> Reply {
    let mut fields = Fields::new();
    fields.push(b"Content-Type", b"text/plain; charset=utf-8");
    fields.push(b"Proxy-Status", b"bywash; error=http_request_error");
    Reply::local(StatusCode::REQUEST_TIMEOUT, fields, "Request Timeout\n").closing()
}

/// Returns the response to a body that is larger than its class allows (413).
fn too_large() -> Reply {
    let mut fields = Fields::new();
    fields.push(b"Content-Type", b"text/plain; charset=utf-8");
    fields.push(b"Proxy-Status", b"bywash; error=http_request_error");
    Reply::local(StatusCode::PAYLOAD_TOO_LARGE, fields, "Content Too Large\n").closing()
}

/// Returns the status of the response to a message with this error.
pub(super) const fn status_of_parse_error(error: ParseError) -> StatusCode {
    match error {
        ParseError::Syntax
        | ParseError::Host
        | ParseError::Framing
        | ParseError::Nominated
        | ParseError::Path
        | ParseError::Body => StatusCode::BAD_REQUEST,
        ParseError::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
        ParseError::Method => StatusCode::METHOD_NOT_ALLOWED,
        ParseError::Expectation => StatusCode::EXPECTATION_FAILED,
        ParseError::UriTooLong => StatusCode::URI_TOO_LONG,
        ParseError::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    }
}

/// The response to an upstream failure.
struct ProxyError {
    status: StatusCode,
    /// The registered type of proxy error (RFC 9209 §2.3).
    kind: &'static str,
    /// The detail for trusted peers. It contains nothing that came from the network.
    detail: &'static str,
}

impl ProxyError {
    /// Returns the response to an upstream failure.
    ///
    /// # Errors
    /// Returns the fault of the request's body if that is the cause. The upstream has not failed
    /// then.
    const fn of(error: &UpstreamError) -> Result<Self, BodyError> {
        const BAD_GATEWAY: StatusCode = StatusCode::BAD_GATEWAY;
        const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
        const TIMEOUT: StatusCode = StatusCode::GATEWAY_TIMEOUT;
        const CLOSED: &str = "the server closed the connection before it had answered";
        const SWITCHED: &str = "the server switched protocols without being asked";
        let (status, kind, detail) = match error {
            UpstreamError::Upload(fault) => return Err(*fault),
            UpstreamError::NoServer => (UNAVAILABLE, "destination_unavailable", "no server is up"),
            UpstreamError::Name(cause) => (BAD_GATEWAY, "dns_error", cause.name()),
            UpstreamError::Connect(_) => (BAD_GATEWAY, "connection_refused", "connecting failed"),
            UpstreamError::ConnectTimeout(_) => (TIMEOUT, "connection_timeout", "connect_timeout"),
            UpstreamError::ResponseTimeout(_) => {
                (TIMEOUT, "http_response_timeout", "response_timeout")
            }
            UpstreamError::IdleTimeout(_) => (TIMEOUT, "connection_read_timeout", "idle_timeout"),
            UpstreamError::TotalTimeout => (TIMEOUT, "http_response_timeout", "total_timeout"),
            UpstreamError::Closed => (BAD_GATEWAY, "connection_terminated", CLOSED),
            UpstreamError::Reset => {
                (BAD_GATEWAY, "connection_terminated", "the server reset the stream")
            }
            UpstreamError::Switched => (BAD_GATEWAY, "http_protocol_error", SWITCHED),
            UpstreamError::Garbage(error) => (BAD_GATEWAY, "http_protocol_error", error.name()),
            UpstreamError::TooManyStreams => {
                (UNAVAILABLE, "connection_limit_reached", "client_limits.streams")
            }
            UpstreamError::Local(fault @ LocalFault::Requests) => {
                (UNAVAILABLE, "connection_limit_reached", fault.name())
            }
            UpstreamError::Local(fault) => (UNAVAILABLE, "proxy_internal_error", fault.name()),
        };
        Ok(Self { status, kind, detail })
    }
}

/// Returns a random number of seconds between half and one and a half times `seconds`, at least 1.
/// Therefore clients that are refused together do not return together.
fn jittered(seconds: f64) -> u64 {
    ((seconds * (0.5 + chance())).round() as u64).max(1)
}

/// Returns a random number of seconds in the first half of a time.
fn at_random_in(time: &Range<u64>) -> u64 {
    let half = time.end.saturating_sub(time.start) as f64 / 2.0;
    (time.start + (half * chance()) as u64).max(1)
}

/// Returns a random number between 0 and 1. Each `RandomState` has a different key, which is random
/// enough for jitter.
fn chance() -> f64 {
    RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_clients_are_told_different_times_within_half_as_much_again() {
        let times: Vec<u64> = (0..200).map(|_| jittered(20.0)).collect();
        assert!(times.iter().all(|seconds| (10..=30).contains(seconds)), "{times:?}");
        assert!(times.iter().any(|seconds| *seconds != times[0]));
        assert_eq!(jittered(0.0), 1);
    }
}
