//! Who a request comes from and whose session it is: whatever a head says, strangers are not
//! believed, and what is written for the upstream is a head again. And what the same fields say in an
//! answer: which session it begins, and whether a cache may keep it.
//!
//! The first byte of the input says whether the peer is trusted, the rest is a head.
#![no_main]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::LazyLock;

use bywash_config::{Config, Level, Levels, Token};
use bywash_fuzz::SMALL;
use bywash_message::{Limits, Name, Request, write_request};
use bywash_token::{Keys, LevelKeys, Secret, Secrets};
use libfuzzer_sys::fuzz_target;

/// The gateway's own files, which are not public there, and what they know of the rest of it.
#[path = "../../crates/gateway/src/request"]
#[allow(dead_code, reason = "what other parts of the gateway ask for")]
mod request {
    use bywash_message::{Fields, Name};
    use bywash_units::Span;
    use http::StatusCode;

    mod cacheable;
    mod client_deadline;
    mod cookies;
    mod examine;
    mod forwarded;
    mod peer;
    mod signals;

    pub(crate) use examine::Facts;
    pub(crate) use peer::Peer;

    pub(crate) fn examine(
        shared: &crate::shared::Shared,
        settings: &crate::settings::Settings,
        request: &bywash_message::Request,
        peer: &Peer,
    ) -> Facts {
        answer(settings, &request.fields);
        next_deadline(&request.fields);
        examine::examine(shared, settings, request, peer)
    }

    /// Whoever is next is told one number, and no more time than the client has said or there is here.
    fn next_deadline(fields: &Fields) {
        let (told, limit) = (client_deadline::Told::of(fields), Span::from_secs(60));
        let mut next = Fields::new();
        told.write(&mut next, Span::from_millis(3), limit, Some(Span::from_secs(90)));
        let begins = client_deadline::Told::of(&next).begins;
        assert!(begins.is_some_and(|left| left <= limit && told.begins.is_none_or(|own| left <= own)));
    }

    fn answer(settings: &crate::settings::Settings, fields: &Fields) {
        let begun = examine::session_begun(settings, fields);
        let sets = |line: &[u8], value: &[u8]| {
            let rest = line.trim_ascii().strip_prefix(b"sid=").and_then(|r| r.strip_prefix(value));
            rest.is_some_and(|rest| matches!(rest.trim_ascii_start().first(), None | Some(b';')))
        };
        let is_set = |value| fields.all(Name::SetCookie).any(|line| sets(line, value));
        assert!(begun.is_none_or(|value| !value.is_empty() && is_set(value)));
        if !cacheable::may_be_kept(StatusCode::OK, fields) {
            let has = |line: &[u8], word: &[u8]| {
                line.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
            };
            let mut lines = fields.all(Name::CacheControl);
            let says_no = lines.any(|line| has(line, b"private") || has(line, b"no-store"));
            let dated = [&b"expires"[..], b"last-modified", b"etag"];
            assert!(says_no || dated.iter().all(|name| fields.named(name).next().is_none()));
        }
    }

    pub(crate) fn rebuild(request: &mut bywash_message::Request, peer: &Peer) {
        crate::levels::take_out(&mut request.fields, "x-customer-level");
        request.fields.remove(Name::Ours);
        let is_level = |spelled: &[u8]| {
            let plain = spelled.to_ascii_lowercase();
            let plain = plain.iter().map(|byte| if b"_.".contains(byte) { b'-' } else { *byte });
            let plain: Vec<u8> = plain.collect();
            plain == b"x-customer-level" || plain == b"bywash-level"
        };
        assert!(!request.fields.iter().any(|field| is_level(field.spelled)));
        cookies::take_out(&mut request.fields, "bywash");
        assert_eq!(cookies::brought(&request.fields, "bywash"), None);
        let listen = &crate::SETTINGS.config.listen;
        forwarded::take_claims_out(&mut request.fields, peer, &listen.pass_fields);
        let never = [Name::MethodOverride, Name::HopClaim, Name::NeverPassed, Name::XForwardedOther];
        assert!(!never.iter().any(|name| request.fields.has(*name)));
        forwarded::rebuild(&mut request.fields, peer, listen);
    }
}

#[path = "../../crates/gateway/src/tokens.rs"]
#[allow(dead_code, reason = "what other parts of the gateway ask for")]
mod tokens;

#[path = "../../crates/gateway/src/levels.rs"]
#[allow(dead_code, reason = "what other parts of the gateway ask for")]
mod levels;

mod metrics {
    /// Nobody counts here.
    #[derive(Clone)]
    pub(crate) struct LevelMetrics;

    pub(crate) struct Metrics;

    impl Metrics {
        pub(crate) fn level(&self, _name: &str) -> LevelMetrics {
            LevelMetrics
        }
    }
}

mod access_log {
    /// In the year 2033.
    pub(crate) fn wall_clock_ms() -> u64 {
        2_000_000_000_000
    }
}

mod settings {
    pub(crate) struct Settings {
        pub(crate) config: bywash_config::Config,
        pub(crate) tokens: Option<crate::tokens::Tokens>,
        pub(crate) levels: Option<crate::levels::Levels>,
    }

    impl Settings {
        pub(crate) fn class(&self, class: bywash_engine::ClassId) -> &bywash_config::ClassConfig {
            &self.config.classes[class.index()]
        }

        pub(crate) fn trusts(&self, address: std::net::IpAddr) -> bool {
            self.config.listen.trusted_proxies.iter().any(|network| network.contains(address))
        }
    }
}

mod shared {
    use super::{DefaultHasher, Hash, Hasher, IpAddr};
    use bywash_engine::{AddressKey, AttemptKey, SessionKey};

    pub(crate) struct Shared;

    impl Shared {
        pub(crate) fn session_key(&self, cookie: &[u8]) -> SessionKey {
            SessionKey(hash(&cookie))
        }

        pub(crate) fn address_key(&self, address: IpAddr) -> AddressKey {
            AddressKey(hash(&address))
        }

        pub(crate) fn attempt_key<const PARTS: usize>(&self, parts: [&[u8]; PARTS]) -> AttemptKey {
            AttemptKey(hash(&parts))
        }
    }

    fn hash(what: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        hasher.finish()
    }
}

static SETTINGS: LazyLock<settings::Settings> = LazyLock::new(|| {
    let text = "version = 1\nupstream.server = 'http://127.0.0.1:1'\n\
                listen.trusted_proxies = ['10.0.0.0/8', 'fd00::/8']\n\
                identify.session = 'cookie:sid'\nidentify.charge = 'address'\n\
                identify.signals = ['cookie:a', 'referrer:a.b', 'header:b', 'returning']\n";
    match Config::parse(text, "fuzz") {
        Ok((config, _)) => settings::Settings {
            tokens: tokens(&config),
            levels: levels(&config),
            config,
        },
        Err(problems) => panic!("{}", problems.render(false)),
    }
});

/// Keys that were in no file.
fn tokens(config: &Config) -> Option<tokens::Tokens> {
    let mut config = config.clone();
    let keys = Keys::new(&Secrets::fresh(Secret::from_bytes([7; 32])));
    config.identify.token = Some(Token { cookie: "bywash".into(), file: "none".into(), keys });
    tokens::Tokens::of(&config)
}

/// The same, and the classes have none of these levels.
fn levels(config: &Config) -> Option<levels::Levels> {
    let mut config = config.clone();
    config.levels = Some(Levels {
        names: vec!["high".into(), "low".into()],
        default: Level(1),
        file: "none".into(),
        keys: LevelKeys::new(&Secrets::fresh(Secret::from_bytes([7; 32]))),
        customer_header: Some("x-customer-level".into()),
    });
    levels::Levels::of(&config, &metrics::Metrics)
}

/// Enough for what is added here to a head within [`SMALL`].
const LARGE: Limits = Limits { target: 512, fields: 32, bytes: 8192 };

fuzz_target!(|input: &[u8]| {
    let [kind, head @ ..] = input else { return };
    let Some(end) = bywash_fuzz::end(head, &SMALL) else { return };
    let Ok(mut request) = Request::parse(&head[..end], &SMALL) else { return };
    let from = if kind & 1 == 1 { "10.0.0.1:1" } else { "[2001:db8::1]:1" };
    let from = from.parse().expect("an address");
    let peer = request::Peer::new(&SETTINGS, from, kind & 2 == 2);
    let facts = request::examine(&shared::Shared, &SETTINGS, &request, &peer);
    assert!(peer.is_trusted() || facts.client == peer.address);
    let named = request.fields.named(b"x-customer-level").collect::<Vec<_>>();
    let is_high = peer.is_trusted() && named == [b"high"];
    assert_eq!(facts.level, Some(Level(u8::from(!is_high))));
    assert_eq!(facts.client, facts.client.to_canonical());
    assert!(facts.request.proven.is_empty(), "nobody has signed that");
    request.fields.remove_hop_by_hop();
    request::rebuild(&mut request, &peer);
    for once in [Name::XForwardedFor, Name::XForwardedProto, Name::XRealIp] {
        assert_eq!(request.fields.all(once).count(), 1);
    }
    let chain = request.fields.get(Name::XForwardedFor).expect("it was counted");
    let last = chain.rsplit(|byte| *byte == b' ').next().expect("there is always one");
    assert_eq!(last, peer.address.to_string().as_bytes());
    if !peer.is_trusted() {
        assert_eq!(chain, last);
        assert!(!request.fields.has(Name::Forwarded));
    }
    if request.fields.has(Name::Host) {
        let mut out = Vec::new();
        let target = request.target.path_and_query();
        write_request(&mut out, &request.method, target, &request.fields, request.framing);
        let again = Request::parse(&out, &LARGE).expect("it is a head");
        assert_eq!(again.target, request.target);
        // The next gateway behind this one, which trusts it, finds the same client.
        let behind = request::Peer::new(&SETTINGS, "10.0.0.2:1".parse().expect("one"), false);
        let seen = request::examine(&shared::Shared, &SETTINGS, &again, &behind);
        assert_eq!(seen.client, facts.client);
        assert_eq!(seen.request.session, facts.request.session);
        assert_eq!(seen.request.class, facts.request.class);
    }
});
