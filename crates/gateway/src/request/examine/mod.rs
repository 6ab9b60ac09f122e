//! The first phase of a request: determines its visitor and its class.
//!
//! `bywash_message` has already checked that the message is valid and may be forwarded.

use std::net::IpAddr;

use bywash_config::{Level, Mode, PrincipalKind, Session};
use bywash_engine::RuleId;
use bywash_engine::classify::{HasField, RequestParts};
use bywash_engine::{
    AddressKey, AttemptKey, ClassId, PopulationKey, Request as EngineRequest, SessionKey, Tier,
};
use bywash_message::{Fields, Name, Request};
use bywash_token::UnixTime;

use super::client_deadline::Deadlines;
use super::forwarded::Origin;
use super::{Peer, forwarded, signals};
use crate::identity::agents::Signature;
use crate::identity::tokens::Shown;
use crate::identity::{cookies, populations};
use crate::process::wall_clock::{unix_ms, unix_s};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::telemetry::metrics::{CustomerLevel, Doubt};

/// The facts that the gateway derives from a request's head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) request: EngineRequest,
    /// The client's address, as trusted hops name it. Without a trusted hop, it is the peer's
    /// address.
    pub(crate) client: IpAddr,
    /// The reason why a forwarding field of a trusted hop was not believed, if any.
    pub(crate) doubt: Option<Doubt>,
    /// Whether decisions are enforced: a class of the request is in mode `enforce`, and the client
    /// falls into its percentage.
    pub(crate) enforced: bool,
    /// The facts that the request's session token proves.
    pub(crate) token: Shown,
    /// The request's signature as an automated agent; `None` if it has none.
    pub(crate) signature: Option<Signature>,
    /// Whether the client's connection to the first trusted hop, or to the gateway, is encrypted.
    pub(crate) secure: bool,
    /// Whether the method is safe: it only retrieves something (RFC 9110 §9.2.1).
    pub(crate) safe: bool,
    /// The client's own deadlines.
    pub(crate) deadlines: Deadlines,
    /// The level that the request names for its customer.
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
    let classes = config.classifier.classes(&RequestParts {
        method: request.method.as_str(),
        target: request.target.path_and_query(),
        host: std::str::from_utf8(&request.authority).unwrap_or_default(),
        fields: &FieldsOf(fields),
    });
    let class = config.lowest(classes);
    let cookie = session_cookie(settings).and_then(|name| cookies::request_cookie(fields, name));
    let treated = EngineRequest { also: classes.without(class), ..EngineRequest::of(class) };
    let enforced = settings.classes(&treated).any(|class| {
        class.mode == Mode::Enforce
            && is_of_part(class.enforce_percent, || peer.address_key(shared, client))
    });
    let token = shown(settings, fields, cookie, enforced);
    let name = token.session.map(|name| name.0);
    let session = match config.identify.session {
        Session::Token => name.as_ref().map(|name| &name[..]),
        Session::Cookie(_) | Session::Auto | Session::None => cookie,
    };
    let session = session.map(|name| shared.secret.session_key(name));
    let address = peer.address_key(shared, client);
    let Sender { address, signature, agent, visitor } =
        Sender::of(shared, settings, request, address, secure);
    let request = EngineRequest {
        session,
        address: Some(address),
        charged: agent.is_some() || config.identify.principal == PrincipalKind::Address,
        signals: signals::shown(&config.identify.signals, fields, token.ordered.is_some()),
        population: agent.filter(|_| config.identify.populations),
        visitor: (config.identify.populations)
            .then(|| populations::visitor(shared.secret, visitor, request)),
        part: config.identify.populations && populations::is_part_of_page(fields),
        proven: token.proven,
        attempt: Some(attempt(shared, request, session, address)),
        retry: signals::is_retry(&config.identify.retries, fields),
        cancellable: enforced && settings.classes(&treated).any(|class| class.class.stop.is_some()),
        rule: rule(shared, settings, request, class),
        ..treated
    };
    let (customer_level, level) = levels(settings, fields, peer, &request);
    Facts {
        request,
        client,
        doubt,
        enforced,
        token,
        signature,
        secure,
        safe,
        deadlines: Deadlines::of(fields),
        customer_level,
        level,
    }
}

/// Returns the level that a request names for its customer, and its service level. Returns `None` for
/// the latter if levels are not configured.
fn levels(
    settings: &Settings,
    fields: &Fields,
    peer: &Peer,
    request: &EngineRequest,
) -> (CustomerLevel, Option<Level>) {
    let Some(levels) = &settings.levels else { return (CustomerLevel::Nothing, None) };
    let customer = levels.customer_level(fields, peer.is_trusted);
    // A request of several classes gets the worst of their levels, which has the greatest value.
    let level = settings.classes(request).map(|class| levels.level(class.level, customer)).max();
    (customer, level)
}

/// The sender of a request: an automated agent if one has signed it, otherwise its address.
struct Sender {
    /// The key of the address. All requests that an agent signed have the same.
    address: AddressKey,
    signature: Option<Signature>,
    /// The population of the agent, if one has signed the request.
    agent: Option<PopulationKey>,
    /// The address by which visits are told apart.
    visitor: AddressKey,
}

impl Sender {
    /// Returns the sender of a request that came from this address. `secure` says whether the client
    /// uses TLS.
    fn of(
        shared: &Shared,
        settings: &Settings,
        request: &Request,
        address: AddressKey,
        secure: bool,
    ) -> Self {
        let unsigned = Self { address, signature: None, agent: None, visitor: address };
        let Some(agents) = settings.agents.as_ref() else { return unsigned };
        let (now, secret) = (unix_ms() / 1000, shared.secret);
        let signature = agents.signature(request, address, secure, now);
        let Some(agent) = signature.and_then(Signature::agent) else {
            return Self { signature, ..unsigned };
        };
        let arrival = shared.appointments.arrival(agents.name(agent), now);
        let population = agents.population(secret, agent, arrival);
        Self {
            address: agents.address(secret, agent),
            signature,
            agent: Some(population),
            // A visit ends when an appointment begins or ends, because the rank changes then.
            visitor: AddressKey(population.0),
        }
    }
}

/// Gives the classifier access to the fields of a request.
struct FieldsOf<'a>(&'a Fields);

impl HasField for FieldsOf<'_> {
    fn has(&self, name: &str, is_value: &dyn Fn(&[u8]) -> bool) -> bool {
        self.0.named(name.as_bytes()).any(is_value)
    }
}

/// Returns the rule for elephants that applies to a request of this class. Returns `None` for a
/// transaction, to which no rule applies.
fn rule(shared: &Shared, settings: &Settings, request: &Request, class: ClassId) -> Option<RuleId> {
    let browses = settings.class(class).class.tier == Tier::Browsing;
    shared.elephants.rule_of(request, &settings.config.classifier).filter(|_| browses)
}

/// Returns whether a client belongs to the percentage of clients for which a class is enforced. The
/// client's address decides. A client can choose its cookie but not its address, so a refused
/// client gains nothing by sending another cookie.
fn is_of_part(enforce_percent: u8, address: impl FnOnce() -> AddressKey) -> bool {
    enforce_percent >= 100 || (u128::from(address().0) * 100) >> 64 < u128::from(enforce_percent)
}

/// Returns the name of the application's session cookie. Returns `None` if sessions are not
/// identified by one, or if its name is not known yet.
fn session_cookie(settings: &Settings) -> Option<&str> {
    settings.session_cookie.as_ref()?.name()
}

fn shown(settings: &Settings, fields: &Fields, cookie: Option<&[u8]>, gives: bool) -> Shown {
    let Some(tokens) = &settings.tokens else { return Shown::default() };
    let token = cookies::request_cookie(fields, tokens.cookie());
    tokens.shown(UnixTime::from_millis(unix_ms()), token, cookie, gives)
}

/// Returns the value of the session cookie that a response sets, if it sets one.
pub(super) fn session_begun<'a>(settings: &Settings, fields: &'a Fields) -> Option<&'a [u8]> {
    cookies::response_cookie(fields, session_cookie(settings)?, unix_s)
}

/// Returns the key by which a repeated request is recognised. Two requests of the same visitor with
/// the same method have the same key in two cases: they request the same target, or the method is
/// unsafe and they have the same `Idempotency-Key`. Without a session, the address together with
/// the `User-Agent` identifies the visitor: many people may share an address, and all of them
/// request the front page.
fn attempt(
    shared: &Shared,
    request: &Request,
    session: Option<SessionKey>,
    address: AddressKey,
) -> AttemptKey {
    let (kind, who, browser) = match session {
        Some(SessionKey(key)) => (b"s", key, None),
        None => (b"a", address.0, request.fields.get(Name::UserAgent)),
    };
    let same = if request.method.is_safe() {
        None
    } else {
        request.fields.named(b"idempotency-key").next()
    };
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
