//! Tests of the metrics about responses, servers, handshakes, certificates, reloads and the
//! process.

use std::time::Duration;

use crate::setup::{Running, Setup, eventually, get};
use crate::tls::{Certified, answer, config, connect, https, last, serving};
use crate::upstream::{Upstream, nobody, ok};
use crate::wire::Wire;

/// An upstream that responds with the status that the target names.
fn any_status() -> Upstream {
    Upstream::app(|request| {
        let status = request.target().trim_start_matches('/').to_owned();
        format!("HTTP/1.1 {status} Said\r\nContent-Length: 0\r\n\r\n").into_bytes()
    })
}

fn responses(gateway: &Running, class: &str, code: &str, source: &str) -> f64 {
    gateway.metric(&format!(
        "bywash_responses_total{{class=\"{class}\",code=\"{code}\",source=\"{source}\"}}"
    ))
}

fn url(upstream: &Upstream) -> String {
    format!("http://{}", upstream.address)
}

/// Returns the number of lines of `/metrics` that contain `part`.
fn lines(gateway: &Running, part: &str) -> usize {
    gateway.metrics().lines().filter(|line| line.contains(part)).count()
}

#[test]
fn answers_are_counted_by_class_of_status_and_by_who_has_given_them() {
    let upstream = any_status();
    let setup = Setup::before(&upstream);
    let gateway =
        setup.set("class.page", "{ match = ['GET /404'], max_body_bytes = '1KiB' }").start();
    for target in ["/200", "/201", "/302", "/404", "/500", "/503", "/599"] {
        gateway.get(target);
    }
    gateway.is_idle_again();
    let upstreams = |code| responses(&gateway, "other", code, "upstream");
    assert_eq!(["1xx", "2xx", "3xx", "4xx", "5xx"].map(upstreams), [0.0, 2.0, 1.0, 0.0, 3.0]);
    assert_eq!(responses(&gateway, "page", "4xx", "upstream"), 1.0);
    for class in ["other", "page", "-"] {
        for code in ["4xx", "5xx"] {
            assert_eq!(responses(&gateway, class, code, "gateway"), 0.0, "{class} {code}");
        }
    }
    // A body that is too large, and two messages that are malformed.
    let large = "GET /404 HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 2000\r\n\r\n";
    for refused in [large, "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/3.0\r\nHost: a\r\n\r\n"] {
        gateway.sends(refused).answer().unwrap();
    }
    gateway.is_idle_again();
    assert_eq!(responses(&gateway, "page", "4xx", "gateway"), 1.0);
    assert_eq!(responses(&gateway, "-", "4xx", "gateway"), 1.0);
    assert_eq!(responses(&gateway, "-", "5xx", "gateway"), 1.0);
}

#[test]
fn an_answer_in_place_of_a_server_is_the_gateways_and_a_client_that_left_got_none() {
    let gateway = Setup::before_address(nobody()).start();
    assert_eq!(gateway.get("/").status(), Some(502));
    assert_eq!(responses(&gateway, "other", "5xx", "gateway"), 1.0);
    assert_eq!(responses(&gateway, "other", "5xx", "upstream"), 0.0);
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let client = gateway.asks("/");
    let _call = calls.next();
    drop(client);
    gateway.waits_for_outcome("orphaned", 1);
    assert!(
        gateway
            .metrics()
            .lines()
            .filter(|l| l.starts_with("bywash_responses_total"))
            .all(|line| line.ends_with(" 0"))
    );
}

#[test]
fn a_server_tells_how_long_it_takes_and_how_often_its_connections_are_used_again() {
    const LATENCY: Duration = Duration::from_millis(30);
    let fast = Upstream::echo();
    let slow = Upstream::script(|mut wire| {
        if wire.request().is_ok() {
            std::thread::sleep(LATENCY);
            let _ = wire.try_send(ok("slow"));
        }
    });
    let gateway = Setup::before_address(nobody()).servers(&[url(&fast), url(&slow)]).start();
    for _ in 0..20 {
        assert_eq!(gateway.get("/").status(), Some(200));
        // The connection can be used again once the request has ended.
        gateway.is_idle_again();
    }
    let requests = |server: &Upstream, connection: &str| {
        let server = url(server);
        let labels = format!("server=\"{server}\",connection=\"{connection}\"");
        gateway.metric(&format!("bywash_server_requests_total{{{labels}}}"))
    };
    assert_eq!((requests(&fast, "new"), requests(&fast, "reused")), (1.0, 9.0));
    assert_eq!((requests(&slow, "new"), requests(&slow, "reused")), (10.0, 0.0));
    let head = |part: &str, server: &Upstream, more: &str| {
        let server = url(server);
        let name = format!("bywash_server_response_head_seconds_{part}");
        gateway.metric(&format!("{name}{{{more}server=\"{server}\"}}"))
    };
    assert_eq!((head("count", &fast, ""), head("count", &slow, "")), (10.0, 10.0));
    assert!(head("sum", &slow, "") >= 10.0 * LATENCY.as_secs_f64());
    assert_eq!(head("bucket", &slow, "le=\"0.025\","), 0.0);
    assert_eq!(head("bucket", &slow, "le=\"+Inf\","), 10.0);
}

#[test]
fn a_server_that_a_reload_keeps_goes_on_counting_and_one_that_it_takes_away_is_told_no_more() {
    let (kept, gone, new) = (Upstream::echo(), Upstream::echo(), Upstream::echo());
    let with = |servers: [&Upstream; 2]| {
        Setup::before_address(nobody()).servers(&servers.map(url)).set("health.slow_start", "'0s'")
    };
    let gateway = with([&kept, &gone]).start();
    for _ in 0..4 {
        gateway.get("/");
    }
    gateway.is_idle_again();
    let count = |server: &Upstream| {
        let name = "bywash_server_response_head_seconds_count";
        gateway.metric(&format!("{name}{{server=\"{}\"}}", url(server)))
    };
    let before = lines(&gateway, "server=");
    assert_eq!((count(&kept), count(&gone)), (2.0, 2.0));
    gateway.reload(&with([&new, &kept])).unwrap();
    assert_eq!((count(&kept), count(&new)), (2.0, 0.0));
    assert_eq!(lines(&gateway, &url(&gone)), 0);
    assert_eq!(lines(&gateway, "server="), before);
}

/// Returns a `ClientHello` of TLS 1.0: no session, one suite, no compression, no extensions.
fn old_hello() -> Vec<u8> {
    let mut hello = vec![0x16, 3, 1, 0, 45, 1, 0, 0, 41, 3, 1];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0, 0x2f, 1, 0]);
    hello
}

fn handshakes(gateway: &Running, result: &str) -> f64 {
    gateway.metric(&format!("bywash_tls_handshakes_total{{result=\"{result}\"}}"))
}

fn all_handshakes(gateway: &Running) -> f64 {
    let text = gateway.metrics();
    let counts = text.lines().filter_map(|line| {
        line.strip_prefix("bywash_tls_handshakes_total{")?.split_once("} ")?.1.parse::<f64>().ok()
    });
    counts.sum()
}

#[test]
fn each_cause_of_a_failed_handshake_is_counted_by_itself() {
    let ours = Certified::new("cause", &["shop.example"]);
    let upstream = Upstream::echo();
    let gateway = serving(&upstream, &[&ours]).start();
    let is_counted = |result: &str, count: f64| {
        eventually(result, || handshakes(&gateway, result) == count);
    };
    let mut tls = connect(https(&gateway), "shop.example", config(&[&ours], &[]));
    assert!(answer(&mut tls, &last("/")).is_ok());
    is_counted("ok", 1.0);
    // Each client leaves as soon as it has sent its alert, so the alert and the FIN arrive
    // together.
    for _ in 0..30 {
        let mut tls = connect(https(&gateway), "shop.example", config(&[], &[]));
        assert!(answer(&mut tls, &last("/")).is_err());
    }
    is_counted("certificate_refused", 30.0);
    let mut tls = connect(https(&gateway), "other.example", config(&[&ours], &[]));
    assert!(answer(&mut tls, &last("/")).is_err());
    is_counted("unknown_name", 1.0);
    let mut tls = connect(https(&gateway), "shop.example", config(&[&ours], &[b"imap"]));
    assert!(answer(&mut tls, &last("/")).is_err());
    is_counted("nothing_in_common", 1.0);
    for (sent, result) in [(get("/").into_bytes(), "not_tls"), (old_hello(), "old_version")] {
        let mut client = Wire::connect(https(&gateway));
        client.send(sent);
        client.rest();
        is_counted(result, 1.0);
    }
    drop(Wire::connect(https(&gateway)));
    is_counted("gone", 1.0);
    assert_eq!(all_handshakes(&gateway), 36.0);
    gateway.waits_for("connections", 0);
}

#[test]
fn a_handshake_and_a_proxy_header_that_do_not_end_have_taken_too_long() {
    let certified = Certified::new("too-long", &["shop.example"]);
    let upstream = Upstream::echo();
    let quick = || serving(&upstream, &[&certified]).set("client_limits.header_timeout", "'100ms'");
    let gateway = quick().start();
    let mut client = Wire::connect(https(&gateway));
    client.send(&old_hello()[..20]);
    assert!(client.is_closed());
    assert_eq!(handshakes(&gateway, "timeout"), 1.0);
    assert_eq!(all_handshakes(&gateway), 1.0);
    let gateway = quick().set("listen.proxy_protocol", "['127.0.0.0/8']").start();
    let mut client = gateway.client();
    client.send("PROXY TCP4 ");
    assert!(client.is_closed());
    assert_eq!(gateway.metric("bywash_connections_not_opened_total{why=\"timeout\"}"), 1.0);
}

/// The client's alert and the end of its connection arrive together, and the gateway reads the
/// alert first.
#[test]
fn a_client_that_fails_and_leaves_in_one_breath_is_counted_by_its_cause() {
    let certified = Certified::new("breath", &["shop.example"]);
    let upstream = Upstream::echo();
    let gateway = serving(&upstream, &[&certified]).start();
    for _ in 0..100 {
        let mut client = Wire::connect(https(&gateway));
        client.send(old_hello());
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        client.rest();
    }
    gateway.waits_for("connections", 0);
    assert_eq!(handshakes(&gateway, "old_version"), 100.0);
    assert_eq!(all_handshakes(&gateway), 100.0);
}

/// A disconnect during the handshake takes effect when the handshake is over.
#[test]
fn a_client_that_leaves_behind_its_handshake_has_left() {
    let certified = Certified::new("half", &["shop.example"]);
    let (upstream, calls) = Upstream::by_hand();
    let gateway = serving(&upstream, &[&certified]).start();
    let mut tls = connect(https(&gateway), "shop.example", config(&[&certified], &[]));
    std::io::Write::write_all(&mut tls, get("/").as_bytes()).unwrap();
    tls.sock.shutdown(std::net::Shutdown::Write).unwrap();
    gateway.waits_for("connections", 0);
    gateway.is_idle_again();
    assert_eq!(handshakes(&gateway, "ok"), 1.0);
    drop(calls);
}

#[test]
fn the_end_of_each_certificate_is_told_and_follows_a_reload() {
    let mut certified = Certified::new("ends", &["shop.example"]);
    let second = Certified::new("ends-second", &["other.example"]);
    let upstream = Upstream::echo();
    let expiry = |gateway: &Running, certified: &Certified| {
        let name = "bywash_certificate_expiry_timestamp_seconds";
        gateway.metric(&format!("{name}{{certificate=\"{}\"}}", certified.chain().display()))
    };
    certified.renew_until(&["shop.example"], 2030);
    let setup = serving(&upstream, &[&certified, &second]);
    let gateway = setup.start();
    assert_eq!(expiry(&gateway, &certified), 1_893_456_000.0);
    assert!(expiry(&gateway, &second) > 1_893_456_000.0);
    certified.renew_until(&["shop.example"], 2031);
    assert_eq!(expiry(&gateway, &certified), 1_893_456_000.0, "it is not in force yet");
    gateway.reload(&setup).unwrap();
    assert_eq!(expiry(&gateway, &certified), 1_924_992_000.0);
    gateway.reload(&serving(&upstream, &[&certified])).unwrap();
    assert_eq!(lines(&gateway, "certificate="), 1);
}

/// The first certificate of a chain must match its key, so pairs that share a chain have the same
/// certificate.
#[test]
fn pairs_that_share_a_chain_are_one_certificate_with_one_end() {
    let mut certified = Certified::new("shared-chain", &["shop.example"]);
    certified.renew_until(&["shop.example"], 2030);
    let copy = certified.key().with_extension("copy");
    std::fs::copy(certified.key(), &copy).unwrap();
    let (chain, key) = (certified.chain().display(), certified.key().display());
    let upstream = Upstream::echo();
    let gateway = serving(&upstream, &[])
        .set("tls.certificates", &format!("['{chain}', '{chain}']"))
        .set("tls.keys", &format!("['{key}', '{}']", copy.display()))
        .start();
    let expiry = format!("bywash_certificate_expiry_timestamp_seconds{{certificate=\"{chain}\"}}");
    assert_eq!(gateway.metric(&expiry), 1_893_456_000.0);
    assert_eq!(lines(&gateway, "certificate="), 1);
}

#[test]
fn the_certificate_that_servers_are_shown_is_among_them() {
    let mut ours = Certified::new("to-servers", &["gateway.example"]);
    ours.renew_until(&["gateway.example"], 2030);
    let path = |path: &std::path::Path| format!("'{}'", path.display());
    let gateway = Setup::before_address(nobody())
        .set("upstream.server", "'https://127.0.0.1:1'")
        .set("upstream.tls_ca", &path(ours.chain()))
        .set("upstream.tls_certificate", &path(ours.chain()))
        .set("upstream.tls_key", &path(ours.key()))
        .start();
    let labels = format!("certificate=\"{}\"", ours.chain().display());
    let expiry = format!("bywash_certificate_expiry_timestamp_seconds{{{labels}}}");
    assert_eq!(gateway.metric(&expiry), 1_893_456_000.0);
}

#[test]
fn reloads_are_counted_by_result_and_the_hash_is_of_the_file_in_force() {
    let upstream = Upstream::echo();
    let with = |limit| Setup::before(&upstream).limit(limit);
    let gateway = with(3).start();
    let hash_in_force = |setup: &Setup| {
        let hash = setup.config().hash;
        assert_eq!(gateway.metric(&format!("bywash_config_info{{hash=\"{hash}\"}}")), 1.0);
        assert_eq!(lines(&gateway, "bywash_config_info{"), 1);
        assert_eq!(gateway.status()["config_hash"], hash.as_str());
    };
    let reloads = |result: &str| {
        gateway.metric(&format!("bywash_config_reloads_total{{result=\"{result}\"}}"))
    };
    let last = || gateway.metric("bywash_config_last_reload_successful");
    let since = || gateway.metric("bywash_config_last_reload_success_timestamp_seconds");
    hash_in_force(&with(3));
    assert_eq!((reloads("success"), reloads("failure"), last()), (0.0, 0.0, 1.0));
    let started = since();
    let failing = with(4).set("log.access", "'/there/is/no/such/folder/access.log'");
    assert!(gateway.reload(&failing).is_err());
    hash_in_force(&with(3));
    assert_eq!((reloads("success"), reloads("failure"), last()), (0.0, 1.0, 0.0));
    assert_eq!(since(), started);
    let refused = || gateway.status()["reload_refused"].clone();
    assert!(refused().as_str().unwrap().contains("access.log"), "{}", refused());
    gateway.gateway().reload_failed("the file is gone");
    assert_eq!((reloads("success"), reloads("failure"), last()), (0.0, 2.0, 0.0));
    assert_eq!(refused(), "the file is gone");
    gateway.reload(&with(5)).unwrap();
    hash_in_force(&with(5));
    assert_eq!((reloads("success"), reloads("failure"), last()), (1.0, 2.0, 1.0));
    assert!(refused().is_null(), "{}", refused());
    assert!(since() >= started);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!((now.as_secs_f64() - since()).abs() < 3600.0);
}

#[test]
fn the_process_tells_what_it_is_and_what_it_uses() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    let text = gateway.metrics();
    let build = text.lines().find(|line| line.starts_with("bywash_build_info{")).unwrap();
    let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(build.contains(&version) && build.ends_with(" 1"), "{build}");
    for used in [
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "process_threads",
        "process_start_time_seconds",
    ] {
        assert!(gateway.metric(used) > 0.0, "{used}");
    }
    let open = || gateway.metric("process_open_fds");
    let before = open();
    assert!(gateway.metric("process_max_fds") >= before);
    let clients: Vec<_> = (0..200).map(|_| gateway.client()).collect();
    gateway.waits_for("connections", 200);
    // Both ends of each connection are in this process. Other tests open and close files meanwhile.
    assert!(open() >= before + 200.0, "{before} before, {} now", open());
    drop(clients);
}

#[test]
fn one_hold_of_the_engines_lock_in_64_is_timed() {
    let upstream = Upstream::echo();
    let gateway = Setup::before(&upstream).start();
    for _ in 0..64 {
        gateway.get("/");
    }
    assert!(gateway.metric("bywash_engine_lock_held_seconds_count") >= 2.0);
    assert!(gateway.metric("bywash_engine_lock_held_seconds_sum") > 0.0);
    assert!(gateway.metric("bywash_engine_lock_wait_seconds_count") >= 0.0);
}

/// The number of lines of `/metrics` must depend on the configuration alone.
#[test]
fn nothing_that_a_client_sends_becomes_a_label() {
    let certified = Certified::new("labels", &["shop.example"]);
    let upstream = any_status();
    let gateway = serving(&upstream, &[&certified]).start();
    let visit = |number: usize| {
        for status in [200, 302, 404, 500] {
            let target = format!("/{status}?{number}");
            let fields = format!("Host: h{number}.example\r\nCookie: sid={number}\r\n");
            let request = format!("GET {target} HTTP/1.1\r\n{fields}\r\n");
            gateway.sends(request).answer().unwrap();
        }
        gateway.sends("GET / HTTP/1.1\r\n\r\n").answer().unwrap();
        let name = format!("h{number}.example");
        let mut tls = connect(https(&gateway), &name, config(&[&certified], &[]));
        assert!(answer(&mut tls, &last("/")).is_err());
        eventually("it is counted", || handshakes(&gateway, "unknown_name") >= (number + 1) as f64);
    };
    visit(0);
    let before = gateway.metrics().lines().count();
    (1..10).for_each(visit);
    assert_eq!(gateway.metrics().lines().count(), before);
}
