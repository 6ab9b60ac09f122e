//! The header fields of a request: its deadline, its name, and the trace fields that it passes on
//! to the services that it calls.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::str::FromStr;
use std::time::Duration;

use bywash_lease::RequestId;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header field with the number of milliseconds that are left for a request. A sender can only
/// shorten its own request with it: the class's threshold applies as well.
pub const HEADER: &str = "bywash-deadline";

/// The header field with the name of a request, which gateway, application and stop daemon share.
pub const REQUEST_HEADER: &str = "bywash-request";

const DEADLINE: HeaderName = HeaderName::from_static(HEADER);
const REQUEST: HeaderName = HeaderName::from_static(REQUEST_HEADER);
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The name and the W3C trace fields from the head of a request. They are passed on to other
/// services.
#[derive(Clone, Debug, Default)]
pub struct Brought {
    pub(crate) request: Option<RequestId>,
    traceparent: Option<HeaderValue>,
    tracestate: Vec<HeaderValue>,
}

impl Brought {
    /// Reads the request's name (`bywash-request`) and the W3C trace fields from its header. A name
    /// that is repeated or invalid counts as missing, and so does a repeated `traceparent`.
    pub fn of(head: &HeaderMap) -> Self {
        let name = only(head, &REQUEST).and_then(|value| value.to_str().ok());
        // A comma means that a proxy has joined several values, so the field is ignored.
        let traceparent =
            only(head, &TRACEPARENT).filter(|value| !value.as_bytes().contains(&b',')).cloned();
        // A `tracestate` has no meaning without a `traceparent`.
        let states = traceparent.iter().flat_map(|_| head.get_all(&TRACESTATE));
        Self {
            request: name.and_then(|name| RequestId::from_str(name).ok()),
            tracestate: states.cloned().collect(),
            traceparent,
        }
    }

    /// Removes the name of the request. Use this where names from clients are not trusted.
    #[must_use]
    pub fn nameless(self) -> Self {
        Self { request: None, ..self }
    }

    /// Keeps the name of the request. If it has none, makes a new name that is unique among
    /// processes.
    #[must_use]
    pub fn named(self) -> Self {
        Self { request: self.request.or_else(new_name), ..self }
    }

    /// Returns the header fields for a call to another service. `left` is the time that the called
    /// service gets; `None` sends no deadline.
    pub(crate) fn outgoing(&self, left: Option<Duration>) -> HeaderMap {
        let Self { request, traceparent, tracestate } = self;
        let mut head = HeaderMap::new();
        let name = request.as_ref().and_then(|name| HeaderValue::from_str(name.as_str()).ok());
        head.extend(name.map(|name| (REQUEST, name)));
        head.extend(traceparent.iter().map(|value| (TRACEPARENT, value.clone())));
        for value in tracestate {
            head.append(TRACESTATE, value.clone());
        }
        let left = left.map(|left| left.as_millis().min(999_999_999) as u64);
        head.extend(left.map(|left| (DEADLINE, HeaderValue::from(left))));
        head
    }
}

/// Returns the deadline in the header of a request, as the time that is left. A missing or repeated
/// field, or a value that is not 1 to 9 digits, counts as no deadline.
pub(crate) fn time_left(head: &HeaderMap) -> Option<Duration> {
    let mut values = head.get_all(HEADER).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let digits = value.as_bytes();
    if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |sum, digit: &u8| sum * 10 + u64::from(digit - b'0');
    Some(Duration::from_millis(digits.iter().fold(0, number)))
}

/// Returns a new name of 16 random hexadecimal digits, in the format of the names of
/// `mod_bywash_sentry`. The digits are the hash of an empty input with a random seed. The system
/// seeds each thread once, and the seed changes with each call.
fn new_name() -> Option<RequestId> {
    format!("{:016x}", RandomState::new().build_hasher().finish()).parse().ok()
}

fn only<'a>(head: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = head.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}
