//! Tests of `answers.details`: the exact reason of a refusal is given to every client, to trusted
//! hops only, or to nobody.

use crate::setup::{Running, Setup};
use crate::upstream::{Upstream, nobody};

/// Returns the `Proxy-Status` of a refused client.
fn refusal(how: impl FnOnce(Setup) -> Setup) -> String {
    let (upstream, calls) = Upstream::by_hand();
    let setup = Setup::before(&upstream).limit(1).set("queue.max_wait", "'100ms'");
    let gateway = how(setup).start();
    let _running = gateway.asks("/");
    let _call = calls.next();
    status(&gateway, 503)
}

/// Returns the `Proxy-Status` of a client whose request could not reach the upstream.
fn failure(how: impl FnOnce(Setup) -> Setup) -> String {
    status(&how(Setup::before_address(nobody())).start(), 502)
}

fn status(gateway: &Running, status: u16) -> String {
    let answer = gateway.get("/");
    assert_eq!(answer.status(), Some(status));
    answer.field("proxy-status").unwrap().to_owned()
}

const COARSE: [&str; 2] =
    ["bywash; error=connection_limit_reached", "bywash; error=connection_refused"];

fn is_told_everything(how: impl Fn(Setup) -> Setup) {
    let begins = format!("{}; bywash-reason=waited_too_long; bywash-class=other", COARSE[0]);
    let refusal = refusal(&how);
    assert!(refusal.starts_with(&begins) && refusal.contains("; bywash-wait="), "{refusal}");
    assert_eq!(failure(&how), format!("{}; details=\"connecting failed\"", COARSE[1]));
}

fn is_told_one_word(how: impl Fn(Setup) -> Setup) {
    assert_eq!([refusal(&how), failure(&how)], COARSE);
}

fn trusting(setup: Setup) -> Setup {
    setup.set("listen.trusted_proxies", "['127.0.0.1']")
}

#[test]
fn everybody_is_told_if_that_is_wanted() {
    is_told_everything(|setup| setup.set("answers.details", "'all'"));
}

#[test]
fn a_trusted_hop_is_told_and_a_stranger_is_not() {
    is_told_everything(|setup| trusting(setup.set("answers.details", "'trusted'")));
    is_told_one_word(|setup| setup.set("answers.details", "'trusted'"));
}

#[test]
fn a_trusted_hop_is_not_told_either_if_nobody_is_to_be() {
    is_told_one_word(|setup| trusting(setup.set("answers.details", "'none'")));
}

#[test]
fn by_default_a_stranger_is_told_one_word() {
    is_told_one_word(|setup| setup.unset("answers.details"));
}
