//! The first phase: whose request is it, and of what class?
//!
//! That it is a message that may be passed on, `bywash_message` has made sure of.

use std::net::IpAddr;

use bywash_config::Charge;
use bywash_engine::{Request as EngineRequest, SessionKey};
use bywash_message::{Fields, Name, Request};

use super::{Peer, forwarded};
use crate::settings::Settings;
use crate::shared::Shared;

/// What the gateway knows of a request from its head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) request: EngineRequest,
    /// The client's address, as far as the hops in front are believed.
    pub(crate) client: IpAddr,
}

pub(super) fn examine(
    shared: &Shared,
    settings: &Settings,
    request: &Request,
    peer: &Peer,
) -> Facts {
    let config = &settings.config;
    let client = forwarded::client(&request.fields, peer, &config.listen.trusted_proxies);
    let identify = &config.identify;
    let named = identify.session_cookie.as_deref();
    let session = named.and_then(|name| session_of(shared, name, &request.fields));
    let address = match identify.charge {
        Charge::Session => None,
        Charge::Address => Some(shared.address_key(client)),
    };
    let class = config.classifier.class(request.method.as_str(), request.target.path());
    Facts { request: EngineRequest { session, address, ..EngineRequest::of(class) }, client }
}

/// The session that a request claims: its cookie, hashed. The first of that name counts.
fn session_of(shared: &Shared, name: &str, fields: &Fields) -> Option<SessionKey> {
    let mut pairs = fields.all(Name::Cookie).flat_map(|value| value.split(|byte| *byte == b';'));
    let value = pairs.find_map(|pair| named(name, pair))?;
    Some(shared.session_key(value))
}

/// The session that an answer begins.
pub(super) fn session_begun(
    shared: &Shared,
    settings: &Settings,
    fields: &Fields,
) -> Option<SessionKey> {
    let name = settings.config.identify.session_cookie.as_deref()?;
    fields.all(Name::SetCookie).find_map(|value| {
        let pair = value.split(|byte| *byte == b';').next()?;
        named(name, pair).map(|value| shared.session_key(value))
    })
}

/// The value of a `name=value` pair, if it is of this name and not empty.
fn named<'a>(name: &str, pair: &'a [u8]) -> Option<&'a [u8]> {
    let pair = pair.trim_ascii();
    let value = pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
    if value.is_empty() { None } else { Some(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_by_its_whole_name_and_not_if_it_is_empty() {
        assert_eq!(named("sid", b" sid=a1 "), Some(&b"a1"[..]));
        for pair in ["sid", "sid=", "xsid=1", "sidx=1", "SID=1"] {
            assert_eq!(named("sid", pair.as_bytes()), None, "{pair}");
        }
    }
}
