//! Where a request comes from, as the upstream is told.
//!
//! `X-Forwarded-For`, `-Proto`, `-Host`, `-Port`, `X-Real-IP` and `Forwarded` (RFC 7239) are
//! written anew. What a client says in them is thrown away; what a trusted hop says is kept and
//! gone on from. Other spellings of them are no hop's, and thrown away whoever lets them through.
//! The client is the last address of the chain that is not a trusted hop's own.

use std::net::{IpAddr, SocketAddr};

use bywash_config::Network;
use bywash_message::{Fields, Name};

use super::Peer;

/// The fields that say where a request comes from.
const FIELDS: [Name; 8] = [
    Name::XForwardedFor,
    Name::XForwardedProto,
    Name::XForwardedHost,
    Name::XForwardedPort,
    // Every other: `-Server`, `-Prefix`, `-User`, `-Ssl`.
    Name::XForwardedOther,
    Name::ForwardedAlias,
    Name::XRealIp,
    Name::Forwarded,
];

/// The client's address, as far as the hops in front are believed.
pub(super) fn client(fields: &Fields, peer: &Peer, trusted: &[Network]) -> IpAddr {
    if !peer.is_trusted {
        return peer.address;
    }
    let mut client = peer.address;
    // From the nearest on; what stands beyond one that is no address has nobody to vouch for it.
    for hop in hops(fields).into_iter().rev().map_while(|hop| hop) {
        client = hop;
        if !trusted.iter().any(|network| network.contains(hop)) {
            break;
        }
    }
    client
}

/// Whether the client speaks TLS with the first hop, as far as the hops in front are believed.
pub(super) fn is_secure(fields: &Fields, peer: &Peer) -> bool {
    let says = || one_proto(fields).is_some_and(|proto| matches!(proto, b"https" | b"wss"));
    peer.is_secure || (peer.is_trusted && says())
}

/// The scheme that a hop names; two are none.
fn one_proto(fields: &Fields) -> Option<&[u8]> {
    let mut protos = fields.all(Name::XForwardedProto);
    protos.next().filter(|_| protos.next().is_none())
}

/// The addresses of the chain, the nearest last.
fn hops(fields: &Fields) -> Vec<Option<IpAddr>> {
    if fields.has(Name::XForwardedFor) {
        return elements(fields, Name::XForwardedFor).map(address).collect();
    }
    elements(fields, Name::Forwarded).map(node_of).collect()
}

/// The `for` of one element of `Forwarded`.
fn node_of(element: &[u8]) -> Option<IpAddr> {
    let mut pairs = element.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let node = pairs.find_map(|pair| {
        let (name, value) = pair.split_at_checked(4)?;
        name.eq_ignore_ascii_case(b"for=").then_some(value)
    });
    node.and_then(address)
}

/// The elements of a list field, over all its lines. One that is empty is none (RFC 9110, 5.6.1).
fn elements(fields: &Fields, name: Name) -> impl Iterator<Item = &[u8]> {
    let lines = fields.all(name);
    let elements = lines.flat_map(|line| line.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    elements.filter(|element| !element.is_empty())
}

/// An address with or without a port, brackets and quotes.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?.trim_matches('"');
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|a| a.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

/// Writes them anew.
pub(super) fn rebuild(fields: &mut Fields, peer: &Peer, client: IpAddr) {
    let before = if peer.is_trusted { Before::of(fields) } else { Before::default() };
    for name in FIELDS {
        if !(peer.is_trusted && name == Name::XForwardedOther) {
            fields.remove(name);
        }
    }
    let mut chain = before.chain;
    if chain.is_empty() && client != peer.address {
        // Its hop speaks `Forwarded` alone; who reads this field only is told the same client.
        chain.extend_from_slice(format!("{client}, ").as_bytes());
    }
    chain.extend_from_slice(peer.text.as_bytes());
    fields.push(b"X-Forwarded-For", &chain);
    fields.push(b"X-Forwarded-Proto", before.proto.as_deref().unwrap_or(peer.scheme().as_bytes()));
    let host = before.host.or_else(|| fields.get(Name::Host).map(<[u8]>::to_vec));
    if let Some(host) = host {
        fields.push(b"X-Forwarded-Host", &host);
    }
    if let Some(port) = before.port {
        fields.push(b"X-Forwarded-Port", &port);
    }
    if client == peer.address {
        fields.push(b"X-Real-IP", peer.text.as_bytes());
    } else {
        fields.push(b"X-Real-IP", client.to_string().as_bytes());
    }
    if let Some(mut forwarded) = before.forwarded {
        forwarded.extend_from_slice(format!("for={}", node(peer.address)).as_bytes());
        fields.push(b"Forwarded", &forwarded);
    }
}

/// An address as RFC 7239 writes it.
fn node(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("\"[{v6}]\""),
    }
}

/// What a trusted hop has said.
#[derive(Default)]
struct Before {
    /// Ends in a comma if it is not empty.
    chain: Vec<u8>,
    forwarded: Option<Vec<u8>>,
    proto: Option<Vec<u8>>,
    host: Option<Vec<u8>>,
    port: Option<Vec<u8>>,
}

impl Before {
    fn of(fields: &Fields) -> Self {
        let one = |name| {
            let value = fields.get(name).filter(|value| is_plain(value))?;
            fields.all(name).nth(1).is_none().then(|| value.to_vec())
        };
        Self {
            chain: joined(fields, Name::XForwardedFor),
            // A hop that speaks `X-Forwarded-For` may pass a client's `Forwarded` on as it came.
            forwarded: Some(joined(fields, Name::Forwarded))
                .filter(|list| !list.is_empty() && !fields.has(Name::XForwardedFor)),
            proto: one(Name::XForwardedProto)
                .filter(|proto| matches!(&**proto, b"http" | b"https" | b"ws" | b"wss")),
            host: one(Name::XForwardedHost),
            port: one(Name::XForwardedPort).filter(|port| port.iter().all(u8::is_ascii_digit)),
        }
    }
}

/// The elements of a list, each followed by a comma.
fn joined(fields: &Fields, name: Name) -> Vec<u8> {
    let mut list = Vec::new();
    for element in elements(fields, name) {
        list.extend_from_slice(element);
        list.extend_from_slice(b", ");
    }
    list
}

/// One name or number: nothing that a reader could split otherwise.
fn is_plain(value: &[u8]) -> bool {
    !value.is_empty()
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::super::tests::fields;
    use super::*;

    fn peer(is_trusted: bool) -> Peer {
        let address: IpAddr = "10.0.0.1".parse().unwrap();
        let text = address.to_string();
        Peer { address, text, is_trusted, is_secure: false, proven: std::cell::Cell::default() }
    }

    fn trusted() -> Vec<Network> {
        vec!["10.0.0.0/8".parse().unwrap()]
    }

    fn client_of(lines: &[(&str, &str)], is_trusted: bool) -> String {
        client(&fields(lines), &peer(is_trusted), &trusted()).to_string()
    }

    #[test]
    fn a_stranger_is_who_its_connection_says() {
        assert_eq!(client_of(&[("x-forwarded-for", "192.0.2.9")], false), "10.0.0.1");
    }

    #[test]
    fn the_client_is_the_last_that_is_no_trusted_hop() {
        let chain = |text| client_of(&[("X-Forwarded-For", text)], true);
        assert_eq!(chain("192.0.2.9"), "192.0.2.9");
        assert_eq!(chain("198.51.100.1, 192.0.2.9, 10.9.9.9"), "192.0.2.9");
        assert_eq!(chain("10.1.1.1, 10.2.2.2"), "10.1.1.1");
        assert_eq!(chain("198.51.100.1, unknown, 10.9.9.9"), "10.9.9.9");
        assert_eq!(chain("[2001:db8::7]:443"), "2001:db8::7");
        assert_eq!(chain("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(chain(""), "10.0.0.1");
        let two = [("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-For", "192.0.2.2, 10.3.3.3")];
        assert_eq!(client_of(&two, true), "192.0.2.2");
    }

    #[test]
    fn what_a_trusted_hop_lets_through_in_another_spelling_is_nobodys_word() {
        let lines = [
            ("X-Forwarded-For", "192.0.2.9"),
            ("X_Forwarded_For", "6.6.6.6"),
            ("x.forwarded.for", "6.6.6.6"),
            ("X-Forwarded-Proto", "https"),
            ("X_Forwarded_Proto", "http"),
            ("X_Real_IP", "6.6.6.6"),
            ("X_Forwarded_User", "root"),
        ];
        assert_eq!(client_of(&lines, true), "192.0.2.9");
        let mut map = fields(&lines);
        rebuild(&mut map, &peer(true), "192.0.2.9".parse().unwrap());
        let mut out = Vec::new();
        map.write(&mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "X-Forwarded-For: 192.0.2.9, 10.0.0.1\r\nX-Forwarded-Proto: https\r\n\
             X-Real-IP: 192.0.2.9\r\n"
        );
    }

    #[test]
    fn a_chain_is_the_same_for_whoever_reads_it_next() {
        let mut map = fields(&[("Forwarded", "for=192.0.2.9")]);
        rebuild(&mut map, &peer(true), "192.0.2.9".parse().unwrap());
        assert_eq!(map.get(Name::XForwardedFor), Some(&b"192.0.2.9, 10.0.0.1"[..]));
        assert_eq!(client_of(&[("X-Forwarded-For", "192.0.2.9,, ,")], true), "192.0.2.9");
        assert_eq!(
            client_of(&[("X-Forwarded-For", ","), ("Forwarded", "for=1.2.3.4")], true),
            "10.0.0.1"
        );
    }

    #[test]
    fn forwarded_is_read_where_there_is_nothing_else() {
        let line = [("Forwarded", "for=192.0.2.4;proto=https, For=\"[2001:db8::1]:47\"")];
        assert_eq!(client_of(&line, true), "2001:db8::1");
    }

    #[test]
    fn what_a_stranger_says_is_thrown_away() {
        let mut map = fields(&[
            ("Host", "shop.example"),
            ("X-Forwarded-For", "192.0.2.9"),
            ("X_Forwarded_For", "192.0.2.9"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "evil.example"),
            ("X-Forwarded-Port", "1"),
            ("X-Real-IP", "192.0.2.9"),
            ("Forwarded", "for=192.0.2.9"),
        ]);
        rebuild(&mut map, &peer(false), "10.0.0.1".parse().unwrap());
        let mut out = Vec::new();
        map.write(&mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "Host: shop.example\r\nX-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: http\r\n\
             X-Forwarded-Host: shop.example\r\nX-Real-IP: 10.0.0.1\r\n"
        );
    }

    #[test]
    fn what_a_trusted_hop_says_is_gone_on_from() {
        let mut map = fields(&[
            ("X-Forwarded-For", "192.0.2.9"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "shop.example"),
        ]);
        rebuild(&mut map, &peer(true), "192.0.2.9".parse().unwrap());
        let value = |name| String::from_utf8(map.get(name).unwrap().to_vec()).unwrap();
        assert_eq!(value(Name::XForwardedFor), "192.0.2.9, 10.0.0.1");
        assert_eq!(value(Name::XForwardedProto), "https");
        assert_eq!(value(Name::XForwardedHost), "shop.example");
        assert_eq!(value(Name::XRealIp), "192.0.2.9");
    }

    #[test]
    fn forwarded_goes_on_from_a_hop_that_speaks_nothing_else() {
        let mut map = fields(&[("Forwarded", "for=192.0.2.9")]);
        rebuild(&mut map, &peer(true), "192.0.2.9".parse().unwrap());
        assert_eq!(map.get(Name::Forwarded), Some(&b"for=192.0.2.9, for=10.0.0.1"[..]));
        let mut both = fields(&[("Forwarded", "for=6.6.6.6"), ("X-Forwarded-For", "192.0.2.9")]);
        rebuild(&mut both, &peer(true), "192.0.2.9".parse().unwrap());
        assert!(!both.has(Name::Forwarded));
    }

    #[test]
    fn a_connection_is_as_secure_as_a_trusted_hop_says() {
        let secure = |proto: &str, is_trusted| {
            is_secure(&fields(&[("X-Forwarded-Proto", proto)]), &peer(is_trusted))
        };
        assert_eq!((secure("https", true), secure("https", false)), (true, false));
        assert_eq!((secure("http", true), secure("https, http", true)), (false, false));
        assert!(!is_secure(&fields(&[]), &peer(true)));
        assert!(is_secure(&fields(&[]), &Peer { is_secure: true, ..peer(false) }));
    }

    #[test]
    fn a_scheme_that_is_none_is_not_passed_on() {
        let mut map = fields(&[("X-Forwarded-Proto", "https, http")]);
        rebuild(&mut map, &peer(true), "10.0.0.1".parse().unwrap());
        assert_eq!(map.get(Name::XForwardedProto), Some(&b"http"[..]));
    }
}
