//! Tests of the header fields that a request without a name passes on. `conformance/requests.rs`
//! tests names, traces and deadlines.

use bywash_tower::{Brought, REQUEST_HEADER};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Search;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_request_that_is_made_nameless_passes_on_its_trace() {
    let mut head = HeaderMap::new();
    for (field, value) in [(REQUEST_HEADER, "r1"), ("traceparent", TRACE), ("tracestate", "a=1")] {
        head.insert(field, HeaderValue::from_static(value));
    }
    let nameless = Search::new().class.begin_with(None, Brought::of(&head).nameless());
    nameless.settle();
    assert_eq!(
        nameless.outgoing().keys().map(HeaderName::as_str).collect::<Vec<_>>(),
        ["traceparent", "tracestate"]
    );
}

#[test]
fn without_a_name_and_a_time_nothing_is_passed_on() {
    let settled = Search::new().class.begin(None);
    settled.settle();
    assert!(settled.outgoing().is_empty());
}
