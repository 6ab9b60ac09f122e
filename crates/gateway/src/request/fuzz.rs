//! The fuzz target `examine`: checks that no head makes the gateway believe an untrusted client.
#![allow(clippy::missing_panics_doc, reason = "a panic is how a target tells what it found")]

use std::sync::LazyLock;

use bywash_config::{Config, Level, Levels, Token};
use bywash_engine::{Engine, Options};
use bywash_message::{Fields, Head, Limits, Name, Request, write_request};
use bywash_token::{Keys, LevelKeys, Secrets};
use bywash_units::{Time, TimeSpan};
use http::StatusCode;
use prometheus_client::metrics::counter::Counter;

use super::client_deadline::Deadlines;
use super::{Peer, examine, forwarded};
use crate::driver::Driver;
use crate::identity::{cacheable, cookies};
use crate::process::secret::Secret;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::telemetry::access_log::AccessLog;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::request_log::RequestLog;

/// Limits on a head that are small enough for a fuzzer to reach.
const SMALL: Limits = Limits { target: 64, fields: 12, bytes: 400 };

/// Limits on a head that is within [`SMALL`], and to which the gateway has added its own fields.
const LARGE: Limits = Limits { target: 512, fields: 32, bytes: 8192 };

static SHARED: LazyLock<Shared> = LazyLock::new(|| shared(configured(), Secret(1, 2)));

/// The maximum number of sessions that the gateway of [`shared`] remembers.
pub(crate) const SESSIONS: u32 = 8;

/// Parses a configuration that consists of a minimal one and these `lines`.
pub(crate) fn config(lines: &str) -> Config {
    let text = format!("version = 1\nupstream.server = 'http://127.0.0.1:1'\n{lines}");
    match Config::parse(&text, "fuzz") {
        Ok((config, _)) => config,
        Err(problems) => panic!("{}", problems.render(false)),
    }
}

/// Returns the shared state of a gateway that has neither threads nor listeners.
pub(crate) fn shared(config: Config, secret: Secret) -> Shared {
    let classes: Vec<_> = config.classes.iter().map(|class| class.class.clone()).collect();
    let scheduler = config.scheduler.scheduler(&classes);
    let options = Options { limit: 1.into(), sessions: SESSIONS, ..config.engine.clone() };
    let driver = Driver::new(Engine::new(classes, scheduler, options));
    let log = AccessLog::open(&bywash_config::AccessLog::Off, Counter::default());
    let metrics = Metrics::new();
    let settings = Settings::new(config, &metrics, Time::ZERO, None).expect("it asks for nothing");
    let request_log = RequestLog::new(log.expect("there is none to open"));
    Shared::new(settings, driver, metrics, request_log, secret)
}

/// Returns a configuration whose keys are random and were never in a file. It has levels that no
/// class uses.
fn configured() -> Config {
    let mut config = config(
        "listen.trusted_proxies = ['10.0.0.0/8', 'fd00::/8']\n\
         identify.session = 'cookie:sid'\nidentify.principal = 'address'\n\
         identify.signals = ['cookie:a', 'referrer:a.b', 'header:b', 'returning']\n",
    );
    let secrets = || Secrets::fresh(bywash_token::Secret::from_bytes([7; 32]));
    let keys = Keys::new(&secrets());
    config.identify.token = Some(Token { cookie: "bywash".into(), file: "none".into(), keys });
    config.levels = Some(Levels {
        names: vec!["high".into(), "low".into()],
        default: Level(1),
        file: "none".into(),
        keys: LevelKeys::new(&secrets()),
        customer_header: Some("x-customer-level".into()),
    });
    config
}

/// Checks that an untrusted client is not believed whatever its head says, and that the head
/// written for the upstream can be parsed again. Then takes the fields for those of a response, and
/// checks the session that they begin and whether a cache may store them.
///
/// The first byte of the input says whether the peer is trusted and whether its connection is
/// encrypted. The rest is a head.
pub fn examine(input: &[u8]) {
    let [kind, head @ ..] = input else { return };
    let Ok(Some(end)) = Head::default().end(head, &SMALL) else { return };
    let Ok(mut request) = Request::parse(&head[..end], &SMALL) else { return };
    let (shared, settings) = (&*SHARED, SHARED.settings());
    let from = if kind & 1 == 1 { "10.0.0.1:1" } else { "[2001:db8::1]:1" };
    let peer = Peer::new(&settings, from.parse().expect("an address"), kind & 2 == 2);
    begins_a_session_that_is_set(&settings, &request.fields);
    is_kept_by_no_cache_that_may_not(&request.fields);
    shortens_deadlines(&request.fields);

    let facts = examine::examine(shared, &settings, &request, &peer);
    assert!(peer.is_trusted || facts.client == peer.address);
    let named = request.fields.named(b"x-customer-level").collect::<Vec<_>>();
    let is_high = peer.is_trusted && named == [b"high"];
    assert_eq!(facts.level, Some(Level(u8::from(!is_high))));
    assert_eq!(facts.client, facts.client.to_canonical());
    assert!(facts.request.proven.is_empty(), "nobody has signed that");

    request.fields.remove_hop_by_hop();
    rebuild(&settings, &mut request, &peer);
    for once in [Name::XForwardedFor, Name::XForwardedProto, Name::XRealIp] {
        assert_eq!(request.fields.all(once).count(), 1);
    }
    let chain = request.fields.get(Name::XForwardedFor).expect("it was counted");
    let last = chain.rsplit(|byte| *byte == b' ').next().expect("there is always one");
    assert_eq!(last, peer.address.to_string().as_bytes());
    if !peer.is_trusted {
        assert_eq!(chain, last);
        assert!(!request.fields.has(Name::Forwarded));
    }
    if request.fields.has(Name::Host) {
        let mut out = Vec::new();
        let target = request.target.path_and_query();
        write_request(&mut out, &request.method, target, &request.fields, request.framing);
        let again = Request::parse(&out, &LARGE).expect("it is a head");
        assert_eq!(again.target, request.target);
        // Another bywash gateway behind this one, which trusts it, must find the same client.
        let behind = Peer::new(&settings, "10.0.0.2:1".parse().expect("an address"), false);
        let seen = examine::examine(shared, &settings, &again, &behind);
        assert_eq!(seen.client, facts.client);
        assert_eq!(seen.request.session, facts.request.session);
        assert_eq!(seen.request.class, facts.request.class);
    }
}

/// Checks that the next hop gets one deadline, which is neither later than the client's deadline
/// nor later than the limit of this gateway.
fn shortens_deadlines(fields: &Fields) {
    let (deadlines, limit) = (Deadlines::of(fields), TimeSpan::from_secs(60));
    let mut next = Fields::new();
    deadlines.write(&mut next, TimeSpan::from_millis(3), limit, TimeSpan::from_secs(90));
    let begins = Deadlines::of(&next).begins;
    assert!(
        begins.is_some_and(|left| left <= limit && deadlines.begins.is_none_or(|own| left <= own))
    );
}

fn begins_a_session_that_is_set(settings: &Settings, fields: &Fields) {
    let begun = examine::session_begun(settings, fields);
    let sets = |line: &[u8], value: &[u8]| {
        let rest = line.trim_ascii().strip_prefix(b"sid=").and_then(|r| r.strip_prefix(value));
        rest.is_some_and(|rest| matches!(rest.trim_ascii_start().first(), None | Some(b';')))
    };
    let is_set = |value| fields.all(Name::SetCookie).any(|line| sets(line, value));
    assert!(begun.is_none_or(|value| !value.is_empty() && is_set(value)));
}

fn is_kept_by_no_cache_that_may_not(fields: &Fields) {
    if cacheable::may_be_cached(StatusCode::OK, fields) {
        return;
    }
    let has = |line: &[u8], word: &[u8]| {
        line.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
    };
    let mut lines = fields.all(Name::CacheControl);
    let says_no = lines.any(|line| has(line, b"private") || has(line, b"no-store"));
    let dated = [&b"expires"[..], b"last-modified", b"etag"];
    assert!(says_no || dated.iter().all(|name| fields.named(name).next().is_none()));
}

fn rebuild(settings: &Settings, request: &mut Request, peer: &Peer) {
    request.fields.remove_alike(b"x-customer-level");
    request.fields.remove(Name::Ours);
    let is_level = |spelled: &[u8]| {
        let plain = spelled.to_ascii_lowercase();
        let plain = plain.iter().map(|byte| if b"_.".contains(byte) { b'-' } else { *byte });
        let plain: Vec<u8> = plain.collect();
        plain == b"x-customer-level" || plain == b"bywash-level"
    };
    assert!(!request.fields.iter().any(|field| is_level(field.spelled)));
    cookies::remove_cookie(&mut request.fields, "bywash");
    assert_eq!(cookies::request_cookie(&request.fields, "bywash"), None);
    let listen = &settings.config.listen;
    forwarded::take_claims_out(&mut request.fields, peer, &listen.pass_fields);
    let never = [Name::MethodOverride, Name::HopClaim, Name::NeverPassed, Name::XForwardedOther];
    assert!(!never.iter().any(|name| request.fields.has(*name)));
    forwarded::rebuild(&mut request.fields, peer, listen);
}
