//! Tests of running requests that are stopped. The client gets a 504 with the reason, and the
//! upstream notices the end at once.

use crate::setup::{Running, Setup, eventually};
use crate::upstream::{Calls, Upstream};

const SEARCH: &str =
    "{ match = ['GET /search'], cancellable = true, run_min = '50ms', run_max = '100ms' }";

/// Configures that searches may run for a tenth of a second, and everything else without limit.
fn before(upstream: &Upstream) -> Setup {
    let fixed = Setup::before(upstream).set("terminate.policy", "'fixed'");
    fixed.set("class.search", SEARCH).limit(1)
}

fn started() -> (Upstream, Calls, Running) {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = before(&upstream).start();
    (upstream, calls, gateway)
}

/// Starts a gateway with one slot, where a running search that is expected to yield less than a
/// waiting one is preempted.
fn one_at_a_time(key: &str, value: &str) -> (Upstream, Calls, Running) {
    let (upstream, calls) = Upstream::by_hand();
    let search =
        "{ match = ['GET /search'], cancellable = true, run_min = '20ms', run_max = '60s' }";
    let setup = Setup::before(&upstream).limit(1).set("class.search", search);
    let gateway = setup.set(key, value).start();
    (upstream, calls, gateway)
}

#[test]
fn a_search_that_runs_for_too_long_is_stopped_on_both_sides() {
    let (upstream, calls, gateway) = started();
    let mut client = gateway.asks("/search");
    let call = calls.next();
    let answer = client.answer().unwrap();
    assert_eq!(answer.status(), Some(504));
    let seconds: u32 = answer.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=48).contains(&seconds), "{seconds}");
    let why = answer.field("proxy-status").unwrap();
    assert!(why.contains("error=http_response_timeout"), "{why}");
    assert!(why.contains("bywash-reason=ran_too_long; bywash-class=search"), "{why}");
    eventually("the upstream is told", || call.is_abandoned());
    gateway.waits_for_outcome("terminated", 1);
    gateway.is_idle_again();
    // The client connection and the slot stay usable.
    client.send(crate::setup::get("/page"));
    calls.next().answer("page");
    assert_eq!(client.answer().unwrap().text(), "page");
    assert_eq!(upstream.accepted(), 2);
    let decided =
        "bywash_decisions_total{class=\"search\",mode=\"enforce\",reason=\"ran_too_long\"}";
    assert!(gateway.metrics().contains(decided) && gateway.metric(decided) == 1.0);
}

#[test]
fn the_next_one_gets_the_slot() {
    let (_upstream, calls, gateway) = started();
    let mut first = gateway.asks("/search");
    let _kept = calls.next();
    let mut second = gateway.asks("/page");
    assert_eq!(first.answer().unwrap().status(), Some(504));
    calls.next().answer("page");
    assert_eq!(second.answer().unwrap().text(), "page");
    gateway.is_idle_again();
}

#[test]
fn once_its_answer_has_begun_nothing_is_stopped() {
    let (_upstream, calls, gateway) = started();
    let mut client = gateway.asks("/search");
    let mut call = calls.next();
    call.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha");
    // This sleep is longer than the search may run.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(gateway.count("running"), 1, "it has its slot still");
    call.send("lf");
    assert_eq!(client.answer().unwrap().text(), "half");
    gateway.is_idle_again();
    assert_eq!((gateway.outcome("served"), gateway.outcome("terminated")), (1, 0));
}

#[test]
fn who_is_not_cancellable_or_only_observed_is_never_stopped() {
    for observed in [false, true] {
        let (upstream, calls) = Upstream::by_hand();
        let mut setup = before(&upstream);
        if observed {
            setup = setup.set("mode", "'observe'");
        }
        let gateway = setup.start();
        let mut client = gateway.asks(if observed { "/search" } else { "/page" });
        let call = calls.next();
        // This sleep is longer than a search may run.
        std::thread::sleep(std::time::Duration::from_millis(300));
        call.answer("late");
        assert_eq!(client.answer().unwrap().text(), "late", "observed: {observed}");
        gateway.is_idle_again();
        let mode = if observed { "observe" } else { "enforce" };
        let labels = format!("class=\"search\",mode=\"{mode}\",reason=\"ran_too_long\"");
        let would = &format!("bywash_decisions_total{{{labels}}}");
        assert_eq!(gateway.metric(would), 0.0);
    }
}

#[test]
fn a_client_that_leaves_as_it_is_stopped_costs_no_slot() {
    let (upstream, calls) = Upstream::by_hand();
    let search =
        "{ match = ['GET /search'], cancellable = true, run_min = '20ms', run_max = '40ms' }";
    let gateway = before(&upstream).set("class.search", search).start();
    for _ in 0..20 {
        let client = gateway.asks("/search");
        let _call = calls.next();
        // The client leaves at about the moment at which its request is stopped.
        std::thread::sleep(std::time::Duration::from_millis(39));
        drop(client);
        gateway.is_idle_again();
    }
    let mut last = gateway.asks("/page");
    calls.next().answer("page");
    assert_eq!(last.answer().unwrap().text(), "page");
}

/// Lets the gateway learn that searches are fast.
fn learns(calls: &Calls, gateway: &Running) {
    for _ in 0..40 {
        let mut client = gateway.asks("/search");
        calls.next().answer("quick");
        client.answer().unwrap();
    }
    // The estimate is updated once a second.
    std::thread::sleep(std::time::Duration::from_millis(1100));
}

#[test]
fn where_one_has_waited_for_long_another_that_promises_less_is_preempted() {
    let (_upstream, calls, gateway) = one_at_a_time("scheduler.patience", "'5s'");
    learns(&calls, &gateway);
    let mut long = gateway.asks("/search");
    let _call = calls.next();
    let mut next = gateway.asks("/search");
    gateway.waits_for("waiting", 1);
    // The sleep is slightly longer than a tenth of the patience.
    std::thread::sleep(std::time::Duration::from_millis(550));
    let mut third = gateway.asks("/search");
    assert_eq!(long.answer().unwrap().status(), Some(504));
    for _ in 0..2 {
        calls.next().answer("page");
    }
    assert!([next.answer().unwrap(), third.answer().unwrap()].iter().all(|a| a.text() == "page"));
}

#[test]
fn before_one_is_refused_the_one_that_promises_less_is_preempted() {
    let (_upstream, calls, gateway) = one_at_a_time("scheduler.capacity", "1");
    learns(&calls, &gateway);
    let mut long = gateway.asks("/search");
    let call = calls.next();
    std::thread::sleep(std::time::Duration::from_millis(500));
    let mut next = gateway.asks("/search");
    gateway.waits_for("waiting", 1);
    let mut third = gateway.asks("/search");
    let answer = long.answer().unwrap();
    assert_eq!(answer.status(), Some(504));
    assert!(answer.field("proxy-status").unwrap().contains("bywash-reason=preempted"));
    eventually("the upstream is told", || call.is_abandoned());
    calls.next().answer("next");
    assert_eq!(next.answer().unwrap().text(), "next");
    calls.next().answer("third");
    assert_eq!(third.answer().unwrap().text(), "third");
    gateway.is_idle_again();
    assert_eq!(failures(&gateway), [0, 0], "the server had time");
}

/// Returns the number of failed responses of the server from `/v1/status`: in total, and in a row.
fn failures(gateway: &Running) -> [u64; 2] {
    let server = &gateway.status()["servers"][0];
    ["response_failures", "failures"].map(|name| server[name].as_u64().unwrap())
}

#[test]
fn a_server_that_answers_nobody_while_one_runs_for_too_long_has_failed() {
    let (_upstream, calls, gateway) = started();
    for times in 1..4 {
        let mut client = gateway.asks("/search");
        let _call = calls.next();
        assert_eq!(client.answer().unwrap().status(), Some(504));
        gateway.is_idle_again();
        assert_eq!(failures(&gateway), [times; 2]);
    }
    let mut well = gateway.asks("/page");
    calls.next().answer("page");
    assert_eq!(well.answer().unwrap().text(), "page");
    gateway.is_idle_again();
    assert_eq!(failures(&gateway), [3, 0]);
}

#[test]
fn one_that_runs_for_too_long_and_hints_meanwhile_has_shown_that_its_server_lives() {
    let (_upstream, calls, gateway) = started();
    let mut client = gateway.asks("/search");
    let mut call = calls.next();
    call.send("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n");
    assert_eq!(client.head().unwrap().status(), Some(103));
    assert_eq!(client.answer().unwrap().status(), Some(504));
    gateway.is_idle_again();
    assert_eq!(failures(&gateway), [0, 0]);
}

#[test]
fn where_others_are_answered_it_is_the_request_that_is_long() {
    let (upstream, calls) = Upstream::by_hand();
    let search =
        "{ match = ['GET /search'], cancellable = true, run_min = '50ms', run_max = '1s' }";
    let gateway = before(&upstream).set("class.search", search).limit(2).start();
    let mut long = gateway.asks("/search");
    let _call = calls.next();
    // Any response shows that the server does not hang.
    let mut other = gateway.asks("/page");
    calls.next().send_and_close("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(other.answer().unwrap().status(), Some(500));
    assert_eq!(long.answer().unwrap().status(), Some(504));
    gateway.is_idle_again();
    assert_eq!(failures(&gateway), [0, 0]);
}

#[test]
fn errors_that_come_quickly_do_not_make_a_class_quick() {
    let (_upstream, calls, gateway) = one_at_a_time("scheduler.capacity", "1");
    for _ in 0..40 {
        let mut client = gateway.asks("/search");
        calls.next().send_and_close("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
        client.answer().unwrap();
    }
    let mut long = gateway.asks("/search");
    let call = calls.next();
    let _next = gateway.asks("/search");
    gateway.waits_for("waiting", 1);
    // This sleep makes the request long.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let _third = gateway.asks("/search");
    gateway.waits_for_outcome("shed", 1);
    call.answer("long");
    assert_eq!(long.answer().unwrap().text(), "long");
}
