//! Determines the origin of a request, and writes the header fields that tell the upstream.
//!
//! The fields `X-Forwarded-For`, `-Proto`, `-Host`, `-Port`, `X-Real-IP` and `Forwarded` (RFC 7239)
//! are rewritten from their parsed values. Values from a client are discarded. Values from a
//! trusted hop are continued. The client is the last address of the chain that does not belong to a
//! trusted hop. Other spellings of these field names are discarded even from a trusted hop, because
//! a hop itself does not write them.
//!
//! **One field is authoritative** (`listen.forwarded`). A hop that writes one of the two fields may
//! forward a client's version of the other one, and nothing shows which of them the hop has
//! written. Therefore only the authoritative field, with its companions, gives the chain, the
//! scheme and the host.
//!
//! If the other field names a different client, a hop in front is misconfigured, and neither field
//! is believed. The engine and the log then take the hop for the client. The upstream gets
//! `unknown`, because an application may give the hop's own address more rights than an unknown
//! one.

use std::net::IpAddr;

use bywash_config::{ForwardingField, Listen, Network};
use bywash_message::{Fields, Forwarded, Name, Node, is_host};

use super::Peer;
use crate::telemetry::metrics::Doubt;

/// The names of the fields that state the origin of a request. The gateway rewrites all of them.
const FIELDS: [Name; 7] = [
    Name::XForwardedFor,
    Name::XForwardedProto,
    Name::XForwardedHost,
    Name::XForwardedPort,
    Name::ForwardedAlias,
    Name::XRealIp,
    Name::Forwarded,
];

/// The schemes that are accepted from a trusted hop. Others are ignored.
const SCHEMES: [&str; 4] = ["http", "https", "ws", "wss"];

/// The origin of a request, as trusted hops state it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The client's address; without a trusted hop, the address of the peer.
    pub(super) client: IpAddr,
    /// Whether the client speaks TLS with the first hop.
    pub(super) secure: bool,
    /// The reason why a field of a trusted hop was not believed, if any.
    pub(super) doubt: Option<Doubt>,
}

/// Returns the origin of a request with these fields. The fields of an untrusted peer are ignored.
pub(super) fn origin(fields: &Fields, peer: &Peer, listen: &Listen) -> Origin {
    let info = ForwardingInfo::by(peer, fields, listen);
    Origin {
        client: info.client.unwrap_or(peer.address),
        secure: peer.is_secure || matches!(info.proto, Some("https" | "wss")),
        doubt: info.doubt,
    }
}

/// Rewrites the forwarding fields of a request for the upstream, and adds the peer to the chain.
pub(super) fn rebuild(fields: &mut Fields, peer: &Peer, listen: &Listen) {
    let info = ForwardingInfo::by(peer, fields, listen);
    for name in FIELDS {
        fields.remove(name);
    }
    if info.chain.is_empty() {
        fields.push(b"X-Forwarded-For", peer.text.as_bytes());
    } else {
        fields.push(b"X-Forwarded-For", &info.addresses(peer));
    }
    fields.push(b"X-Forwarded-Proto", info.proto.unwrap_or(peer.scheme()).as_bytes());
    match &info.host {
        Some(host) => fields.push(b"X-Forwarded-Host", host),
        None => fields.push_copy(b"X-Forwarded-Host", Name::Host),
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

/// The name that stands for a hidden address in a forwarding field (RFC 7239 §6.2).
const UNKNOWN: &[u8] = b"unknown";

/// The statements of a trusted hop about the origin of a request.
#[derive(Default)]
struct ForwardingInfo {
    /// The hops and the client, one element each; the nearest hop is the last.
    chain: Vec<Forwarded>,
    /// The address of the client, if the chain names it.
    client: Option<IpAddr>,
    proto: Option<&'static str>,
    host: Option<Vec<u8>>,
    port: Option<Vec<u8>>,
    doubt: Option<Doubt>,
}

impl ForwardingInfo {
    /// Reads the forwarding fields that the peer has sent. Ignores those of an untrusted peer.
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

    /// Formats the chain, with the peer as its last element, in the syntax of `X-Forwarded-For`.
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

    /// Formats the chain, with the peer as its last element, in the syntax of `Forwarded`.
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

/// Returns the reason if the fields are not believed. `field` is authoritative and names `client`.
/// `other` is the name of the other field, and `other_client` returns the client that it names.
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
/// The search goes from the nearest hop outward, and ends at the first address that is not trusted.
/// It also ends at a hidden node, because no trusted hop vouches for an element beyond it.
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

/// Returns the chain of `X-Forwarded-For`, over all its lines. Skips empty elements (RFC 9110
/// §5.6.1). An element that is not an address becomes a hidden node.
fn x_forwarded_for(fields: &Fields) -> Vec<Forwarded> {
    let lines = fields.all(Name::XForwardedFor);
    let elements = lines.flat_map(|line| line.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    let bare = |text: &[u8]| str::from_utf8(text).ok()?.parse().ok().map(Node::of);
    let node = |text: &[u8]| bare(text).or_else(|| Node::parse(text)).unwrap_or(Node::Hidden);
    elements.filter(|text| !text.is_empty()).map(|text| Forwarded::from(node(text))).collect()
}

/// Returns the chain of `Forwarded`, over all its lines, and whether all lines are well-formed. A
/// malformed line replaces itself and all lines before it with a hidden node.
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

/// Returns the value of a field. Returns `None` unless the field occurs exactly once and is not
/// empty.
fn one(fields: &Fields, name: Name) -> Option<&[u8]> {
    let mut values = fields.all(name);
    values.next().filter(|value| !value.is_empty() && values.next().is_none())
}

/// Removes fields that an application might believe although a client can write them
/// ([`Name::HopClaim`], [`Name::MethodOverride`]). `passes` names those that the operator lets
/// through (`listen.pass_fields`): method overrides from any peer, all others from a trusted hop
/// only.
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
