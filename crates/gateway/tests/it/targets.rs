//! Tests of request targets: how they are classified and forwarded.

use crate::setup::{Running, Setup, eventually, get};
use crate::upstream::Upstream;

fn gateway() -> (Upstream, Running) {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream)
        .set("class.pay", "{ match = ['* /pay', 'GET /pay/**'], tier = 'transaction' }")
        .start();
    (upstream, gateway)
}

/// Returns the number of served requests of the class `pay`.
fn paid(gateway: &Running) -> u64 {
    let status = gateway.status();
    let class = status["classes"].as_array().unwrap().iter().find(|class| class["name"] == "pay");
    class.unwrap()["outcomes"]["served"].as_u64().unwrap()
}

#[test]
fn a_target_in_its_plain_form_is_forwarded_as_it_came() {
    let (_upstream, gateway) = gateway();
    for target in [
        "/",
        "/?",
        "/a//b/c",
        "/a/b/",
        "/a;v=1/b?x=1&y=%0d%0a&z='{}|^`",
        "/%2F%5C/caf%C3%A9",
        "/a?b=/../c/./d",
        "//double",
    ] {
        assert_eq!(gateway.get(target).text(), target);
    }
}

#[test]
fn an_odd_spelling_of_a_path_is_forwarded_in_its_plain_form() {
    let (_upstream, gateway) = gateway();
    for (sent, forwarded) in [
        ("/a/../b//c/./d", "/b//c/d"),
        ("/a/b/..", "/a/"),
        ("/a/.", "/a/"),
        ("/%41%2d%7E", "/A-~"),
        ("/a/%2e%2e/x", "/x"),
        ("/{a}\"", "/%7Ba%7D%22"),
        ("/a/%2E/b", "/a/b"),
        ("/%2f%5c", "/%2F%5C"),
        ("/x?%41=%2e", "/x?%41=%2e"),
    ] {
        assert_eq!(gateway.get(sent).text(), forwarded, "{sent}");
    }
}

#[test]
fn what_two_readers_could_read_in_two_ways_is_refused() {
    let (upstream, gateway) = gateway();
    for target in [
        "/a?b#c",
        "/pay#x",
        "/a%00",
        "/a?b=%00",
        "/a\\b",
        "/%",
        "/%4",
        "/%zz",
        "/../x",
        "/%2e%2e/x",
        "/a/../../x",
        "/..;/admin",
        "/a/%2e%2e%2f/b",
        "/caf\u{e9}",
        "/?q=\u{1f600}",
    ] {
        assert_eq!(gateway.get(target).status(), Some(400), "{target}");
    }
    assert_eq!(upstream.accepted(), 0);
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
fn what_is_classified_is_what_is_forwarded() {
    let (_upstream, gateway) = gateway();
    let mut paid_for = 0;
    for target in ["/pay", "/pay?x=1", "http://shop.example/pay", "/p%61y", "/./pay", "/x/../pay"] {
        let forwarded = gateway.get(target).text();
        assert!(forwarded.starts_with("/pay"), "{target} became {forwarded}");
        paid_for += 1;
    }
    eventually("all are counted", || paid(&gateway) == paid_for);
    let mut others = 0;
    for target in ["//pay", "/PAY", "/pay;x", "/pay%2F", "/pay%3Fx", "/x/pay"] {
        assert_eq!(gateway.get(target).text(), target);
        others += 1;
    }
    eventually("all are counted", || gateway.outcome("served") == paid_for + others);
    assert_eq!(paid(&gateway), paid_for);
}

#[test]
fn a_parameter_a_host_and_a_field_tell_the_class() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream)
        .set(
            "class.pay",
            "{ match = ['/index.php?route=checkout/*&...'], hosts = ['shop.test'], \
             tier = 'transaction' }",
        )
        .set("class.crawl", "{ match = ['/**'], headers = ['x-kind: crawler'] }")
        .start();
    let ask = |target: &str, host: &str, field: &str| {
        let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{field}\r\n");
        let answer = gateway.sends(text).answer().expect("a whole answer");
        assert_eq!(answer.status(), Some(200), "{target}");
    };
    ask("/index.php?lang=en&%72oute=checkout%2Fpay", "shop.test:80", "");
    eventually("it is a checkout", || paid(&gateway) == 1);
    // The first four are no payments: another host, another route, two routes, a crawler.
    ask("/index.php?route=checkout/pay", "other.test", "");
    ask("/index.php?route=product/1", "shop.test", "");
    ask("/index.php?route=checkout/pay&route=product/1", "shop.test", "");
    ask("/index.php?route=checkout/pay", "shop.test", "X-Kind: crawler\r\n");
    ask("/index.php?route=checkout/cart", "shop.test", "X-Kind: none\r\n");
    eventually("the last one is", || paid(&gateway) == 2);
}
