//! Files that the server sends without computing anything. Requests for them do not wait for a
//! slot.

use std::time::Duration;

use crate::setup::{Running, Setup, eventually};
use crate::upstream::{Call, Calls, Upstream, with_fields};
use crate::wire::{Message, Wire};

const CSS: &str = "Content-Type: text/css\r\nETag: \"a\"\r\n";

/// A site that responds at once to targets that contain `.css`, with these fields. All other
/// requests take forever.
fn site(fields: &'static str, set: impl FnOnce(Setup) -> Setup) -> (Upstream, Running) {
    let upstream = Upstream::app(move |request: &Message| {
        if request.target().contains(".css") {
            return with_fields(fields, "body");
        }
        std::thread::sleep(Duration::from_secs(3600));
        Vec::new()
    });
    let gateway = set(Setup::before(&upstream).limit(1)).start();
    (upstream, gateway)
}

/// Returns whether a request for `target` is answered while the only slot is taken.
fn passes(gateway: &Running, target: &str) -> bool {
    let _page = gateway.asks("/page");
    gateway.waits_for("running", 1);
    let mut client = gateway.asks(target);
    let mut passed = false;
    eventually("it waits or has passed", || {
        passed = gateway.metric("bywash_files_total") > 0.0;
        passed || gateway.count("waiting") == 1
    });
    if passed {
        assert_eq!(client.answer().unwrap().text(), "body");
    }
    passed
}

fn learns(gateway: &Running, target: &str) {
    for _ in 0..2 {
        assert_eq!(gateway.get(target).text(), "body");
    }
}

#[test]
fn a_file_that_is_known_takes_no_slot() {
    let (_upstream, gateway) = site(CSS, |setup| setup);
    learns(&gateway, "/a.css?v=1");
    assert!(passes(&gateway, "/a.css?v=1"));
}

#[test]
fn an_ending_or_a_known_path_with_another_query_is_not_enough() {
    for target in ["/b.css", "/a.css?v=2", "/a.css", "//a.css?v=1"] {
        let (_upstream, gateway) = site(CSS, |setup| setup);
        learns(&gateway, "/a.css?v=1");
        assert!(!passes(&gateway, target), "{target}");
    }
}

#[test]
fn an_answer_that_may_be_computed_makes_no_file() {
    for fields in ["Content-Type: text/html\r\nETag: \"a\"\r\n", "Content-Type: text/css\r\n", ""] {
        let (_upstream, gateway) = site(fields, |setup| setup);
        learns(&gateway, "/a.css");
        assert!(!passes(&gateway, "/a.css"), "{fields}");
    }
}

#[test]
fn a_class_of_the_file_and_the_key_have_the_last_word() {
    let class = |setup: Setup| setup.set("class.styles", "{ match = ['GET /*.css'] }");
    let key = |setup: Setup| setup.set("queue.skip_files", "false");
    for (_upstream, gateway) in [site(CSS, class), site(CSS, key)] {
        learns(&gateway, "/a.css");
        assert!(!passes(&gateway, "/a.css"));
    }
}

#[test]
fn a_parameter_more_takes_no_request_out_of_a_class() {
    let class =
        |setup: Setup| setup.set("class.styles", "{ match = ['GET /a.css?size'], utility = 9 }");
    let (_upstream, gateway) = site(CSS, class);
    learns(&gateway, "/a.css?size=1&x=1");
    assert!(!passes(&gateway, "/a.css?size=1&x=1"));
}

/// Makes `/a.css` known, and then takes the only slot with a page.
fn page_beside_a_known_file(gateway: &Running, calls: &Calls) -> (Wire, Call) {
    for _ in 0..2 {
        let mut client = gateway.asks("/a.css");
        calls.next().send(with_fields(CSS, ""));
        client.answer().unwrap();
    }
    (gateway.asks("/page"), calls.next())
}

#[test]
fn as_many_run_at_once_as_there_are_slots_and_others_wait() {
    let (upstream, calls): (Upstream, Calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).limit(1).start();
    let (_client, page) = page_beside_a_known_file(&gateway, &calls);
    let mut first = gateway.asks("/a.css");
    let file = calls.next();
    let mut second = gateway.asks("/a.css");
    gateway.waits_for("waiting", 1);
    assert!(calls.is_empty());
    file.answer("one");
    assert_eq!(first.answer().unwrap().text(), "one");
    assert_eq!(gateway.count("running"), 1);
    page.answer("");
    calls.next().answer("two");
    assert_eq!(second.answer().unwrap().text(), "two");
    assert_eq!(gateway.metric("bywash_files_total"), 1.0);
    gateway.is_idle_again();
}

/// The permit of a file is held like a slot while the server works for a client that has left.
#[test]
fn a_client_that_leaves_frees_no_place_for_another_while_the_server_works_on() {
    let (upstream, calls): (Upstream, Calls) = Upstream::by_hand_working_on();
    let gateway = Setup::before(&upstream).limit(1).start();
    let (_client, page) = page_beside_a_known_file(&gateway, &calls);
    let client = gateway.asks("/a.css");
    let file = calls.next();
    drop(client);
    gateway.waits_for("departed", 1);
    let mut next = gateway.asks("/a.css");
    gateway.waits_for("waiting", 1);
    assert!(calls.is_empty());
    file.close();
    page.answer("");
    calls.next().answer("next");
    assert_eq!(next.answer().unwrap().text(), "next");
    gateway.is_idle_again();
}
