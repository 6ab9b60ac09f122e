//! Tests of files that the server sends without computing anything. Requests for them do not wait
//! for a slot.

use std::time::Duration;

use crate::setup::{Running, Setup, eventually, get};
use crate::upstream::{Call, Calls, Upstream, with_fields};
use crate::wire::{Message, Wire};

const CSS: &str = "Content-Type: text/css\r\nETag: \"a\"\r\n";

/// Starts a site that responds at once to targets that contain `.css`, with these fields. It never
/// responds to other requests.
fn site(fields: &'static str, set: impl FnOnce(Setup) -> Setup) -> (Upstream, Running) {
    site_of(move |_| with_fields(fields, "body"), set)
}

/// Starts a site that responds to targets that contain `.css` with the bytes that `css` returns. It
/// never responds to other requests.
fn site_of(
    css: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static,
    set: impl FnOnce(Setup) -> Setup,
) -> (Upstream, Running) {
    let upstream = Upstream::app(move |request: &Message| {
        if request.target().contains(".css") {
            return css(request);
        }
        std::thread::sleep(Duration::from_secs(3600));
        Vec::new()
    });
    let gateway = set(Setup::before(&upstream).limit(1)).start();
    (upstream, gateway)
}

/// Returns a response without a length, like that of a server that compresses it while sending.
fn chunked(fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n\
         {length:x}\r\n{body}\r\n0\r\n\r\n"
    )
    .into_bytes()
}

/// Sends this request until the gateway knows the file, and answers the request without a slot.
fn becomes_known(gateway: &Running, request: &str) {
    let skipped = || gateway.metric("bywash_files_total");
    let before = skipped();
    eventually("it is known as a file", || {
        assert_eq!(gateway.sends(request).answer().unwrap().status(), Some(200));
        skipped() > before
    });
}

/// Takes the only slot with a request that is never answered.
fn takes_slot(gateway: &Running) -> Wire {
    let page = gateway.asks("/page");
    gateway.waits_for("running", 1);
    page
}

/// Returns whether a request for `target` is answered while the only slot is taken.
fn passes(gateway: &Running, target: &str) -> bool {
    let _page = takes_slot(gateway);
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
fn a_file_without_a_length_takes_no_slot_once_its_end_is_known() {
    let (_upstream, gateway) = site_of(|_| chunked(CSS, "body"), |setup| setup);
    learns(&gateway, "/a.css");
    assert!(passes(&gateway, "/a.css"));
}

#[test]
fn clients_with_and_without_compression_do_not_make_each_other_wait() {
    let (_upstream, gateway) = site_of(
        |request| match request.field("accept-encoding") {
            Some(_) => chunked(CSS, "body"),
            None => with_fields(CSS, "body"),
        },
        |setup| setup,
    );
    let plain = get("/a.css");
    let compressed = plain.replace("\r\n\r\n", "\r\nAccept-Encoding: gzip\r\n\r\n");
    for request in [&plain, &compressed] {
        becomes_known(&gateway, request);
    }
    let known = gateway.metric("bywash_files_total");
    let _page = takes_slot(&gateway);
    for request in [&plain, &compressed, &plain, &compressed] {
        assert_eq!(gateway.sends(request).answer().unwrap().text(), "body");
    }
    assert_eq!(gateway.metric("bywash_files_total"), known + 4.0);
}

#[test]
fn a_file_of_half_a_mebibyte_takes_no_slot_and_a_larger_one_waits() {
    for form in [with_fields, chunked] {
        for (size, is_file) in [(512 * 1024, true), (512 * 1024 + 1, false)] {
            let body = "x".repeat(size);
            let (_upstream, gateway) = site_of(move |_| form(CSS, &body), |setup| setup);
            if is_file {
                becomes_known(&gateway, &get("/a.css"));
                continue;
            }
            for _ in 0..5 {
                assert_eq!(gateway.get("/a.css").body.len(), size);
            }
            assert_eq!(gateway.metric("bywash_files_total"), 0.0);
        }
    }
}

/// The gateway reads a file at once, so a client that does not read it neither occupies the server
/// nor keeps others from their files.
#[test]
fn a_client_that_reads_slowly_does_not_hold_the_server_or_the_permit() {
    // The size in bytes, which is more than the buffers of two sockets on loopback hold.
    const SIZE: usize = 500_000;
    let (_upstream, gateway) = site_of(|_| with_fields(CSS, &"x".repeat(SIZE)), |setup| setup);
    becomes_known(&gateway, &get("/a.css"));
    let _page = takes_slot(&gateway);
    let served = gateway.outcome("served");
    let slow: Vec<Wire> = (1..=3)
        .map(|number| {
            let client = gateway.asks("/a.css");
            gateway.waits_for_outcome("served", served + number);
            client
        })
        .collect();
    assert_eq!(gateway.get("/a.css").body.len(), SIZE);
    for mut client in slow {
        assert_eq!(client.answer().unwrap().body.len(), SIZE);
    }
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
