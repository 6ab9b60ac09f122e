//! Tests of session tokens. They are given when there is something to prove, believed only together
//! with their own session, and never seen by the application.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bywash_token::{Claims, Holder, Keys, LevelKeys, Mark, Secret, Secrets, UnixTime, open, seal};
use bywash_units::TimeSpan;

use crate::http2::{Http2, request};
use crate::setup::{Running, Setup, eventually};
use crate::upstream::{Calls, Upstream, ok, with_fields};
use crate::wire::{Message, Wire};

/// A file of keys for one test.
pub(crate) struct KeyFile {
    path: PathBuf,
    secrets: Secrets,
}

impl KeyFile {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.keys"));
        let this = Self { path, secrets: Secrets::fresh(Secret::from_bytes([1; 32])) };
        this.write();
        this
    }

    fn write(&self) {
        std::fs::write(&self.path, self.secrets.to_text()).unwrap();
        std::fs::set_permissions(&self.path, PermissionsExt::from_mode(0o600)).unwrap();
    }

    pub(crate) fn rotate(&mut self, secret: u8) {
        let fresh = Secret::from_bytes([secret; 32]);
        let text = Secrets::rotated(&self.secrets.to_text(), &fresh).unwrap();
        self.secrets = Secrets::parse(&text).unwrap();
        self.write();
    }

    fn keys(&self) -> Keys {
        Keys::new(&self.secrets)
    }

    /// Returns the file's secrets as keys for levels.
    pub(crate) fn level_keys(&self) -> LevelKeys {
        LevelKeys::new(&self.secrets)
    }

    /// Returns the path of the file, in TOML.
    pub(crate) fn path(&self) -> String {
        format!("'{}'", self.path.display())
    }

    /// Configures one slot and one place in the queue. `/pay` is a transaction for sessions that
    /// have seen `/p/*`, and `/confirm` is an order.
    fn shop(&self, upstream: &Upstream) -> Setup {
        Setup::before(upstream)
            .limit(1)
            .set("scheduler.capacity", "1")
            .set("identify.token_keys", &self.path())
            .set("class.product", "{ match = ['GET /p/**'] }")
            .set(
                "class.pay",
                "{ match = ['POST /pay'], tier = 'transaction', requires = ['product'] }",
            )
            .set("class.confirm", "{ match = ['GET /confirm'], revenue = 40 }")
    }

    /// Returns a token that was signed `ago` seconds ago, for the session of this cookie.
    fn token(&self, cookie: &str, classes: &[&str], ago: u64) -> String {
        let keys = self.keys();
        let session = keys.session(&Holder::Cookie(cookie.as_bytes()));
        let mut claims = Claims::new(seconds_ago(ago), session);
        for class in classes {
            claims.served.insert(Mark::of(class));
        }
        String::from_utf8(seal(&keys, &claims).as_bytes().to_vec()).unwrap()
    }

    /// Returns whether a token says that this session was served this class.
    fn says(&self, token: &str, cookie: &str, class: &str) -> bool {
        let keys = self.keys();
        let opened = open(&keys, token.as_bytes()).unwrap();
        let holder = Holder::Cookie(cookie.as_bytes());
        let proven = opened.proves(seconds_ago(0), TimeSpan::from_secs(1800), &holder);
        proven.is_ok_and(|served| served.contains(Mark::of(class)))
    }
}

pub(crate) fn seconds_ago(seconds: u64) -> UnixTime {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    UnixTime::from_millis(now - seconds * 1000)
}

fn with_cookie(request: &str, cookie: &str) -> String {
    format!("{request} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n")
}

/// Sends a request, lets the upstream answer it at once with these fields, and returns the answer.
fn visit(client: &mut Wire, calls: &Calls, request: &str, cookie: &str, fields: &str) -> Message {
    client.send(with_cookie(request, cookie));
    calls.next().send(with_fields(fields, ""));
    client.answer().unwrap()
}

/// Returns the gateway's cookie that a response sets, if any: the part before the first `;`, and
/// the rest.
fn cookie(answer: &Message) -> Option<(String, String)> {
    let all = answer.all("set-cookie");
    let ours = all.iter().find(|line| line.starts_with("bywash="))?;
    let (pair, rest) = ours.split_once("; ").unwrap();
    Some((pair.to_owned(), rest.to_owned()))
}

fn token(answer: &Message) -> Option<String> {
    cookie(answer).map(|(pair, _)| pair["bywash=".len()..].to_owned())
}

/// Returns whether a payment with this cookie evicts a new visitor, on a gateway without learned
/// sessions.
fn proves(setup: &Setup, calls: &Calls, cookie: &str) -> bool {
    let gateway = setup.start();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    let newcomer = gateway.asks("/new-here");
    gateway.waits_for("waiting", 1);
    let payer = gateway.sends(with_cookie("POST /pay", cookie));
    let decided = |class: &str, reason: &str| {
        let labels = format!("class=\"{class}\",mode=\"enforce\",reason=\"{reason}\"");
        gateway.metric(&format!("bywash_decisions_total{{{labels}}}")) == 1.0
    };
    let mut proves = None;
    eventually("one of the two is refused", || {
        let (newcomer, payer) = (decided("other", "evicted"), decided("pay", "queue_full"));
        proves = newcomer.then_some(true).or(payer.then_some(false));
        proves.is_some()
    });
    // The slot becomes free below. If one of the two still waited, it would reach the upstream, and
    // the test of the next gateway would take it for its own request.
    drop((newcomer, payer));
    gateway.waits_for("waiting", 0);
    proves.unwrap()
}

fn brought(gateway: &Running, what: &str) -> f64 {
    gateway.metric(&format!("bywash_tokens_total{{what=\"{what}\"}}"))
}

#[test]
fn a_token_is_given_when_the_path_has_grown_and_not_with_every_answer() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("given");
    let gateway = keys.shop(&upstream).start();
    let mut client = gateway.client();
    let first = visit(&mut client, &calls, "GET /p/1", "sid=hers", "");
    let (pair, rest) = cookie(&first).expect("the first answer brings one");
    assert_eq!(rest, "Path=/; Max-Age=1800; HttpOnly; SameSite=Lax");
    assert!(pair.len() + rest.len() < 256);
    let both = format!("sid=hers; {pair}");
    assert_eq!(cookie(&visit(&mut client, &calls, "GET /p/2", &both, "")), None);
    let grown = token(&visit(&mut client, &calls, "POST /pay", &both, "")).expect("another one");
    assert!(keys.says(&grown, "hers", "product") && keys.says(&grown, "hers", "pay"));
    assert!(!keys.says(&grown, "his", "pay"));
    assert_eq!((brought(&gateway, "given"), brought(&gateway, "good")), (2.0, 2.0));
}

#[test]
fn a_token_says_that_a_class_was_served_only_after_a_success_of_it() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("success");
    let login = "{ match = ['POST /login'], tier = 'transaction', success = ['status 302'] }";
    let gateway = keys.shop(&upstream).set("class.login", login).start();
    let mut client = gateway.client();
    let failed = visit(&mut client, &calls, "POST /login", "sid=hers", "");
    let token_of_failed = token(&failed).expect("the session has begun");
    assert!(!keys.says(&token_of_failed, "hers", "login"));
    client.send(with_cookie("POST /login", "sid=hers"));
    calls.next().send("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n");
    let done = client.answer().unwrap();
    assert!(keys.says(&token(&done).expect("it has proven more"), "hers", "login"));
}

#[test]
fn another_gateway_believes_it_without_having_seen_anything() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("another");
    let setup = keys.shop(&upstream);
    let answer = visit(&mut setup.start().client(), &calls, "GET /p/1", "sid=hers", "");
    let (pair, _) = cookie(&answer).unwrap();
    assert!(!proves(&setup, &calls, "sid=hers"));
    assert!(proves(&setup, &calls, &format!("sid=hers; {pair}")));
    // The additional class changes the numbers of the others. The token is still valid, because it
    // identifies a class by its name.
    let other = setup.set("class.a-first", "{ match = ['GET /a'] }");
    assert!(proves(&other, &calls, &format!("{pair}; sid=hers")));
}

#[test]
fn what_is_no_good_token_proves_nothing_and_is_counted_by_its_cause() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("bad");
    let setup = keys.shop(&upstream);
    let good = keys.token("hers", &["product"], 10);
    assert!(proves(&setup, &calls, &format!("sid=hers; bywash={good}")));
    let long = keys.token("hers", &["product", "pay", "confirm"], 10);
    let mut other = KeyFile::new("bad-other");
    other.rotate(9);
    let mut forged = good.clone().into_bytes();
    forged[30] = if forged[30] == b'A' { b'B' } else { b'A' };
    let forged = String::from_utf8(forged).unwrap();
    for (sid, token, cause) in [
        ("hers", forged, "forged"),
        ("hers", long[..long.len() - 4].to_owned(), "forged"),
        ("hers", good[..good.len() - 4].to_owned(), "malformed"),
        ("hers", good[..40].to_owned(), "malformed"),
        ("hers", "A".repeat(8000), "malformed"),
        ("hers", format!("{good}=="), "malformed"),
        ("hers", "%00<script>\"".to_owned(), "malformed"),
        ("his", good.clone(), "foreign"),
        ("hers", keys.token("hers", &["product"], 1801), "stale"),
        ("hers", other.token("hers", &["product"], 10), "unknown_key"),
    ] {
        let cookie = format!("sid={sid}; bywash={token}");
        let gateway = setup.start();
        let mut client = gateway.client();
        let answer = visit(&mut client, &calls, "GET /new", &cookie, "");
        assert_eq!(answer.status(), Some(200), "{cause}");
        assert_eq!((brought(&gateway, cause), brought(&gateway, "good")), (1.0, 0.0), "{cause}");
        let fresh = self::token(&answer).expect("it is replaced");
        assert!(!keys.says(&fresh, sid, "product") && keys.says(&fresh, sid, "other"));
        assert!(!proves(&setup, &calls, &cookie), "{cause}");
    }
}

#[test]
fn a_token_without_its_session_proves_nothing() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("alone");
    let token = keys.token("hers", &["product"], 0);
    assert!(!proves(&keys.shop(&upstream), &calls, &format!("bywash={token}")));
}

#[test]
fn a_copied_token_is_one_session_and_one_principal() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("copied");
    let setup =
        keys.shop(&upstream).set("scheduler.capacity", "10").set("scheduler.principal_cap", "2");
    let gateway = setup.start();
    let cookie = format!("sid=hers; bywash={}", keys.token("hers", &["product"], 0));
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    let _waiting: Vec<Wire> =
        (0..2).map(|_| gateway.sends(with_cookie("POST /pay", &cookie))).collect();
    gateway.waits_for("waiting", 2);
    let mut third = gateway.sends(with_cookie("POST /pay", &cookie));
    assert_eq!(third.answer().unwrap().status(), Some(429));
}

#[test]
fn a_key_is_exchanged_by_a_reload_and_nobody_loses_what_was_proven() {
    let (upstream, calls) = Upstream::by_hand();
    let mut keys = KeyFile::new("rotated");
    let setup = keys.shop(&upstream);
    let gateway = setup.start();
    let mut client = gateway.client();
    let old = keys.token("hers", &["product"], 0);
    keys.rotate(2);
    // The new key is unknown until the reload.
    let new = keys.token("hers", &["product"], 0);
    let visit = |client: &mut Wire, token: &str| {
        let cookie = format!("sid=hers; bywash={token}");
        self::token(&visit(client, &calls, "GET /p/1", &cookie, ""))
    };
    visit(&mut client, &new).expect("a token in place of one that is not known");
    assert_eq!(brought(&gateway, "unknown_key"), 1.0);
    gateway.reload(&setup).unwrap();
    assert_eq!(visit(&mut client, &new), None);
    let moved = visit(&mut client, &old).expect("a token in place of one with the old key");
    assert_eq!(brought(&gateway, "good"), 2.0);
    keys.rotate(3);
    gateway.reload(&setup).unwrap();
    assert!(keys.says(&moved, "hers", "product"));
    visit(&mut client, &old).expect("a token in place of one that is not known any more");
    assert_eq!(brought(&gateway, "unknown_key"), 2.0);
}

#[test]
fn without_keys_there_are_no_tokens_and_the_cookie_is_the_applications() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = Setup::before(&upstream).start();
    let mut client = gateway.sends(with_cookie("GET /", "sid=1; bywash=x"));
    let mut call = calls.next();
    assert_eq!(call.request.all("cookie"), ["sid=1; bywash=x"]);
    call.send(ok(""));
    assert_eq!(client.answer().unwrap().all("set-cookie"), [""; 0]);
}

#[test]
fn the_application_never_sees_it_and_gets_the_other_cookies_as_they_came() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("taken-out");
    for mode in ["'enforce'", "'observe'"] {
        let gateway = keys.shop(&upstream).set("mode", mode).start();
        for (sent, left) in [
            ("bywash=x", &[][..]),
            ("a=1;  b=\"2\" ; bywash=x; c=3;", &["a=1;  b=\"2\" ; c=3;"]),
            ("xbywash=1; bywash_=2", &["xbywash=1; bywash_=2"]),
        ] {
            let mut client = gateway.sends(with_cookie("GET /", sent));
            let call = calls.next();
            assert_eq!(call.request.all("cookie"), left, "{mode}");
            call.answer("");
            client.answer().unwrap();
        }
        gateway.gateway().bypass(true);
        let _client = gateway.sends(with_cookie("GET /", "a=1; bywash=x"));
        let call = calls.next();
        assert_eq!(call.request.all("cookie"), ["a=1"]);
        call.answer("");
    }
}

#[test]
fn who_is_observed_or_bypassed_is_given_none() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("observed");
    let gateway = keys.shop(&upstream).set("mode", "'observe'").start();
    let given = |gateway: &Running| {
        token(&visit(&mut gateway.client(), &calls, "GET /p/1", "sid=hers", ""))
    };
    assert_eq!(given(&gateway), None);
    let gateway = keys.shop(&upstream).start();
    gateway.gateway().bypass(true);
    assert_eq!(given(&gateway), None);
    gateway.gateway().bypass(false);
    assert!(given(&gateway).is_some());
}

#[test]
fn an_error_and_what_a_cache_may_keep_bring_no_token() {
    let keys = KeyFile::new("kept");
    for (head, brings) in [
        ("200 OK\r\n", true),
        ("303 See Other\r\n", true),
        ("200 OK\r\nCache-Control: private, max-age=60\r\n", true),
        ("200 OK\r\nETag: \"1\"\r\nCache-Control: no-store\r\n", true),
        ("200 OK\r\nCache-Control: public, max-age=60\r\n", false),
        ("200 OK\r\nCache-Control: no-cache\r\n", false),
        ("200 OK\r\nETag: \"1\"\r\n", false),
        ("200 OK\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n", false),
        ("200 OK\r\nX-Accel-Expires: 60\r\nCache-Control: private\r\n", false),
        ("200 OK\r\nEdge-Control: max-age=60\r\nCache-Control: private\r\n", false),
        ("301 Moved Permanently\r\n", false),
        ("308 Permanent Redirect\r\nCache-Control: private\r\n", true),
        ("304 Not Modified\r\n", false),
        ("404 Not Found\r\n", false),
        ("500 Oops\r\n", false),
    ] {
        let answer = format!("HTTP/1.1 {head}Content-Length: 0\r\n\r\n");
        let upstream = Upstream::app(move |_| answer.clone().into_bytes());
        let gateway = keys.shop(&upstream).start();
        let answer = gateway.sends(with_cookie("GET /p/1", "sid=1")).answer().unwrap();
        assert_eq!(token(&answer).is_some(), brings, "{head}");
        let cache_control = answer.all("cache-control").join(", ");
        let is_private = cache_control.contains("private") || cache_control.contains("no-store");
        assert!(!brings || is_private, "{head}: {cache_control}");
        assert!(
            brings || head.contains("Cache-Control") != cache_control.is_empty(),
            "{head}: {cache_control}"
        );
    }
}

#[test]
fn a_redirection_of_a_class_that_proves_nothing_brings_a_token_only_to_a_session_that_is_known() {
    let keys = KeyFile::new("redirected");
    let (upstream, calls) = Upstream::by_hand();
    let gateway = keys.shop(&upstream).start();
    let mut visitor = gateway.client();
    let mut redirected = || {
        visitor.send(with_cookie("GET /", "sid=1"));
        calls.next().send("HTTP/1.1 303 See Other\r\nContent-Length: 0\r\n\r\n");
        token(&visitor.answer().unwrap())
    };
    assert_eq!(redirected(), None);
    visit(&mut gateway.client(), &calls, "GET /p/1", "sid=1", "");
    gateway.is_idle_again();
    assert!(redirected().is_some());
}

#[test]
fn a_session_that_is_renewed_gets_a_token_of_its_own_with_all_that_was_proven() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("renewed");
    let gateway = keys.shop(&upstream).start();
    let mut client = gateway.client();
    let old = keys.token("old", &["product"], 0);
    let cookie = format!("sid=old; bywash={old}");
    let renewed = "Set-Cookie: sid=new; Path=/\r\n";
    let answer = visit(&mut client, &calls, "GET /", &cookie, renewed);
    assert_eq!(answer.all("set-cookie").len(), 2);
    let new = token(&answer).unwrap();
    assert!(keys.says(&new, "new", "product") && keys.says(&new, "new", "other"));
    assert!(!keys.says(&new, "old", "product"));
}

#[test]
fn an_application_without_sessions_gets_them_by_the_token() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("is-session");
    let setup = keys.shop(&upstream).set("identify.session", "'token'");
    let gateway = setup.start();
    let mut client = gateway.client();
    let answer = visit(&mut client, &calls, "GET /p/1", "a=1", "");
    let (first, _) = cookie(&answer).expect("the first answer begins a session");
    gateway.is_idle_again();
    assert_eq!(gateway.count("sessions"), 1);
    assert_eq!(cookie(&visit(&mut client, &calls, "GET /p/2", &first, "")), None);
    let (grown, _) = cookie(&visit(&mut client, &calls, "GET /", &first, "")).expect("it grows");
    visit(&mut client, &calls, "GET /", &grown, "");
    gateway.is_idle_again();
    assert_eq!(gateway.count("sessions"), 1, "it is the same session all the time");
    let other = visit(&mut client, &calls, "GET /p/1", "a=1", "");
    assert_ne!(cookie(&other).unwrap().0, first);
    gateway.is_idle_again();
    assert_eq!(gateway.count("sessions"), 2);
    assert!(proves(&setup, &calls, &grown));
    assert!(!proves(&setup, &calls, "sid=hers"));
}

#[test]
fn who_has_ordered_is_known_for_longer_than_the_session_if_that_is_asked() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("ordered");
    let gateway = keys.shop(&upstream).set("identify.signals", "['returning']").start();
    let mut client = gateway.client();
    let (before, _) = cookie(&visit(&mut client, &calls, "GET /", "sid=1", "")).unwrap();
    let both = format!("sid=1; {before}");
    let (after, rest) = cookie(&visit(&mut client, &calls, "GET /confirm", &both, "")).unwrap();
    assert!(rest.contains("Max-Age=7776000"), "{rest}");
    let ordered = |pair: &str| {
        let keys = keys.keys();
        let opened = open(&keys, &pair.as_bytes()["bywash=".len()..]).unwrap();
        opened.ordered(seconds_ago(0), TimeSpan::from_secs(90 * 86_400)).is_some()
    };
    assert_eq!((ordered(&before), ordered(&after)), (false, true));
    // The next token keeps the order even if it is for another session, about which the old token
    // proves nothing.
    let later = format!("sid=2; {after}");
    let (later, _) = cookie(&visit(&mut client, &calls, "GET /", &later, "")).unwrap();
    assert!(ordered(&later) && brought(&gateway, "foreign") == 1.0);
    assert!(!keys.says(&later["bywash=".len()..], "2", "confirm"));
    // Without a signal that asks for it, no order is recorded.
    let gateway = keys.shop(&upstream).start();
    let answer = visit(&mut gateway.client(), &calls, "GET /confirm", "sid=1", "");
    let (pair, rest) = cookie(&answer).unwrap();
    assert!(!ordered(&pair) && rest.contains("Max-Age=1800"), "{rest}");
}

#[test]
fn it_is_for_encrypted_ways_only_where_a_trusted_hop_says_that_this_is_one() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("secure");
    let secure = |setup: Setup| {
        let gateway = setup.start();
        let mut client = gateway.client();
        let cookie_of = "sid=1\r\nX-Forwarded-Proto: https";
        let answer = visit(&mut client, &calls, "GET /", cookie_of, "");
        cookie(&answer).unwrap().1.ends_with("; Secure")
    };
    assert!(!secure(keys.shop(&upstream)));
    assert!(secure(keys.shop(&upstream).set("listen.trusted_proxies", "['127.0.0.1']")));
}

#[test]
fn clients_that_speak_http2_are_given_it_and_bring_it_in_crumbs() {
    let (upstream, calls) = Upstream::by_hand();
    let keys = KeyFile::new("h2");
    let gateway = keys.shop(&upstream).start();
    let mut client = Http2::connect(gateway.gateway().http());
    let asked = client.sends(request("GET", "/p/1", &[("cookie", "sid=hers")]), true);
    calls.next().answer("");
    let answer = asked.answer().unwrap();
    let pair = answer.field("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let crumbs = [("cookie", "sid=hers"), ("cookie", pair.as_str()), ("cookie", "a=1")];
    let asked = client.sends(request("GET", "/p/1", &crumbs), true);
    let call = calls.next();
    assert_eq!(call.request.all("cookie"), ["sid=hers; a=1"]);
    call.answer("");
    assert_eq!(asked.answer().unwrap().field("set-cookie"), None);
    assert_eq!(brought(&gateway, "good"), 1.0);
}
