//! The first phase: determines the visitor and the class of a request.
//!
//! `bywash_message` has already checked that the message may be passed on.

use std::net::IpAddr;

use bywash_config::{Level, Mode, PrincipalKind, Session};
use bywash_engine::RuleId;
use bywash_engine::classify::{Asked, HasField};
use bywash_engine::{AddressKey, AttemptKey, ClassId, Request as EngineRequest, SessionKey, Tier};
use bywash_message::{Fields, Request};
use bywash_token::UnixTime;

use super::client_deadline::Deadlines;
use super::forwarded::Origin;
use super::{Peer, forwarded, signals};
use crate::identity::cookies;
use crate::identity::tokens::Shown;
use crate::process::wall_clock::{unix_ms, unix_s};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::telemetry::metrics::{CustomerLevel, Doubt};

/// The facts that the gateway derives from a request's head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) request: EngineRequest,
    /// The client's address, as far as the hops in front are trusted.
    pub(crate) client: IpAddr,
    /// The reason why a forwarding field of a trusted hop was not believed.
    pub(crate) doubt: Option<Doubt>,
    /// Decisions are enforced: the class is in mode `enforce` and the client falls into its
    /// percentage.
    pub(crate) enforced: bool,
    /// The content of the request's session token.
    pub(crate) token: Shown,
    /// The client's connection is encrypted, as far as the hops in front are trusted.
    pub(crate) secure: bool,
    /// The method is safe: it only retrieves something (RFC 9110 §9.2.1).
    pub(crate) safe: bool,
    /// The client's own deadline.
    pub(crate) deadlines: Deadlines,
    /// The customer level that the request claims.
    pub(crate) customer_level: CustomerLevel,
    /// The service level of the request, if levels are configured.
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
    let class = config.lowest(classes);
    let cookie = session_cookie(settings).and_then(|name| cookies::brought(fields, name));
    let treated = EngineRequest { also: classes.without(class), ..EngineRequest::of(class) };
    let enforced = settings.classes(&treated).any(|class| {
        class.mode == Mode::Enforce
            && is_of_part(class.enforce_percent, || peer.address_key(shared, client))
    });
    let token = shown(settings, fields, cookie, enforced);
    let session = match config.identify.session {
        Session::Token => token.session.map(|name| shared.secret.session_key(&name.0)),
        Session::Cookie(_) | Session::Auto | Session::None => {
            cookie.map(|cookie| shared.secret.session_key(cookie))
        }
    };
    let address = peer.address_key(shared, client);
    let request = EngineRequest {
        session,
        address: Some(address),
        charged: config.identify.principal == PrincipalKind::Address,
        signals: signals::shown(&config.identify.signals, fields, token.ordered.is_some()),
        proven: token.proven,
        attempt: Some(attempt(shared, request, session, address)),
        retry: signals::is_retry(&config.identify.retries, fields),
        cancellable: enforced && settings.classes(&treated).any(|class| class.class.stop.is_some()),
        rule: rule(shared, settings, request, class),
        ..treated
    };
    let deadlines = Deadlines::of(fields);
    let levels = settings.levels.as_ref();
    let customer_level = levels
        .map_or(CustomerLevel::Nothing, |levels| levels.customer_level(fields, peer.is_trusted));
    // The greater level is the worse one.
    let level = levels.and_then(|levels| {
        settings.classes(&request).map(|class| levels.level(class.level, customer_level)).max()
    });
    Facts {
        request,
        client,
        doubt,
        enforced,
        token,
        secure,
        safe,
        deadlines,
        customer_level,
        level,
    }
}

/// The fields of a request, for the classifier.
struct FieldsOf<'a>(&'a Fields);

impl HasField for FieldsOf<'_> {
    fn has(&self, name: &str, is_value: &dyn Fn(&[u8]) -> bool) -> bool {
        self.0.named(name.as_bytes()).any(is_value)
    }
}

/// Returns the rule that applies to a request of this class. No rule applies to a transaction.
fn rule(shared: &Shared, settings: &Settings, request: &Request, class: ClassId) -> Option<RuleId> {
    let browses = settings.class(class).class.tier == Tier::Browsing;
    shared.elephants.rule_of(request, &settings.config.classifier).filter(|_| browses)
}

/// Returns whether a client falls into a percentage. The address decides, because a client cannot
/// choose it as it can choose a cookie. So a refused client does not gain from trying another
/// cookie.
fn is_of_part(enforce_percent: u8, address: impl FnOnce() -> AddressKey) -> bool {
    enforce_percent >= 100 || (u128::from(address().0) * 100) >> 64 < u128::from(enforce_percent)
}

/// Returns the name of the application's session cookie, if it has one and its name is known.
fn session_cookie(settings: &Settings) -> Option<&str> {
    settings.session_cookie.as_ref()?.name()
}

fn shown(settings: &Settings, fields: &Fields, cookie: Option<&[u8]>, gives: bool) -> Shown {
    let Some(tokens) = &settings.tokens else { return Shown::default() };
    let token = cookies::brought(fields, tokens.cookie());
    tokens.shown(UnixTime::from_millis(unix_ms()), token, cookie, gives)
}

/// Returns the cookie of the session that a response begins.
pub(super) fn session_begun<'a>(settings: &Settings, fields: &'a Fields) -> Option<&'a [u8]> {
    cookies::set(fields, session_cookie(settings)?, unix_s)
}

/// Returns a key by which the repetition of a request is recognised: the same visitor requests the
/// same target, or states by an `Idempotency-Key` that the request is the same. Without a session,
/// an address and a browser stand for the visitor, because many people share an address, and all of
/// them request the front page.
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
    shared.secret.attempt_key([
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
