//! Tests of changes of the configuration while the gateway runs.

use std::fs;

use crate::log;
use crate::setup::{Running, Setup, eventually, get};
use crate::upstream::{Upstream, nobody, ok};

/// Returns the number of served requests of this class, as in the status. Returns `None` if there
/// is no such class.
fn served(gateway: &Running, class: &str) -> Option<u64> {
    let status = gateway.status();
    let classes = status["classes"].as_array().unwrap();
    let class = classes.iter().find(|found| found["name"] == class)?;
    class["outcomes"]["served"].as_u64()
}

fn text(error: Result<(), bywash_gateway::GatewayError>) -> String {
    error.expect_err("it cannot be put in force").to_string()
}

#[test]
fn more_slots_let_those_start_who_wait() {
    let (upstream, calls) = Upstream::by_hand();
    let setup = Setup::before(&upstream).limit(1);
    let gateway = setup.start();
    let _clients: Vec<_> = (0..4).map(|_| gateway.asks("/")).collect();
    let _first = calls.next();
    gateway.waits_for("waiting", 3);
    gateway.reload(&setup.limit(3)).unwrap();
    let _more = [calls.next(), calls.next()];
    let status = gateway.status();
    assert_eq!(
        (&status["limit"], &status["running"], &status["waiting"]),
        (&3.into(), &3.into(), &1.into())
    );
}

#[test]
fn answers_raise_a_limit_that_moves_and_a_reload_of_something_else_keeps_it() {
    let (upstream, calls) = Upstream::by_hand();
    let setup = || Setup::before(&upstream).limit(1);
    let gateway = setup().start();
    let aimd = || setup().set("concurrency.policy", "'aimd'");
    gateway.reload(&aimd()).unwrap();
    let mut client = gateway.asks("/");
    let call = calls.next();
    let _others = [gateway.asks("/"), gateway.asks("/")];
    gateway.waits_for("waiting", 2);
    call.answer("");
    assert_eq!(client.answer().unwrap().status(), Some(200));
    // Two requests run now: in the slot that was given back, and in an additional one.
    let _running = [calls.next(), calls.next()];
    assert_eq!(gateway.count("limit"), 2);
    gateway.reload(&aimd().set("queue.max_wait", "'9s'")).unwrap();
    assert_eq!(gateway.count("limit"), 2);
    gateway.reload(&aimd().set("concurrency.max", "9")).unwrap();
    assert_eq!(gateway.count("limit"), 1, "it starts anew");
}

#[test]
fn an_upstream_that_is_too_slow_lowers_a_limit_that_moves() {
    let (upstream, calls) = Upstream::by_hand();
    let setup = Setup::before(&upstream).limit(4).set("concurrency.policy", "'aimd'");
    let gateway =
        setup.set("concurrency.backoff", "0.5").set("upstream.response_timeout", "'50ms'").start();
    let mut client = gateway.asks("/");
    let _unanswered = calls.next();
    assert_eq!(client.answer().unwrap().status(), Some(504));
    gateway.waits_for("limit", 2);
}

#[test]
fn fewer_slots_end_nobodys_request() {
    let (upstream, calls) = Upstream::by_hand();
    let setup = Setup::before(&upstream).limit(3);
    let gateway = setup.start();
    let mut clients: Vec<_> = (0..4).map(|_| gateway.asks("/")).collect();
    let mut running: Vec<_> = (0..3).map(|_| calls.next()).collect();
    gateway.waits_for("waiting", 1);
    gateway.reload(&setup.limit(1)).unwrap();
    assert_eq!((gateway.count("running"), gateway.count("waiting")), (3, 1));
    // The next request begins only when fewer requests run than the limit allows.
    running.pop().unwrap().answer("");
    running.pop().unwrap().answer("");
    gateway.waits_for("running", 1);
    assert!(calls.is_empty());
    running.pop().unwrap().answer("");
    calls.next().answer("");
    for client in &mut clients {
        assert_eq!(client.answer().unwrap().status(), Some(200));
    }
}

#[test]
fn a_shorter_wait_is_for_those_who_come_after() {
    let (upstream, calls) = Upstream::by_hand();
    let setup = Setup::before(&upstream).limit(1);
    let gateway = setup.start();
    let _running = gateway.asks("/");
    let _call = calls.next();
    gateway.reload(&setup.set("queue.max_wait", "'100ms'")).unwrap();
    let answer = gateway.get("/");
    assert_eq!(answer.status(), Some(503));
    assert!(answer.field("proxy-status").unwrap().contains("waited_too_long"));
}

#[test]
fn classes_that_come_and_go_keep_their_counters() {
    let upstream = Upstream::echo();
    let without = || Setup::before(&upstream);
    let with = || without().set("class.page", "{ match = ['GET /p/**'] }");
    let gateway = with().start();
    gateway.get("/p/1");
    gateway.get("/other");
    eventually("both are counted", || served(&gateway, "page") == Some(1));
    gateway.reload(&without()).unwrap();
    gateway.get("/p/2");
    eventually("it is another's", || served(&gateway, "other") == Some(2));
    assert_eq!(served(&gateway, "page"), None, "the file has no such class");
    gateway.reload(&with().set("class.cart", "{ match = ['GET /cart'] }")).unwrap();
    gateway.get("/p/3");
    gateway.get("/cart");
    eventually("they have their own", || {
        (served(&gateway, "page"), served(&gateway, "cart")) == (Some(2), Some(1))
    });
    assert_eq!(served(&gateway, "other"), Some(2));
    for (class, count) in [("page", 2.0), ("cart", 1.0), ("other", 2.0)] {
        let sample = format!("bywash_requests_total{{class=\"{class}\",outcome=\"served\"}}");
        assert_eq!(gateway.metric(&sample), count);
    }
}

#[test]
fn what_a_session_has_proven_outlives_it() {
    let (upstream, calls) = Upstream::by_hand();
    let before = |first: &str| {
        Setup::before(&upstream)
            .limit(1)
            .set("scheduler.capacity", "1")
            .set(&format!("class.{first}"), "{ match = ['GET /first'] }")
            .set("class.product", "{ match = ['GET /p/**'] }")
            .set(
                "class.pay",
                "{ match = ['POST /pay'], tier = 'transaction', requires = ['product'] }",
            )
    };
    let gateway = before("zebra").start();
    let visit = |request: &str| {
        gateway.sends(format!("{request} HTTP/1.1\r\nHost: a\r\nCookie: sid=walked\r\n\r\n"))
    };
    let mut visitor = visit("GET /p/1");
    calls.next().answer("");
    visitor.answer().unwrap();
    gateway.is_idle_again();
    // The classes now have other positions in the file.
    gateway.reload(&before("aardvark")).unwrap();
    assert_eq!(gateway.count("sessions"), 1);
    let _running = gateway.asks("/");
    let _call = calls.next();
    let mut newcomer = gateway.asks("/");
    gateway.waits_for("waiting", 1);
    let _pays = visit("POST /pay");
    let refusal = newcomer.answer().unwrap();
    assert!(refusal.field("proxy-status").unwrap().contains("evicted"), "{refusal:?}");
}

#[test]
fn what_only_a_start_can_change_is_refused_by_name_and_nothing_changes() {
    let upstream = Upstream::echo();
    let setup = || Setup::before(&upstream).limit(7);
    let gateway = setup().start();
    for (key, value) in [
        ("listen.http", "'127.0.0.1:1'"),
        ("listen.admin", "'127.0.0.1:2'"),
        ("listen.workers", "2"),
        ("state.directory", "'/var/lib/elsewhere'"),
    ] {
        let error = text(gateway.reload(&setup().limit(9).set(key, value)));
        assert!(error.contains(key), "{error}");
        assert_eq!(gateway.count("limit"), 7, "{key}");
    }
    assert_eq!(gateway.get("/still").text(), "/still");
}

#[test]
fn how_often_state_is_saved_is_fixed_as_well() {
    let upstream = Upstream::echo();
    let setup = || Setup::before(&upstream).set("state.directory", "'/var/lib/shop'");
    let gateway = setup().start();
    gateway.reload(&setup().limit(9)).unwrap();
    let error = text(gateway.reload(&setup().set("state.save_every", "'77s'")));
    assert!(error.contains("state.save_every"), "{error}");
}

#[test]
fn the_log_is_opened_anew() {
    let path = log::path("rotated");
    let old = path.with_extension("old");
    let upstream = Upstream::echo();
    let setup = log::logging(&upstream, &path);
    let gateway = setup.start();
    gateway.get("/before");
    log::lines(&path, 1);
    fs::rename(&path, &old).unwrap();
    gateway.get("/between");
    log::lines(&old, 2);
    gateway.reload(&setup).unwrap();
    gateway.get("/after");
    assert_eq!(log::lines(&path, 1)[0]["target"], "/after");
    assert_eq!(log::lines(&old, 2)[1]["target"], "/between");
}

#[test]
fn a_log_that_cannot_be_opened_changes_nothing() {
    let path = log::path("stays");
    let upstream = Upstream::echo();
    let setup = || log::logging(&upstream, &path);
    let gateway = setup().start();
    let nowhere = path.join("not/there.log");
    let elsewhere = setup().limit(9).set("log.access", &format!("'{}'", nowhere.display()));
    let error = text(gateway.reload(&elsewhere));
    assert!(error.starts_with("cannot open the access log"), "{error}");
    gateway.get("/on");
    assert_eq!(log::lines(&path, 1)[0]["target"], "/on");
    assert_eq!(gateway.count("limit"), 1);
}

#[test]
fn connections_on_both_sides_outlive_it() {
    let upstream = Upstream::echo();
    let setup = Setup::before(&upstream);
    let gateway = setup.start();
    let mut client = gateway.asks("/before");
    client.answer().unwrap();
    gateway.is_idle_again();
    gateway.reload(&setup.limit(3)).unwrap();
    client.send(get("/after"));
    assert_eq!(client.answer().unwrap().text(), "/after");
    assert_eq!(upstream.accepted(), 1);
}

#[test]
fn a_request_that_runs_ends_at_its_server_and_the_next_goes_to_the_new_one() {
    let (old, old_calls) = Upstream::by_hand();
    let new = Upstream::app(|_| ok("new"));
    let gateway = Setup::before(&old).limit(1).start();
    let mut running = gateway.asks("/runs");
    let mut call = old_calls.next();
    let mut waiting = gateway.asks("/waits");
    gateway.waits_for("waiting", 1);
    gateway.reload(&Setup::before(&new).limit(1)).unwrap();
    let servers = gateway.status()["servers"].clone();
    assert_eq!(servers.as_array().unwrap().len(), 1);
    assert_eq!(servers[0]["server"], format!("http://{}", new.address));
    call.send(ok("old"));
    assert_eq!(running.answer().unwrap().text(), "old");
    // The class and the limits of the waiting request come from the old configuration, and its
    // server from the new one.
    assert_eq!(waiting.answer().unwrap().text(), "new");
    assert_eq!(gateway.get("/next").text(), "new");
    assert!(old_calls.is_empty());
}

#[test]
fn what_is_known_of_a_server_outlives_it() {
    let good = Upstream::echo();
    let bad = format!("http://{}", nobody());
    let setup = || {
        Setup::before(&good)
            .servers(&[bad.clone(), format!("http://{}", good.address)])
            .set("health.eject_after", "1")
            .set("health.eject_for", "'1h'")
    };
    let gateway = setup().start();
    gateway.get("/");
    gateway.get("/");
    let state = |number: usize| gateway.status()["servers"][number]["state"].clone();
    assert_eq!(state(0), "ejected");
    gateway.reload(&setup().limit(3)).unwrap();
    assert_eq!(state(0), "ejected");
    // A server keeps its state when its position in the list changes.
    let swapped = setup().servers(&[format!("http://{}", good.address), bad.clone()]);
    gateway.reload(&swapped).unwrap();
    assert_eq!((state(0), state(1)), ("up".into(), "ejected".into()));
}

#[test]
fn what_was_observed_can_be_enforced() {
    let (upstream, calls) = Upstream::by_hand();
    let setup = || Setup::before(&upstream).limit(1);
    let gateway = setup().set("mode", "'observe'").start();
    let _observed: Vec<_> = (0..3).map(|_| gateway.asks("/")).collect();
    let _running: Vec<_> = (0..3).map(|_| calls.next()).collect();
    gateway.reload(&setup()).unwrap();
    assert_eq!(gateway.status()["mode"], "enforce");
    let _enforced = gateway.asks("/");
    gateway.waits_for("waiting", 3);
    assert!(calls.is_empty());
}

#[test]
fn other_limits_and_words_hold_for_the_next_request() {
    let upstream = Upstream::echo();
    let setup = || Setup::before(&upstream);
    let gateway = setup().start();
    let mut client = gateway.asks(&format!("/{}", "x".repeat(300)));
    assert_eq!(client.answer().unwrap().status(), Some(200));
    gateway.reload(&setup().set("client_limits.max_uri_bytes", "'256B'")).unwrap();
    assert_eq!(gateway.get(&format!("/{}", "x".repeat(300))).status(), Some(414));
    gateway
        .reload(
            &setup().servers(&[format!("http://{}", nobody())]).set("answers.details", "'none'"),
        )
        .unwrap();
    assert_eq!(gateway.get("/").field("proxy-status"), Some("bywash; error=connection_refused"));
}
