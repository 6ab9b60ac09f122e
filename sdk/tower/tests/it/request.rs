//! Tests of a request's name, and of the header fields that it passes on.

use bywash_tower::{Brought, REQUEST_HEADER};
use http::HeaderMap;

use crate::{Search, millis, secs};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn head(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut head = HeaderMap::new();
    for (field, value) in fields {
        head.append(*field, value.parse().unwrap());
    }
    head
}

fn name(fields: &[(&'static str, &str)]) -> Option<String> {
    let token = Search::new().class.begin_with(None, Brought::of(&head(fields)));
    token.request().map(ToString::to_string)
}

#[test]
fn a_name_is_one_value_of_a_few_letters() {
    let longest = "a".repeat(128);
    for good in ["5f1c", "a.b_c:D-9", &longest] {
        assert_eq!(name(&[(REQUEST_HEADER, good)]).as_deref(), Some(good));
    }
    for bad in ["", "a b", "a/b", &"a".repeat(129)] {
        assert_eq!(name(&[(REQUEST_HEADER, bad)]), None);
    }
    assert_eq!(name(&[(REQUEST_HEADER, "a"), (REQUEST_HEADER, "a")]), None);
    assert_eq!(name(&[]), None);
}

#[test]
fn name_trace_and_time_are_passed_on() {
    let search = Search::new();
    let fields = [
        (REQUEST_HEADER, "r1"),
        ("traceparent", TRACE),
        ("tracestate", "a=1"),
        ("tracestate", "b=2"),
        ("cookie", "secret"),
    ];
    let brought = Brought::of(&head(&fields));
    let token = search.class.begin_with(Some(secs(2)), brought.clone());
    search.goes(millis(500));
    let outgoing = token.outgoing();
    assert_eq!(
        (&outgoing[REQUEST_HEADER], &outgoing["traceparent"]),
        (&"r1".parse().unwrap(), &TRACE.parse().unwrap())
    );
    assert_eq!(outgoing["bywash-deadline"], "1500");
    assert_eq!(outgoing.get_all("tracestate").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
    assert_eq!(outgoing.len(), 5);
    search.goes(secs(9));
    assert_eq!(token.outgoing()["bywash-deadline"], "0");
    let nameless = search.class.begin_with(None, brought.nameless());
    nameless.settle();
    assert_eq!(
        nameless.outgoing().keys().map(http::HeaderName::as_str).collect::<Vec<_>>(),
        ["traceparent", "tracestate"]
    );
    assert!({
        let settled = search.class.begin(None);
        settled.settle();
        settled.outgoing().is_empty()
    });
}
