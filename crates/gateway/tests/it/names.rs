//! Tests of servers that are configured by name.

use crate::setup::{Running, Setup, eventually};
use crate::upstream::{Upstream, nobody, ok};

/// A name that no name server resolves (RFC 2606).
const NOWHERE: &str = "http://nowhere.invalid";

fn before(servers: &[String]) -> Setup {
    Setup::before_address(nobody()).servers(servers)
}

/// Returns the number of failed look-ups.
fn failures(gateway: &Running) -> f64 {
    let of = |cause| gateway.metric(&format!("bywash_failed_names_total{{cause=\"{cause}\"}}"));
    ["unknown_name", "temporary", "other"].map(of).iter().sum()
}

#[test]
fn a_server_may_be_given_by_name() {
    let upstream = Upstream::app(|_| ok("found"));
    let gateway = before(&[format!("http://localhost:{}", upstream.address.port())]).start();
    assert_eq!(gateway.get("/").text(), "found");
    assert_eq!(failures(&gateway), 0.0);
}

#[test]
fn a_name_that_does_not_resolve_is_named() {
    let gateway = before(&[NOWHERE.into()]).start();
    let answer = gateway.get("/");
    assert_eq!(answer.status(), Some(502));
    let proxy_status = answer.field("proxy-status").unwrap();
    assert!(proxy_status.starts_with("bywash; error=dns_error; details="), "{proxy_status}");
    eventually("it is counted", || failures(&gateway) > 0.0);
}

#[test]
fn a_reload_to_a_name_that_does_not_resolve_stands_and_others_serve() {
    let upstream = Upstream::app(|_| ok("found"));
    let good = format!("http://{}", upstream.address);
    let gateway = before(std::slice::from_ref(&good)).start();
    assert_eq!(gateway.get("/").text(), "found");
    gateway.reload(&before(&[NOWHERE.into(), good])).unwrap();
    for _ in 0..20 {
        assert_eq!(gateway.get("/").text(), "found");
    }
    gateway.reload(&before(&[NOWHERE.into()])).unwrap();
    assert_eq!(gateway.get("/").status(), Some(502));
}
