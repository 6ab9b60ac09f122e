//! Tests of the modes `observe` and `enforce`, of both together, and of the bypass.

use crate::history::{history, sum};
use crate::setup::{Setup, eventually};
use crate::upstream::Upstream;

#[test]
fn observing_holds_nobody_up_and_refuses_nobody() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .limit(1)
        .set("mode", "'observe'")
        .set("scheduler.capacity", "2")
        .start();
    let mut clients: Vec<_> = (0..8).map(|n| gateway.asks(&format!("/{n}"))).collect();
    // All eight reach the upstream at once, though there are one slot and two places in the queue.
    let at_once: Vec<_> = (0..8).map(|_| calls.next()).collect();
    assert_eq!((gateway.count("running"), gateway.count("waiting")), (1, 2));
    for call in at_once {
        let target = call.target().to_owned();
        call.answer(&target);
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.answer().unwrap().text(), format!("/{number}"));
    }
    gateway.is_idle_again();
    eventually("all are served", || gateway.outcome("served") == 8);
    let decided = |reason: &str| {
        let labels = format!("class=\"other\",mode=\"observe\",reason=\"{reason}\"");
        gateway.metric(&format!("bywash_decisions_total{{{labels}}}"))
    };
    assert_eq!(decided("queue_full"), 5.0);
    assert_eq!(decided("slot_free"), 1.0);
    // The reasons for the two that waited depend on which request was answered first.
    assert_eq!(decided("best") + decided("still_waiting") + decided("floor_share"), 2.0);
    let would = |what: &str| {
        gateway.metric(&format!("bywash_shadow_requests_total{{class=\"other\",would=\"{what}\"}}"))
    };
    assert_eq!(would("refused"), 5.0);
    assert_eq!(would("run") + would("waiting"), 3.0);
    eventually("it is told", || sum(&history(&gateway, ""), "other", "shadow/refused") == 5);
}

#[test]
fn what_is_observed_is_measured_only_if_it_would_have_run_at_once() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).set("mode", "'observe'").start();
    let measured = || gateway.status()["mean_service_ms"].as_f64().unwrap() > 0.0;
    let mut first = gateway.asks("/1");
    let one = calls.next();
    let mut others = [gateway.asks("/2"), gateway.asks("/3")];
    gateway.waits_for("waiting", 2);
    let [two, three] = [calls.next(), calls.next()];
    two.answer("");
    gateway.waits_for("waiting", 1);
    assert!(!measured(), "it would have waited still");
    one.answer("");
    assert_eq!(first.answer().unwrap().status(), Some(200));
    gateway.waits_for("waiting", 0);
    assert!(measured(), "it would have run at once");
    let before = gateway.status()["mean_service_ms"].clone();
    // This sleep adds to the service time of the request.
    std::thread::sleep(std::time::Duration::from_millis(50));
    three.answer("");
    for client in &mut others {
        assert_eq!(client.answer().unwrap().status(), Some(200));
    }
    gateway.is_idle_again();
    assert_eq!(gateway.status()["mean_service_ms"], before, "it would have begun later");
}

#[test]
fn a_request_that_is_only_observed_may_leave_or_fail_at_any_time() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).set("mode", "'observe'").start();
    let mut clients: Vec<_> = (0..6).map(|n| gateway.asks(&format!("/{n}"))).collect();
    let mut at_once: Vec<_> = (0..6).map(|_| calls.next()).collect();
    gateway.waits_for("waiting", 5);
    clients.truncate(3);
    gateway.waits_for("waiting", 2);
    for call in at_once.drain(..) {
        call.close();
    }
    for client in &mut clients {
        let status = client.answer().unwrap().status();
        assert!(matches!(status, Some(502)), "{status:?}");
    }
    gateway.is_idle_again();
    assert_eq!((gateway.outcome("orphaned"), gateway.outcome("upstream_error")), (3, 3));
    let would = |what: &str| {
        gateway.metric(&format!("bywash_shadow_requests_total{{class=\"other\",would=\"{what}\"}}"))
    };
    // The decision about each request counts, also if its client has left.
    assert_eq!(would("run") + would("waiting"), 6.0);
    assert!(would("waiting") >= 3.0);
}

#[test]
fn each_class_has_its_own_mode() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .limit(1)
        .set("mode", "'observe'")
        .set("class.search", "{ match = ['GET /search'], mode = 'enforce' }")
        .start();
    // A request that is only observed takes the slot nevertheless.
    let mut observed = gateway.asks("/page");
    let page = calls.next();
    let mut enforced = gateway.asks("/search?q=1");
    gateway.waits_for("waiting", 1);
    let mut other = gateway.asks("/other-page");
    calls.next().answer("other");
    assert_eq!(other.answer().unwrap().text(), "other");
    assert!(calls.is_empty());
    page.answer("page");
    assert_eq!(observed.answer().unwrap().text(), "page");
    let search = calls.next();
    assert_eq!(search.target(), "/search?q=1");
    search.answer("found");
    assert_eq!(enforced.answer().unwrap().text(), "found");
    gateway.is_idle_again();
}

#[test]
fn a_bypassed_gateway_decides_nothing() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    gateway.gateway().bypass(true);
    assert_eq!(gateway.status()["mode"], "bypass");
    let mut clients: Vec<_> = (0..4).map(|_| gateway.asks("/")).collect();
    let at_once: Vec<_> = (0..4).map(|_| calls.next()).collect();
    assert_eq!((gateway.count("running"), gateway.count("waiting")), (0, 0));
    for call in at_once {
        call.answer("");
    }
    for client in &mut clients {
        assert_eq!(client.answer().unwrap().status(), Some(200));
    }
    eventually("all are counted", || gateway.outcome("served") == 4);
    gateway.gateway().bypass(false);
    assert_eq!(gateway.status()["mode"], "enforce");
}

#[test]
fn requests_that_wait_when_the_bypass_begins_are_not_forgotten() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let _running = gateway.asks("/runs");
    let call = calls.next();
    let mut waiting = gateway.asks("/waits");
    gateway.waits_for("waiting", 1);
    gateway.gateway().bypass(true);
    call.answer("");
    calls.next().answer("at last");
    assert_eq!(waiting.answer().unwrap().text(), "at last");
    gateway.is_idle_again();
}

#[test]
fn an_answer_after_its_patience_is_late() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream)
        .set("class.page", "{ match = ['GET /'], patience = '1ms' }")
        .start();
    let mut client = gateway.asks("/");
    let call = calls.next();
    let asked = gateway.count("uptime_ms");
    eventually("more than a millisecond has passed", || gateway.count("uptime_ms") > asked + 2);
    call.answer("");
    client.answer().unwrap();
    eventually("it is counted", || gateway.outcome("late") == 1);
}
