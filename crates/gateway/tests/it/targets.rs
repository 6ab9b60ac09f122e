//! Request targets: what is classified, what is forwarded.

use crate::setup::{Running, Setup, eventually, get};
use crate::upstream::Upstream;

fn gateway() -> (Upstream, Running) {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream)
        .set("class.pay", "{ match = ['* /pay', 'GET /pay/*'], tier = 'transact' }")
        .start();
    (upstream, gateway)
}

/// Requests of the class `pay` that were served.
fn paid(gateway: &Running) -> u64 {
    let status = gateway.status();
    let class = status["classes"].as_array().unwrap().iter().find(|class| class["name"] == "pay");
    class.unwrap()["outcomes"]["served"].as_u64().unwrap()
}

#[test]
fn a_target_is_forwarded_as_it_came() {
    let (_upstream, gateway) = gateway();
    for target in [
        "/",
        "/?",
        "/a/../b//c/./d",
        "/%2e%2e/%00/%2f%5c",
        "/a;v=1/b?x=1&y=%0d%0a&z='{}|^`",
        "/caf\u{e9}?q=\u{1f600}",
        "//double",
        "/a\\b",
    ] {
        let answer = gateway.get(target);
        assert_eq!(answer.text(), latin(target), "{target}");
    }
}

/// As the bytes look on a wire that is shown as Latin 1.
fn latin(text: &str) -> String {
    text.bytes().map(char::from).collect()
}

#[test]
fn a_fragment_is_not_forwarded() {
    let (_upstream, gateway) = gateway();
    assert_eq!(gateway.get("/a?b#c").text(), "/a?b");
}

#[test]
fn an_absolute_target_is_forwarded_without_its_host() {
    let (_upstream, gateway) = gateway();
    assert_eq!(gateway.get("http://shop.example/a?b").text(), "/a?b");
    assert_eq!(gateway.get("http://shop.example").text(), "/");
    assert_eq!(gateway.get("http://SHOP.example?b").text(), "/?b");
}

#[test]
fn a_question_about_the_whole_server_is_forwarded() {
    let (_upstream, gateway) = gateway();
    let answer = gateway.sends("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").answer().unwrap();
    assert_eq!(answer.text(), "*");
}

#[test]
fn any_method_but_connect_is_forwarded() {
    let (_upstream, gateway) = gateway();
    for method in ["DELETE", "PATCH", "TRACE", "PROPFIND", "get", "M-SEARCH"] {
        let answer = gateway.sends(get("/x").replace("GET", method)).answer().unwrap();
        assert_eq!(answer.text(), "/x", "{method}");
    }
}

#[test]
fn an_odd_spelling_of_a_path_does_not_raise_a_request() {
    let (_upstream, gateway) = gateway();
    let odd =
        ["/p%61y", "//pay", "/./pay", "/x/../pay", "/pay/", "/PAY", "/pay%00", "/pay;x", "pay"];
    let mut asked = 0;
    for target in odd.into_iter().filter(|target| target.starts_with('/') && *target != "/pay/") {
        assert_eq!(gateway.get(target).status(), Some(200), "{target}");
        asked += 1;
    }
    eventually("all are counted", || gateway.outcome("served") == asked);
    assert_eq!(paid(&gateway), 0);
    for target in ["/pay", "/pay?x=1", "http://shop.example/pay", "/pay#x"] {
        assert_eq!(gateway.get(target).status(), Some(200), "{target}");
    }
    eventually("all are counted", || paid(&gateway) == 4);
}
