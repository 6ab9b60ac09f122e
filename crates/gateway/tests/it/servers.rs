//! Tests of several servers behind one queue.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use socket2::Socket;

use crate::setup::{Running, Setup, eventually, get, post};
use crate::upstream::{Upstream, deaf, nobody, ok};
use crate::wire::Wire;

fn url(upstream: &Upstream) -> String {
    format!("http://{}", upstream.address)
}

fn before(servers: &[String]) -> Setup {
    Setup::before_address(nobody()).servers(servers)
}

/// Returns the status of one server.
fn server(gateway: &Running, number: usize) -> Value {
    gateway.status()["servers"][number].clone()
}

fn state(gateway: &Running, number: usize) -> String {
    server(gateway, number)["state"].as_str().unwrap().to_owned()
}

/// Starts a server that responds with this name.
fn named(name: &'static str) -> Upstream {
    Upstream::app(move |_| ok(name))
}

/// Starts a server that reads each request and closes without a response.
fn mute() -> Upstream {
    Upstream::script(|mut wire| {
        let _ = wire.request();
    })
}

#[test]
fn a_request_goes_to_the_server_that_has_least_to_do() {
    let ((a, a_calls), (b, b_calls)) = (Upstream::by_hand(), Upstream::by_hand());
    let gateway = before(&[url(&a), url(&b)]).start();
    let _clients: Vec<_> = (0..6).map(|_| gateway.asks("/")).collect();
    let at_a: Vec<_> = (0..3).map(|_| a_calls.next()).collect();
    let _at_b: Vec<_> = (0..3).map(|_| b_calls.next()).collect();
    assert_eq!(
        (&server(&gateway, 0)["running"], &server(&gateway, 1)["running"]),
        (&3.into(), &3.into())
    );
    // A server that becomes free gets all requests until both servers are equally loaded again.
    for call in at_a {
        call.answer("");
    }
    eventually("its requests have ended", || server(&gateway, 0)["running"] == 0);
    let _more: Vec<_> = (0..3).map(|_| gateway.asks("/")).collect();
    let _at_a: Vec<_> = (0..3).map(|_| a_calls.next()).collect();
    assert!(b_calls.is_empty());
}

#[test]
fn the_limit_is_that_of_all_together() {
    let ((a, a_calls), (b, b_calls)) = (Upstream::by_hand(), Upstream::by_hand());
    let gateway = before(&[url(&a), url(&b)]).limit(2).start();
    let _clients: Vec<_> = (0..5).map(|_| gateway.asks("/")).collect();
    let _running = (a_calls.next(), b_calls.next());
    gateway.waits_for("waiting", 3);
    assert!(a_calls.is_empty() && b_calls.is_empty());
}

#[test]
fn one_that_refuses_connections_costs_nobody_anything() {
    let good = named("good");
    for servers in
        [[url(&good), format!("http://{}", nobody())], [format!("http://{}", nobody()), url(&good)]]
    {
        let refuses = usize::from(servers[0] == url(&good));
        let gateway = before(&servers).start();
        for number in 0..20 {
            // Nothing was sent to the failed server, so even a POST may go to another server.
            let request = if number % 2 == 0 { get("/") } else { post("/", "once") };
            let answer = gateway.sends(request).answer().unwrap();
            assert_eq!((answer.status(), answer.text().as_str()), (Some(200), "good"));
        }
        gateway.is_idle_again();
        assert_eq!(gateway.outcome("served"), 20);
        let refusing = server(&gateway, refuses);
        // The refusing server was ejected after some failures.
        assert_eq!(
            (&refusing["connect_failures"], &refusing["state"]),
            (&5.into(), &"ejected".into())
        );
        assert_eq!(server(&gateway, 1 - refuses)["state"], "up");
    }
}

#[test]
fn a_body_goes_on_whole_to_the_next_server() {
    let good = Upstream::app(|request| ok(&request.text()));
    let gateway = before(&[format!("http://{}", nobody()), url(&good)]).start();
    let body = "0123456789".repeat(20_000);
    let mut client = gateway.client();
    for _ in 0..3 {
        client.send(post("/", &body));
        assert!(client.answer().unwrap().text() == body);
    }
}

#[test]
fn where_all_refuse_the_client_is_told() {
    let gateway = before(&[(); 3].map(|()| format!("http://{}", nobody()))).limit(1).start();
    for _ in 0..20 {
        let answer = gateway.get("/");
        assert_eq!(answer.status(), Some(502));
        let status = answer.field("proxy-status").unwrap();
        assert!(status.starts_with("bywash; error=connection_refused"), "{status}");
    }
    gateway.is_idle_again();
    assert_eq!(gateway.outcome("upstream_error"), 20);
}

#[test]
fn a_request_that_may_have_been_sent_is_not_sent_to_another() {
    for request in [post("/order", "one"), get("/order")] {
        let (bad, good) = (mute(), named("good"));
        let gateway = before(&[url(&bad), url(&good)]).start();
        let answer = gateway.sends(&request).answer().unwrap();
        assert_eq!(answer.status(), Some(502));
        assert_eq!(bad.received().matches("/order").count(), 1);
        assert_eq!(good.received(), "");
    }
}

#[test]
fn a_get_on_a_connection_that_was_just_closed_is_sent_once_more_and_a_post_is_not() {
    for (request, status) in [(get("/second"), 200), (post("/second", "x"), 502)] {
        // The server responds to one request, reads another one and closes.
        let closing = || {
            Upstream::script(|mut wire| {
                if let Ok(request) = wire.request() {
                    wire.send(ok(request.target()));
                }
                let _ = wire.request();
            })
        };
        let (a, b) = (closing(), closing());
        let gateway = before(&[url(&a), url(&b)]).start();
        for _ in 0..2 {
            assert_eq!(gateway.get("/first").status(), Some(200));
        }
        assert_eq!(gateway.sends(&request).answer().unwrap().status(), Some(status));
        let sent =
            a.received().matches("/second").count() + b.received().matches("/second").count();
        assert_eq!(sent, if status == 200 { 2 } else { 1 });
    }
}

#[test]
fn one_that_fails_again_and_again_is_left_alone() {
    let (bad, good) = (mute(), named("good"));
    let gateway = before(&[url(&bad), url(&good)])
        .set("health.eject_after", "2")
        .set("health.eject_for", "'1h'")
        .start();
    let mut failed = 0;
    for _ in 0..20 {
        failed += u32::from(gateway.get("/").status() != Some(200));
    }
    assert_eq!(failed, 2);
    assert_eq!((state(&gateway, 0).as_str(), state(&gateway, 1).as_str()), ("ejected", "up"));
    assert_eq!(server(&gateway, 0)["response_failures"], 2);
}

#[test]
fn one_that_was_left_alone_gets_a_request_again_and_is_back_with_its_success() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let recovering = Upstream::script(move |mut wire| {
        while let Ok(_request) = wire.request() {
            if !well.load(Ordering::SeqCst) {
                return;
            }
            let _ = wire.try_send(ok("recovered"));
        }
    });
    let good = named("good");
    let gateway = before(&[url(&recovering), url(&good)])
        .set("health.eject_after", "1")
        .set("health.eject_for", "'100ms'")
        .set("health.slow_start", "'0s'")
        .start();
    eventually("it is ejected", || {
        gateway.get("/");
        state(&gateway, 0) == "ejected"
    });
    is_well.store(true, Ordering::SeqCst);
    eventually("it is back", || gateway.get("/").text() == "recovered");
    eventually("it counts as well again", || state(&gateway, 0) == "up");
    let others: Vec<_> = (0..4).map(|_| gateway.get("/").text()).collect();
    assert!(others.iter().any(|text| text == "recovered"), "{others:?}");
    assert!(others.iter().any(|text| text == "good"), "{others:?}");
}

#[test]
fn a_single_server_is_always_tried() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let only = Upstream::script(move |mut wire| {
        if wire.request().is_ok() && well.load(Ordering::SeqCst) {
            let _ = wire.try_send(ok("well"));
        }
    });
    let gateway = before(&[url(&only)])
        .set("health.eject_after", "1")
        .set("health.eject_for", "'1h'")
        .start();
    for _ in 0..5 {
        assert_eq!(gateway.get("/").status(), Some(502));
    }
    is_well.store(true, Ordering::SeqCst);
    assert_eq!(gateway.get("/").text(), "well");
}

/// A server whose health check reports the state of a switch, and which responds to everything else
/// with its name.
fn asked(name: &'static str) -> (Upstream, Arc<AtomicBool>) {
    let is_well = Arc::new(AtomicBool::new(true));
    let well = Arc::clone(&is_well);
    let upstream = Upstream::app(move |request| match request.target() {
        "/health?x=1" if !well.load(Ordering::SeqCst) => {
            b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_vec()
        }
        "/health?x=1" => ok(""),
        _ => ok(name),
    });
    (upstream, is_well)
}

#[test]
fn one_that_says_it_is_not_well_gets_nothing_until_it_is() {
    let ((a, a_is_well), (b, b_is_well)) = (asked("a"), asked("b"));
    let gateway = before(&[url(&a), url(&b)])
        .set("health.path", "'/health?x=1'")
        .set("health.interval", "'100ms'")
        .set("health.fall", "1")
        .set("health.rise", "1")
        .set("health.slow_start", "'0s'")
        .start();
    a_is_well.store(false, Ordering::SeqCst);
    eventually("it is down", || state(&gateway, 0) == "down");
    for _ in 0..10 {
        assert_eq!(gateway.get("/").text(), "b");
    }
    b_is_well.store(false, Ordering::SeqCst);
    eventually("both are down", || state(&gateway, 1) == "down");
    let answer = gateway.get("/");
    assert_eq!(answer.status(), Some(503));
    assert!(
        answer.field("proxy-status").unwrap().starts_with("bywash; error=destination_unavailable")
    );
    a_is_well.store(true, Ordering::SeqCst);
    eventually("it is back", || gateway.get("/").text() == "a");
    // Probes do not count as requests.
    assert!(a.received().contains("User-Agent: bywash-health\r\n"));
    assert_eq!(gateway.count("running"), 0);
}

/// An application on a Unix socket that responds with the head of the request.
fn on_a_unix_socket(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("bywash-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let (mut head, mut some) = (Vec::new(), [0; 4096]);
                while let Ok(count @ 1..) = stream.read(&mut some) {
                    head.extend_from_slice(&some[..count]);
                    if head.ends_with(b"\r\n\r\n") {
                        let text = String::from_utf8(std::mem::take(&mut head)).unwrap();
                        let _ = stream.write_all(&ok(&text));
                    }
                }
            });
        }
    });
    path
}

#[test]
fn a_server_may_listen_on_a_socket_in_the_file_system() {
    let path = on_a_unix_socket("server");
    let gateway = before(&[format!("unix:{}", path.display())]).start();
    let mut client = gateway.client();
    for target in ["/a", "/b"] {
        client.send(get(target));
        let seen = client.answer().unwrap().text();
        assert!(seen.starts_with(&format!("GET {target} HTTP/1.1\r\n")), "{seen}");
        assert!(seen.contains("\r\nHost: shop.example\r\n"), "{seen}");
    }
    // An HTTP/1.0 client may omit the host.
    let seen = gateway.sends("GET / HTTP/1.0\r\n\r\n").answer().unwrap().text();
    assert!(seen.contains("\r\nHost: localhost\r\n"), "{seen}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_socket_in_the_file_system_that_is_not_there_is_one_that_refuses() {
    let good = named("good");
    let nowhere = std::env::temp_dir().join("bywash-there-is-no-such-socket");
    let gateway = before(&[format!("unix:{}", nowhere.display()), url(&good)]).start();
    for _ in 0..4 {
        assert_eq!(gateway.get("/").text(), "good");
    }
}

#[test]
fn the_metrics_say_how_each_server_stands_and_forget_those_that_are_gone() {
    let upstream = Upstream::echo();
    let servers = [url(&upstream), format!("http://{}", nobody())];
    let gateway = before(&servers).start();
    gateway.get("/");
    gateway.get("/");
    gateway.is_idle_again();
    let sample = |metric: &str, server: usize, label: &str| {
        gateway.metric(&format!("bywash_server_{metric}{{server=\"{}\"{label}}}", servers[server]))
    };
    assert_eq!(sample("running", 0, ""), 0.0);
    assert_eq!(sample("state", 0, ",state=\"up\""), 1.0);
    assert_eq!(sample("state", 0, ",state=\"down\""), 0.0);
    assert_eq!(sample("failures_total", 0, ",kind=\"connect\""), 0.0);
    assert!(sample("failures_total", 1, ",kind=\"connect\"") >= 1.0);
    gateway.reload(&before(&servers[..1])).unwrap();
    assert!(!gateway.metrics().contains(&servers[1]), "{}", gateway.metrics());
    assert_eq!(sample("running", 0, ""), 0.0);
}

#[test]
fn the_log_says_which_server_it_was() {
    let path = crate::log::path("server");
    let good = named("good");
    let gateway = before(&[format!("http://{}", nobody()), url(&good)])
        .set("log.access", &format!("'{}'", path.display()))
        .start();
    gateway.get("/");
    assert_eq!(crate::log::lines(&path, 1)[0]["server"], 1);
}

/// Starts a gateway before two servers: one that silently drops connection attempts, and a good
/// one. The good server does not respond until some clients wait for a connection to the other,
/// because the less loaded server gets the next client.
fn before_one_that_swallows() -> (Running, Vec<Wire>, (Upstream, Vec<Socket>)) {
    let (swallows, kept) = deaf();
    let all_have_come = Arc::new(OnceLock::new());
    let good = {
        let all_have_come = Arc::clone(&all_have_come);
        Upstream::app(move |_| {
            all_have_come.wait();
            ok("good")
        })
    };
    let gateway = before(&[format!("http://{swallows}"), url(&good)])
        .set("upstream.connect_timeout", "'30s'")
        .start();
    let clients = (0..20).map(|_| gateway.asks("/")).collect();
    eventually("some are connecting", || server(&gateway, 0)["running"].as_u64() >= Some(5));
    all_have_come.set(()).unwrap();
    (gateway, clients, (good, kept))
}

#[test]
fn one_that_swallows_connections_is_found_though_every_client_leaves_early() {
    let (gateway, clients, _servers) = before_one_that_swallows();
    // The sleep shows that these clients wait for less than `connect_timeout`.
    std::thread::sleep(Duration::from_millis(1_200));
    drop(clients);
    eventually("it is left alone", || state(&gateway, 0) == "ejected");
    for _ in 0..4 {
        assert_eq!(gateway.get("/").text(), "good");
    }
}

#[test]
fn clients_that_leave_at_once_do_not_make_a_server_look_bad() {
    let (gateway, clients, _servers) = before_one_that_swallows();
    drop(clients);
    gateway.is_idle_again();
    assert_eq!(server(&gateway, 0)["connect_failures"], 0);
}

#[test]
fn one_that_hints_before_it_says_it_is_well_is_well() {
    let hints = Upstream::app(|_| {
        let early = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n".repeat(2);
        [early.as_bytes(), &ok("")].concat()
    });
    let gateway = before(&[url(&hints)])
        .set("health.path", "'/health'")
        .set("health.interval", "'100ms'")
        .set("health.fall", "1")
        .start();
    eventually("it was asked", || hints.received().matches("GET /health").count() >= 3);
    assert_eq!(state(&gateway, 0), "up");
}
