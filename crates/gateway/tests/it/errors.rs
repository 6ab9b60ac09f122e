//! Tests of servers that answer with 500 or more while other servers do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::setup::{Running, Setup, eventually};
use crate::upstream::{Upstream, nobody, ok};

/// Starts a server that answers 200 while the returned flag is set, and 500 while it is not.
fn moody(is_well: bool) -> (Upstream, Arc<AtomicBool>) {
    let mood = Arc::new(AtomicBool::new(is_well));
    let seen = Arc::clone(&mood);
    let error = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";
    let upstream =
        Upstream::app(
            move |_| {
                if seen.load(Ordering::SeqCst) { ok("well") } else { error.to_vec() }
            },
        );
    (upstream, mood)
}

fn before(servers: [&Upstream; 2]) -> Setup {
    let urls = servers.map(|server| format!("http://{}", server.address));
    Setup::before_address(nobody()).servers(&urls)
}

fn state(gateway: &Running, server: usize) -> String {
    gateway.status()["servers"][server]["state"].as_str().unwrap().to_owned()
}

fn asks(gateway: &Running, times: usize) -> usize {
    (0..times).filter(|_| gateway.get("/").status() == Some(200)).count()
}

#[test]
fn one_that_errs_while_the_other_does_not_gets_no_more_requests() {
    let ((good, _), (bad, _)) = (moody(true), moody(false));
    let gateway = before([&good, &bad]).set("health.eject_for", "'1h'").start();
    let mut served = 0;
    eventually("the second is ejected", || {
        served += asks(&gateway, 10);
        state(&gateway, 1) == "ejected"
    });
    let errors =
        gateway.metric(&format!("bywash_server_errors_total{{server=\"http://{}\"}}", bad.address));
    assert!((20.0..=40.0).contains(&errors), "{errors} errors, {served} served");
    assert_eq!(asks(&gateway, 50), 50);
}

#[test]
fn one_that_has_stopped_to_err_comes_back() {
    let ((good, _), (bad, mood)) = (moody(true), moody(false));
    let gateway = before([&good, &bad]).set("health.eject_for", "'100ms'").start();
    eventually("the second is ejected", || {
        asks(&gateway, 10);
        state(&gateway, 1) == "ejected"
    });
    mood.store(true, Ordering::SeqCst);
    eventually("it is back", || {
        asks(&gateway, 1);
        ["slow_start", "up"].contains(&&*state(&gateway, 1))
    });
}

#[test]
fn where_all_err_alike_or_the_share_is_zero_nobody_is_ejected() {
    for (first, share) in [(false, "50"), (true, "0")] {
        let ((one, _), (other, _)) = (moody(first), moody(false));
        let gateway = before([&one, &other]).set("health.eject_share", share).start();
        asks(&gateway, 200);
        assert_eq!([0, 1].map(|server| state(&gateway, server)), ["up", "up"]);
    }
}
