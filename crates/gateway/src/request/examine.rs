//! The first phase: whose request is it, and of what class?
//!
//! That it is a message that may be passed on, `bywash_message` has made sure of.

use std::net::IpAddr;

use bywash_config::{Charge, Level, Mode, Session};
use bywash_engine::classify::{Asked, HasField};
use bywash_engine::throttle::RuleId;
use bywash_engine::{AddressKey, AttemptKey, ClassId, Request as EngineRequest, SessionKey, Tier};
use bywash_message::{Fields, Request};
use bywash_token::Moment;

use super::client_deadline::Told;
use super::forwarded::{Doubt, Origin};
use super::{Peer, cookies, forwarded, signals};
use crate::access_log::wall_clock_ms;
use crate::levels::Said;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::tokens::Shown;

/// What the gateway knows of a request from its head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) request: EngineRequest,
    /// The client's address, as far as the hops in front are believed.
    pub(crate) client: IpAddr,
    /// Why a forwarding field of a trusted hop was not believed.
    pub(crate) doubt: Option<Doubt>,
    /// What is decided about it is carried out, by its class and as its visitor is of the part that this is for.
    pub(crate) enforced: bool,
    /// What it shows of session tokens.
    pub(crate) token: Shown,
    /// Its way from the client is encrypted, as far as the hops in front are believed.
    pub(crate) secure: bool,
    /// It asks to see something and for nothing to be done (RFC 9110 §9.2.1).
    pub(crate) safe: bool,
    /// How long its client waits, by its own word.
    pub(crate) told: Told,
    /// What it says of its customer.
    pub(crate) said: Said,
    /// How much it deserves, if there are levels.
    pub(crate) level: Option<Level>,
}

pub(super) fn examine(
    shared: &Shared,
    settings: &Settings,
    request: &Request,
    peer: &Peer,
) -> Facts {
    let config = &settings.config;
    let (fields, safe) = (&request.fields, request.method.is_safe());
    let Origin { client, secure, doubt } = forwarded::origin(fields, peer, &config.listen);
    let classes = config.classifier.classes(&Asked {
        method: request.method.as_str(),
        target: request.target.path_and_query(),
        host: std::str::from_utf8(&request.authority).unwrap_or_default(),
        fields: &FieldsOf(fields),
    });
    let class = settings.lowest(classes);
    let cookie = session_cookie(settings).and_then(|name| cookies::brought(fields, name));
    let treated = EngineRequest { also: classes.without(class), ..EngineRequest::of(class) };
    let enforced = settings.classes(&treated).any(|class| {
        class.mode == Mode::Enforce
            && is_of_part(class.percent, || peer.address_key(shared, client))
    });
    let token = shown(settings, fields, cookie, enforced);
    let session = match config.identify.session {
        Session::Token => token.session.map(|name| shared.session_key(&name.0)),
        Session::Cookie(_) | Session::Auto | Session::None => {
            cookie.map(|cookie| shared.session_key(cookie))
        }
    };
    let address = peer.address_key(shared, client);
    let request = EngineRequest {
        session,
        address: Some(address),
        charged: config.identify.charge == Charge::Address,
        signals: signals::shown(&config.identify.signals, fields, token.ordered.is_some()),
        proven: token.proven,
        attempt: Some(attempt(shared, request, session, address)),
        retry: signals::is_retry(&config.identify.retries, fields),
        stoppable: enforced && settings.classes(&treated).any(|class| class.class.stop.is_some()),
        rule: rule(shared, settings, request, class),
        ..treated
    };
    let told = Told::of(fields);
    let levels = settings.levels.as_ref();
    let said = levels.map_or(Said::Nothing, |levels| levels.said(fields, peer.is_trusted));
    // The greater is the worse one.
    let level = levels.and_then(|levels| {
        settings.classes(&request).map(|class| levels.level(class.level, said)).max()
    });
    Facts { request, client, doubt, enforced, token, secure, safe, told, said, level }
}

/// Fields, as a classifier asks for them.
struct FieldsOf<'a>(&'a Fields);

impl HasField for FieldsOf<'_> {
    fn has(&self, name: &str, is_value: &dyn Fn(&[u8]) -> bool) -> bool {
        self.0.named(name.as_bytes()).any(is_value)
    }
}

/// The rule that a request of this class falls under. A transaction falls under none.
fn rule(shared: &Shared, settings: &Settings, request: &Request, class: ClassId) -> Option<RuleId> {
    let browses = settings.class(class).class.tier == Tier::Browse;
    shared.elephants.rule_of(request, &settings.config.classifier).filter(|_| browses)
}

/// Whether a client is of so many in a hundred. By its address, which nobody can choose as a cookie can be: so who is
/// refused does not try another one.
fn is_of_part(percent: u8, address: impl FnOnce() -> AddressKey) -> bool {
    percent >= 100 || (u128::from(address().0) * 100) >> 64 < u128::from(percent)
}

/// The name of the application's session cookie, if it has one and it is known.
fn session_cookie(settings: &Settings) -> Option<&str> {
    settings.session_cookie.as_ref()?.name()
}

fn shown(settings: &Settings, fields: &Fields, cookie: Option<&[u8]>, gives: bool) -> Shown {
    let Some(tokens) = &settings.tokens else { return Shown::default() };
    let token = cookies::brought(fields, tokens.cookie());
    tokens.shown(Moment::from_millis(wall_clock_ms()), token, cookie, gives)
}

/// The cookie of the session that an answer begins.
pub(super) fn session_begun<'a>(settings: &Settings, fields: &'a Fields) -> Option<&'a [u8]> {
    cookies::set(fields, session_cookie(settings)?, wall_clock_s)
}

/// The time in seconds since 1970.
pub(super) fn wall_clock_s() -> i64 {
    i64::try_from(wall_clock_ms() / 1000).unwrap_or(i64::MAX)
}

/// What its repetition is known by: the same visitor asks for the same, or says by an
/// `Idempotency-Key` that it is the same. Without a session a visitor is an address and a browser:
/// many people share an address, and all of them want the front page.
fn attempt(
    shared: &Shared,
    request: &Request,
    session: Option<SessionKey>,
    address: AddressKey,
) -> AttemptKey {
    let named = |name: &[u8]| request.fields.named(name).next();
    let (kind, who, browser) = match session {
        Some(SessionKey(key)) => (b"s", key, None),
        None => (b"a", address.0, named(b"user-agent")),
    };
    let same = if request.method.is_safe() { None } else { named(b"idempotency-key") };
    let target = request.target.path_and_query().as_bytes();
    shared.attempt_key([
        kind,
        &who.to_ne_bytes(),
        browser.unwrap_or_default(),
        request.method.as_str().as_bytes(),
        if same.is_some() { b"k" } else { b"t" },
        same.unwrap_or(target),
    ])
}

#[cfg(test)]
mod tests;
