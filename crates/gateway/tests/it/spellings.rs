//! Tests that a class covers a page in every spelling that an application interprets as that page.

use crate::setup::{Running, Setup};
use crate::upstream::{Calls, Upstream};
use crate::wire::Wire;

/// Configures a staged rollout: everything is observed, except for one class, which is enforced.
fn staged(upstream: &Upstream) -> Setup {
    Setup::before(upstream)
        .limit(2)
        .set("mode", "'observe'")
        .set("scheduler.capacity", "100")
        .set("class.search", "{ match = ['GET /search'], mode = 'enforce' }")
}

const AT_ONCE: usize = 30;

/// Sends 30 requests for this target at once.
fn ask(gateway: &Running, method: &str, target: &str) -> Vec<Wire> {
    let request = format!("{method} {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    let clients = (0..AT_ONCE).map(|_| gateway.sends(&request)).collect();
    gateway.waits_for("waiting", AT_ONCE as u64 - 2);
    clients
}

/// Checks that only two of 30 requests are at the application, and that each answer lets one more
/// through.
fn is_held(gateway: &Running, calls: &Calls, method: &str, target: &str) {
    let mut clients = ask(gateway, method, target);
    let mut here = vec![calls.next(), calls.next()];
    // Another page is only observed. It comes later, so requests that are not held would have
    // arrived before it.
    let mut other = gateway.asks("/other-page");
    let call = calls.next();
    assert_eq!(call.target(), "/other-page", "{method} {target} is held");
    call.answer("");
    assert_eq!(other.answer().unwrap().status(), Some(200));
    for answered in 1..=AT_ONCE {
        assert!(calls.is_empty(), "no more than two at once: {method} {target}");
        let call = here.remove(0);
        assert_eq!(call.target(), target, "it is forwarded as it came");
        call.answer("");
        if answered + here.len() < AT_ONCE {
            here.push(calls.next());
        }
    }
    for client in &mut clients {
        assert_eq!(client.answer().unwrap().status(), Some(200), "{method} {target}");
    }
    gateway.is_idle_again();
}

/// Checks that all 30 requests are at the application at once.
fn is_observed(gateway: &Running, calls: &Calls, target: &str) {
    let mut clients = ask(gateway, "GET", target);
    let here: Vec<_> = (0..AT_ONCE).map(|_| calls.next()).collect();
    for call in here {
        call.answer("");
    }
    for client in &mut clients {
        assert_eq!(client.answer().unwrap().status(), Some(200), "{target}");
    }
    gateway.is_idle_again();
}

#[test]
fn a_class_that_alone_is_enforced_holds_every_spelling_of_its_page() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = staged(&upstream).start();
    for target in ["/search", "//search", "/search/", "/search;x", "/search%2F", "//search;x/"] {
        is_held(&gateway, &calls, "GET", target);
    }
    is_held(&gateway, &calls, "HEAD", "/search");
    // A target that every application interprets as another page is only observed.
    for target in ["/searches", "/search/x", "/Search"] {
        is_observed(&gateway, &calls, target);
    }
}

#[test]
fn where_the_application_ignores_case_so_does_the_class() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = staged(&upstream).set("upstream.ignore_case", "true").start();
    for target in ["/Search", "//SEARCH/"] {
        is_held(&gateway, &calls, "GET", target);
    }
}

#[test]
fn an_odd_spelling_has_the_shortest_time_of_its_readings_and_the_lowest_class() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = staged(&upstream)
        .set(
            "class.search",
            "{ match = ['GET /search'], tier = 'transaction', total_timeout = '300ms' }",
        )
        .start();
    let mut client = gateway.asks("//search");
    let _call = calls.next();
    assert_eq!(client.answer().unwrap().status(), Some(504));
    let status = gateway.status();
    let ended = |name: &str| {
        let classes = status["classes"].as_array().unwrap();
        let class = classes.iter().find(|class| class["name"] == name).unwrap();
        class["outcomes"]["upstream_error"].as_u64().unwrap()
    };
    assert_eq!((ended("search"), ended("other")), (0, 1));
}
