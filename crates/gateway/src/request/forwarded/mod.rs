//! The origin of a request, and the fields that tell the upstream about it.
//!
//! `X-Forwarded-For`, `-Proto`, `-Host`, `-Port`, `X-Real-IP` and `Forwarded` (RFC 7239) are
//! rewritten from their parsed values. Values from a client are discarded; values from a trusted
//! hop are continued. The client is the last address of the chain that does not belong to a trusted
//! hop. Other spellings of these fields are discarded even if a trusted hop lets them through,
//! because no hop writes them.
//!
//! **One field is authoritative** (`listen.forwarded`). A hop that writes one of the two fields may
//! let a client's version of the other one through, and nothing shows which of them is the hop's.
//! Therefore only the authoritative field and its companions give the chain, the scheme and the
//! host. If the other field names a different client, a hop in front is misconfigured, and neither
//! is believed: to the engine and in the log, the hop is the client. The upstream gets `unknown`,
//! because an application may give the hop's own address more rights than an unknown one.

use std::net::IpAddr;

use bywash_config::{ForwardingField, Listen, Network};
use bywash_message::{Fields, Forwarded, Name, Node, is_host};

use super::Peer;
use crate::telemetry::metrics::Doubt;

/// The fields that state the origin of a request.
const FIELDS: [Name; 7] = [
    Name::XForwardedFor,
    Name::XForwardedProto,
    Name::XForwardedHost,
    Name::XForwardedPort,
    Name::ForwardedAlias,
    Name::XRealIp,
    Name::Forwarded,
];

/// The accepted schemes.
const SCHEMES: [&str; 4] = ["http", "https", "ws", "wss"];

/// The origin of a request, as far as the hop in front is trusted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The client's address.
    pub(super) client: IpAddr,
    /// The client speaks TLS with the first hop.
    pub(super) secure: bool,
    /// The reason why a field of a trusted hop was not believed, if any.
    pub(super) doubt: Option<Doubt>,
}

/// Returns the origin of a request with these fields.
pub(super) fn origin(fields: &Fields, peer: &Peer, listen: &Listen) -> Origin {
    let info = ForwardingInfo::by(peer, fields, listen);
    Origin {
        client: info.client.unwrap_or(peer.address),
        secure: peer.is_secure || matches!(info.proto, Some("https" | "wss")),
        doubt: info.doubt,
    }
}

/// Rewrites the forwarding fields.
pub(super) fn rebuild(fields: &mut Fields, peer: &Peer, listen: &Listen) {
    let info = ForwardingInfo::by(peer, fields, listen);
    for name in FIELDS {
        fields.remove(name);
    }
    fields.push(b"X-Forwarded-For", &info.addresses(peer));
    fields.push(b"X-Forwarded-Proto", info.proto.unwrap_or(peer.scheme()).as_bytes());
    let host = info.host.clone().or_else(|| fields.get(Name::Host).map(<[u8]>::to_vec));
    if let Some(host) = host {
        fields.push(b"X-Forwarded-Host", &host);
    }
    if let Some(port) = &info.port {
        fields.push(b"X-Forwarded-Port", port);
    }
    match info.client {
        _ if info.doubt == Some(Doubt::Differ) => fields.push(b"X-Real-IP", UNKNOWN),
        Some(client) => fields.push(b"X-Real-IP", client.to_string().as_bytes()),
        None => fields.push(b"X-Real-IP", peer.text.as_bytes()),
    }
    if peer.is_trusted && listen.forwarded == ForwardingField::Forwarded {
        fields.push(b"Forwarded", &info.forwarded(peer));
    }
}

/// The name of a node with a hidden address (RFC 7239 §6.2).
const UNKNOWN: &[u8] = b"unknown";

/// The statements of a trusted hop.
#[derive(Default)]
struct ForwardingInfo {
    /// One element for each hop, the nearest last.
    chain: Vec<Forwarded>,
    /// The client, if the chain names one.
    client: Option<IpAddr>,
    proto: Option<&'static str>,
    host: Option<Vec<u8>>,
    port: Option<Vec<u8>>,
    doubt: Option<Doubt>,
}

impl ForwardingInfo {
    /// Reads the fields of the peer. The fields of an untrusted peer are ignored.
    fn by(peer: &Peer, fields: &Fields, listen: &Listen) -> Self {
        if !peer.is_trusted {
            return Self::default();
        }
        let mut info = match listen.forwarded {
            ForwardingField::XForwardedFor => Self::in_x_forwarded(fields, listen),
            ForwardingField::Forwarded => Self::in_forwarded(fields, listen),
        };
        if info.doubt == Some(Doubt::Differ) {
            info.chain = vec![Forwarded { proto: info.proto, ..Forwarded::from(Node::Hidden) }];
            (info.client, info.host, info.port) = (None, None, None);
        }
        info
    }

    fn in_x_forwarded(fields: &Fields, listen: &Listen) -> Self {
        let chain = x_forwarded_for(fields);
        let (client, _) = farthest(&chain, &listen.trusted_proxies);
        let other = || farthest(&forwarded(fields).0, &listen.trusted_proxies).0;
        let doubt = doubt(fields, [Name::XForwardedFor, Name::Forwarded], client, other);
        let proto = one(fields, Name::XForwardedProto);
        let known = |proto: &[u8]| SCHEMES.into_iter().find(|known| known.as_bytes() == proto);
        let is_port = |port: &&[u8]| port.len() <= 5 && port.iter().all(u8::is_ascii_digit);
        Self {
            client,
            proto: proto.and_then(known),
            host: one(fields, Name::XForwardedHost).filter(|host| is_host(host)).map(Vec::from),
            port: one(fields, Name::XForwardedPort).filter(is_port).map(Vec::from),
            doubt,
            chain,
        }
    }

    fn in_forwarded(fields: &Fields, listen: &Listen) -> Self {
        let (chain, is_whole) = forwarded(fields);
        let (client, element) = farthest(&chain, &listen.trusted_proxies);
        let other = || farthest(&x_forwarded_for(fields), &listen.trusted_proxies).0;
        let doubt = doubt(fields, [Name::Forwarded, Name::XForwardedFor], client, other);
        Self {
            client,
            proto: element.and_then(|element| element.proto),
            host: element.and_then(|element| element.host.clone()),
            port: None,
            doubt: doubt.or((!is_whole).then_some(Doubt::Malformed)),
            chain,
        }
    }

    /// Formats the chain and the peer as in `X-Forwarded-For`.
    fn addresses(&self, peer: &Peer) -> Vec<u8> {
        let mut list = Vec::new();
        for element in &self.chain {
            match element.node {
                Node::Address(address) => list.extend_from_slice(address.to_string().as_bytes()),
                Node::Hidden => list.extend_from_slice(UNKNOWN),
            }
            list.extend_from_slice(b", ");
        }
        list.extend_from_slice(peer.text.as_bytes());
        list
    }

    /// Formats the chain and the peer as in `Forwarded`.
    fn forwarded(&self, peer: &Peer) -> Vec<u8> {
        let mut list = Vec::new();
        for element in &self.chain {
            element.write(&mut list);
            list.extend_from_slice(b", ");
        }
        let proto = Some(peer.scheme());
        Forwarded { proto, ..Forwarded::from(Node::of(peer.address)) }.write(&mut list);
        list
    }
}

/// Compares the two fields, of which the first is authoritative and names `client`.
fn doubt(
    fields: &Fields,
    [field, other]: [Name; 2],
    client: Option<IpAddr>,
    other_client: impl FnOnce() -> Option<IpAddr>,
) -> Option<Doubt> {
    match (fields.has(field), fields.has(other)) {
        (_, false) => None,
        (false, true) => Some(Doubt::NotAuthoritative),
        (true, true) => {
            let client = client?;
            other_client().is_some_and(|other| other != client).then_some(Doubt::Differ)
        }
    }
}

/// Returns the client that a chain names, and the farthest element that a trusted hop has written.
/// No trusted hop vouches for an element beyond a hidden node.
fn farthest<'a>(
    chain: &'a [Forwarded],
    trusted: &[Network],
) -> (Option<IpAddr>, Option<&'a Forwarded>) {
    let (mut client, mut farthest) = (None, None);
    for element in chain.iter().rev() {
        farthest = Some(element);
        let Node::Address(address) = element.node else { break };
        client = Some(address);
        if !trusted.iter().any(|network| network.contains(address)) {
            break;
        }
    }
    (client, farthest)
}

/// Returns the chain of `X-Forwarded-For`, over all its lines. Empty elements do not count (RFC
/// 9110 §5.6.1). An element that is not an address is a hidden node.
fn x_forwarded_for(fields: &Fields) -> Vec<Forwarded> {
    let lines = fields.all(Name::XForwardedFor);
    let elements = lines.flat_map(|line| line.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    let bare = |text: &[u8]| str::from_utf8(text).ok()?.parse().ok().map(Node::of);
    let node = |text: &[u8]| bare(text).or_else(|| Node::parse(text)).unwrap_or(Node::Hidden);
    elements.filter(|text| !text.is_empty()).map(|text| Forwarded::from(node(text))).collect()
}

/// Returns the chain of `Forwarded`, over all its lines, and whether all of them are well-formed.
/// Lines before a malformed one are ignored.
fn forwarded(fields: &Fields) -> (Vec<Forwarded>, bool) {
    let mut chain = Vec::new();
    let mut is_whole = true;
    for line in fields.all(Name::Forwarded) {
        if let Some(elements) = Forwarded::parse_line(line) {
            chain.extend(elements);
        } else {
            chain = vec![Forwarded::from(Node::Hidden)];
            is_whole = false;
        }
    }
    (chain, is_whole)
}

/// Returns the value of a field that occurs exactly once and is not empty.
fn one(fields: &Fields, name: Name) -> Option<&[u8]> {
    let mut values = fields.all(name);
    values.next().filter(|value| !value.is_empty() && values.next().is_none())
}

/// Removes the fields that an application might believe although a client can write them
/// ([`Name::HopClaim`], [`Name::MethodOverride`]). The operator can let some through
/// (`listen.pass_fields`): from a client only method overrides, from a trusted hop any of them.
pub(super) fn take_claims_out(fields: &mut Fields, peer: &Peer, passes: &[String]) {
    const CLAIMS: [Name; 3] = [Name::MethodOverride, Name::HopClaim, Name::XForwardedOther];
    fields.remove(Name::NeverPassed);
    if !CLAIMS.into_iter().any(|name| fields.has(name)) {
        return;
    }
    fields.retain(|field| {
        let is_hops = field.name != Name::MethodOverride;
        let named =
            || passes.iter().any(|name| field.spelled.eq_ignore_ascii_case(name.as_bytes()));
        !CLAIMS.contains(&field.name) || ((peer.is_trusted || !is_hops) && named())
    });
}

#[cfg(test)]
mod tests;
