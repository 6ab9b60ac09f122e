//! Tests of the facts that the engine gets about a request.

use std::sync::Arc;

use bywash_config::Config;
use bywash_engine::{Engine, Signals};
use bywash_message::Limits;
use bywash_token::{Claims, Holder, Keys, Mark, Secret, Secrets, seal};
use bywash_units::Time;
use prometheus_client::metrics::counter::Counter;

use super::*;
use crate::driver::Driver;
use crate::process::secret::Secret as HashKey;
use crate::telemetry::access_log::AccessLog;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::request_log::RequestLog;

/// The part of a gateway that examines requests.
struct Fixture {
    shared: Shared,
    settings: Arc<Settings>,
}

impl Fixture {
    fn new(identify: &str) -> Self {
        // By default, sessions are identified by the cookie `sid`.
        let session = if identify.contains("session =") { "" } else { "session = 'cookie:sid'\n" };
        let text = format!(
            "version = 1\nmode = 'enforce'\nupstream.server = 'http://127.0.0.1:1'\n\
             class.list = {{ match = ['GET /list'] }}\n[identify]\n{session}{identify}"
        );
        let Ok((config, _)) = Config::parse(&text, "test") else { panic!("{text}") };
        let classes: Vec<_> = config.classes.iter().map(|class| class.class.clone()).collect();
        let scheduler = config.scheduler.scheduler(&classes);
        let driver = Driver::new(Engine::new(classes, scheduler, config.engine.clone()));
        let log = AccessLog::open(&bywash_config::AccessLog::Off, Counter::default()).unwrap();
        let metrics = Metrics::new();
        let settings = Settings::new(config, &metrics, Time::ZERO, None).unwrap();
        let shared = Shared::new(settings, driver, metrics, RequestLog::new(log), HashKey(1, 2));
        Self { settings: shared.settings(), shared }
    }

    fn facts(&self, head: &str) -> Facts {
        self.facts_from("192.0.2.1", head)
    }

    fn facts_from(&self, address: &str, head: &str) -> Facts {
        let limits = Limits { target: 8192, fields: 100, bytes: 16_384 };
        let (start, fields) = head.split_once('\n').unwrap_or((head, ""));
        let lines = fields.lines().map(|line| format!("{line}\r\n"));
        let head = format!("{start} HTTP/1.1\r\nHost: a\r\n{}\r\n", lines.collect::<String>());
        let request = Request::parse(head.as_bytes(), &limits).unwrap();
        let peer = Peer::new(&self.settings, format!("{address}:1").parse().unwrap(), false);
        examine(&self.shared, &self.settings, &request, &peer)
    }

    /// Returns whether two requests count as attempts at the same operation.
    fn same(&self, one: &str, other: &str) -> bool {
        let attempt = |head| self.facts(head).request.attempt.unwrap();
        attempt(one) == attempt(other)
    }
}

#[test]
fn the_same_visitor_who_asks_for_the_same_asks_again() {
    let fixture = Fixture::new("");
    let first = "GET /p/1?a=b\nCookie: sid=1";
    assert!(fixture.same(first, "GET /p/1?a=b\nX-New: 1\nCookie: a=2; sid=1\nUser-Agent: other"));
    for other in [
        "GET /p/1?a=c\nCookie: sid=1",
        "GET /p/1\nCookie: sid=1",
        "POST /p/1?a=b\nCookie: sid=1",
        "GET /p/1?a=b\nCookie: sid=2",
        "GET /p/1?a=b",
    ] {
        assert!(!fixture.same(first, other), "{other}");
    }
}

#[test]
fn without_a_session_an_address_and_a_browser_are_the_visitor() {
    let fixture = Fixture::new("");
    assert!(fixture.same("GET /\nUser-Agent: a", "GET /\nUser-Agent: a"));
    assert!(!fixture.same("GET /\nUser-Agent: a", "GET /\nUser-Agent: b"));
    let [one, same, other] = ["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"].map(|address| {
        let address = if address.contains("::") { format!("[{address}]") } else { address.into() };
        fixture.facts_from(&address, "GET /").request.attempt
    });
    assert!(one == same && one != other);
}

#[test]
fn a_key_says_that_two_posts_are_one_and_two_keys_that_they_are_not() {
    let fixture = Fixture::new("");
    let post = |target: &str, key: &str| {
        format!("POST {target}\nCookie: sid=1\nContent-Length: 0\nIdempotency-Key: {key}")
    };
    assert!(fixture.same(&post("/order?t=1", "k"), &post("/order?t=2", "k")));
    assert!(!fixture.same(&post("/order", "k"), &post("/order", "l")));
    // A key that equals a target is still different from that target.
    assert!(!fixture.same(&post("/a", "/order"), "POST /order\nCookie: sid=1"));
    // A GET is identified by its target alone.
    let get = "GET /p\nCookie: sid=1\nIdempotency-Key: ";
    assert!(fixture.same(&format!("{get}k"), &format!("{get}l")));
}

#[test]
fn a_repetition_says_so_by_the_fields_that_are_known_and_by_no_others() {
    let fixture = Fixture::new("");
    for (field, is_retry) in [
        ("X-Retry-Count: 1", true),
        ("X-Retry-Count: 0", false),
        ("x-envoy-attempt-count: 1", false),
        ("x-envoy-attempt-count: 2", true),
        ("grpc-previous-rpc-attempts: 1", true),
        ("x-stainless-retry-count: 2", false),
    ] {
        assert_eq!(fixture.facts(&format!("GET /\n{field}")).request.retry, is_retry, "{field}");
    }
    let fixture = Fixture::new("retry_headers = ['x-stainless-retry-count>0']");
    assert!(fixture.facts("GET /\nX-Stainless-Retry-Count: 2").request.retry);
    assert!(!fixture.facts("GET /\nX-Retry-Count: 1").request.retry);
}

/// Returns the path of a file of keys, and a token for the session `1` whose visitor has ordered.
fn with_token(name: &str) -> (String, String) {
    use std::os::unix::fs::PermissionsExt;
    let secrets = Secrets::fresh(Secret::from_bytes([1; 32]));
    let path = std::env::temp_dir().join(format!("bywash-{}-{name}.keys", std::process::id()));
    std::fs::write(&path, secrets.to_text()).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let (keys, now) = (Keys::new(&secrets), UnixTime::from_millis(unix_ms()));
    let mut claims = Claims::new(now, keys.session(&Holder::Cookie(b"1")));
    claims.served.insert(Mark::of("list"));
    claims.ordered = now.day();
    let text = seal(&keys, &claims);
    let text = String::from_utf8(text.as_bytes().to_vec()).unwrap();
    (path.display().to_string(), text)
}

#[test]
fn a_token_proves_a_path_for_its_session_and_shows_a_returning_visitor_in_any() {
    let (path, token) = with_token("returning");
    let fixture = Fixture::new(&format!(
        "token_keys = '{path}'\nsignals = ['cookie:cart', 'returning', 'referrer:a.example']"
    ));
    std::fs::remove_file(path).unwrap();
    let signals = |cookies: &str| {
        let request = fixture.facts(&format!("GET /\nCookie: {cookies}")).request;
        (request.proven.bits(), request.signals.index())
    };
    assert_eq!(signals(&format!("sid=1; bywash={token}")), (0b1, 0b10));
    assert_eq!(signals(&format!("sid=2; cart=1; bywash={token}")), (0, 0b11));
    assert_eq!(signals("sid=1; cart=1"), (0, 0b1));
    assert_eq!(signals(&format!("sid=1; bywash=A{token}")), (0, 0));
}

#[test]
fn where_nobody_asks_who_returns_nobody_is_told() {
    let (path, token) = with_token("unasked");
    let fixture = Fixture::new(&format!("token_keys = '{path}'\nsignals = ['cookie:cart']"));
    std::fs::remove_file(path).unwrap();
    let facts = fixture.facts(&format!("GET /\nCookie: sid=1; bywash={token}"));
    assert_eq!((facts.request.signals, facts.token.ordered), (Signals::NONE, None));
    assert!(!facts.request.proven.is_empty() && facts.token.lasts);
}

#[test]
fn without_a_token_in_the_request_no_session_is_named_unless_a_token_may_be_given() {
    let (path, _) = with_token("named");
    let keys = format!("token_keys = '{path}'");
    let names = |identify: &str, head: &str| Fixture::new(identify).facts(head).token.session;
    let head = "GET /list\nCookie: sid=1";
    assert!(names(&keys, head).is_some());
    assert!(names(&keys, "GET /list").is_none() && names("", head).is_none());
    let observed = format!("{keys}\n[class.list2]\nmatch = ['GET /other']\nmode = 'observe'");
    assert!(names(&observed, "GET /other\nCookie: sid=1").is_none());
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_request_has_a_visitor_if_populations_are_told_apart() {
    let asked = |identify: &str, head| Fixture::new(identify).facts(head).request;
    let head = "GET /p\nSec-Fetch-Dest: style";
    let request = asked("", head);
    assert!(request.visitor.is_some() && request.part);
    assert!(!asked("", "GET /p").part);
    let request = asked("populations = false", head);
    assert!(request.visitor.is_none() && !request.part);
}
