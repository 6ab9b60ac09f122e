//! What a request is called, and what of it goes on to the services that it calls.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::str::FromStr;

use bywash_lease::RequestId;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::answer::HEADER;
use crate::token::Token;

/// The name of a request: what gateway, application and stop daemon know it by.
pub const REQUEST_HEADER: &str = "bywash-request";

const DEADLINE: HeaderName = HeaderName::from_static(HEADER);
const REQUEST: HeaderName = HeaderName::from_static(REQUEST_HEADER);
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Of a request's head what it is known by, and what is passed on as it came.
#[derive(Clone, Debug, Default)]
pub struct Brought {
    pub(crate) request: Option<RequestId>,
    traceparent: Option<HeaderValue>,
    tracestate: Vec<HeaderValue>,
}

impl Brought {
    /// What this head says.
    pub fn of(head: &HeaderMap) -> Self {
        let name = only(head, &REQUEST).and_then(|value| value.to_str().ok());
        let traceparent = only(head, &TRACEPARENT).cloned();
        // Without a parent it is the state of nothing.
        let states = traceparent.iter().flat_map(|_| head.get_all(&TRACESTATE));
        Self {
            request: name.and_then(|name| RequestId::from_str(name).ok()),
            tracestate: states.cloned().collect(),
            traceparent,
        }
    }

    /// The same without the name, for those who distrust it.
    #[must_use]
    pub fn nameless(self) -> Self {
        Self { request: None, ..self }
    }

    /// The same with a name: its own, or a new one, which is another in each process.
    pub(crate) fn named(self) -> Self {
        Self { request: self.request.or_else(new_name), ..self }
    }
}

/// Returns 16 random hexadecimal digits, as `mod_bywash_sentry` makes them. The randomness is that of the hash tables'
/// seeds: the system's for each thread, and another seed each time.
fn new_name() -> Option<RequestId> {
    format!("{:016x}", RandomState::new().build_hasher().finish()).parse().ok()
}

fn only<'a>(head: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = head.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

impl Token {
    /// What gateway and stop daemon know it by, if it has a name.
    pub fn request(&self) -> Option<&RequestId> {
        self.brought().request.as_ref()
    }

    /// What a call to another service takes along: its name and its trace, and the time that is left to it.
    pub fn outgoing(&self) -> HeaderMap {
        let Brought { request, traceparent, tracestate } = self.brought();
        let mut head = HeaderMap::new();
        let name = request.as_ref().and_then(|name| HeaderValue::from_str(name.as_str()).ok());
        head.extend(name.map(|name| (REQUEST, name)));
        head.extend(traceparent.iter().map(|value| (TRACEPARENT, value.clone())));
        for value in tracestate {
            head.append(TRACESTATE, value.clone());
        }
        let left = self.left().map(|left| left.as_millis().min(999_999_999) as u64);
        head.extend(left.map(|left| (DEADLINE, HeaderValue::from(left))));
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_a_name_gets_one_and_another_keeps_its_own() {
        let name = || Brought::default().named().request.expect("16 digits are a name");
        let (one, other) = (name(), name());
        assert!(one != other && one.as_str().len() == 16);
        let head = [(REQUEST, HeaderValue::from_static("r1"))].into_iter().collect();
        assert_eq!(Brought::of(&head).named().request.as_ref().map(RequestId::as_str), Some("r1"));
    }
}
