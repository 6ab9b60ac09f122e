//! The header fields of a request: its deadline, its name, and those that it passes on to the
//! services that it calls.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::str::FromStr;
use std::time::Duration;

use bywash_lease::RequestId;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header field with the milliseconds that are left to a request. A sender can only shorten its
/// own request.
pub const HEADER: &str = "bywash-deadline";

/// The header field with the name by which gateway, application and stop daemon know a request.
pub const REQUEST_HEADER: &str = "bywash-request";

const DEADLINE: HeaderName = HeaderName::from_static(HEADER);
const REQUEST: HeaderName = HeaderName::from_static(REQUEST_HEADER);
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The parts of a request's head that identify it, and those that are passed on unchanged.
#[derive(Clone, Debug, Default)]
pub struct Brought {
    pub(crate) request: Option<RequestId>,
    traceparent: Option<HeaderValue>,
    tracestate: Vec<HeaderValue>,
}

impl Brought {
    /// Reads the head of a request.
    pub fn of(head: &HeaderMap) -> Self {
        let name = only(head, &REQUEST).and_then(|value| value.to_str().ok());
        // A proxy may have joined several values with commas.
        let traceparent =
            only(head, &TRACEPARENT).filter(|value| !value.as_bytes().contains(&b',')).cloned();
        // A `tracestate` without a `traceparent` has no meaning.
        let states = traceparent.iter().flat_map(|_| head.get_all(&TRACESTATE));
        Self {
            request: name.and_then(|name| RequestId::from_str(name).ok()),
            tracestate: states.cloned().collect(),
            traceparent,
        }
    }

    /// Removes the name. Use it where names from clients are not trusted.
    #[must_use]
    pub fn nameless(self) -> Self {
        Self { request: None, ..self }
    }

    /// Keeps the name or, if there is none, makes a new one that is unique among processes.
    pub(crate) fn named(self) -> Self {
        Self { request: self.request.or_else(new_name), ..self }
    }

    /// Returns the header fields for a call to another service, with the time that is `left`.
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

/// Returns the deadline that a request brings along. Anything but a single number of 1 to 9 digits
/// counts as no deadline.
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

/// Returns 16 random hexadecimal digits, like the names that `mod_bywash_sentry` makes. The
/// randomness is that of the hash tables' seeds: a system seed for each thread, and another one at
/// each call.
fn new_name() -> Option<RequestId> {
    format!("{:016x}", RandomState::new().build_hasher().finish()).parse().ok()
}

fn only<'a>(head: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = head.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}
