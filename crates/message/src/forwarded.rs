//! Reads `Forwarded` (RFC 7239) strictly and writes it in one form.
//!
//! One line of the field is parsed at a time. If a client leaves a quoted string open, the string
//! ends with its line at the latest. So it cannot hide the line that a hop appends. A line that
//! violates §4 is ignored as a whole. The parameters `for`, `proto` and `host` are understood; `by`
//! and extensions are left out. White space around a semicolon is accepted although §4 does not
//! allow it: some hops write it, and it is unambiguous.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::character_class::{is_token, trimmed};
use crate::host::is_host;

/// A node on the path of a request (RFC 7239 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// An address in its canonical form. An IPv4 address is never mapped into IPv6.
    Address(IpAddr),
    /// A node that does not disclose its address: `unknown`, an obfuscated name, or no `for` at
    /// all.
    Hidden,
}

/// One element of the field: it describes the request as it arrived at one hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// The node that the request came from (`for`).
    pub node: Node,
    /// The scheme of the request, if it is one of `http`, `https`, `ws` and `wss` (`proto`).
    pub proto: Option<&'static str>,
    /// The host of the request (`host`).
    pub host: Option<Vec<u8>>,
}

/// The schemes that are understood in `proto`.
const SCHEMES: [&str; 4] = ["http", "https", "ws", "wss"];

impl Node {
    /// Parses a node with or without a port (RFC 7239 §6). Returns `None` if the text is not a
    /// node.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (node, port) = if let Some(literal) = text.strip_prefix('[') {
            let (v6, port) = literal.split_once(']')?;
            let port = if port.is_empty() { None } else { Some(port.strip_prefix(':')?) };
            (Self::of(v6.parse::<Ipv6Addr>().ok()?.into()), port)
        } else {
            let (name, port) = text.split_once(':').map_or((text, None), |(n, p)| (n, Some(p)));
            let hidden = name.eq_ignore_ascii_case("unknown") || is_obfuscated(name);
            let address = || name.parse::<Ipv4Addr>().ok().map(|v4| Self::of(v4.into()));
            (if hidden { Self::Hidden } else { address()? }, port)
        };
        port.is_none_or(is_port).then_some(node)
    }

    /// Creates a node from an address. An IPv4-mapped IPv6 address becomes an IPv4 address.
    pub const fn of(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

/// Returns whether the text is a `port` or an `obfport` of RFC 7239 §6.
fn is_port(text: &str) -> bool {
    let digits = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    digits || is_obfuscated(text)
}

/// Returns whether the text is an `obfnode` of RFC 7239 §6.3.
fn is_obfuscated(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    text.strip_prefix('_').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(plain))
}

impl Forwarded {
    /// Creates the element of a request that came from this node, without scheme and host.
    pub const fn from(node: Node) -> Self {
        Self { node, proto: None, host: None }
    }

    /// Parses the elements of one line; the nearest hop is the last. Returns `None` if the line is
    /// malformed.
    pub fn parse_line(line: &[u8]) -> Option<Vec<Self>> {
        let (mut elements, mut rest) = (Vec::new(), trimmed(line));
        while !rest.is_empty() {
            let (element, behind) = Self::element(rest).ok()?;
            elements.extend(element);
            rest = match behind {
                [] => behind,
                [b',', behind @ ..] => trimmed(behind),
                _ => return None,
            };
        }
        Some(elements)
    }

    /// Parses one element. Returns the element, or `None` if it is empty, and the rest of the line.
    fn element(mut rest: &[u8]) -> Result<(Option<Self>, &[u8]), Malformed> {
        let mut element = Self::from(Node::Hidden);
        let mut names = Vec::new();
        loop {
            if let Some(Pair { name, value, behind }) = Pair::first(rest)? {
                match &name[..] {
                    _ if names.contains(&name) => return Err(Malformed),
                    b"for" => element.node = Node::parse(&value).ok_or(Malformed)?,
                    b"proto" => element.proto = scheme(&value)?,
                    b"host" if is_host(&value) => element.host = Some(value),
                    b"host" => return Err(Malformed),
                    _ => {}
                }
                names.push(name);
                rest = behind;
            }
            rest = trimmed(rest);
            match rest {
                [b';', behind @ ..] => rest = trimmed(behind),
                _ => return Ok(((!names.is_empty()).then_some(element), rest)),
            }
        }
    }

    /// Appends the element with the understood parameters, in the one form that the gateway writes.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self.node {
            Node::Address(IpAddr::V4(v4)) => out.extend_from_slice(format!("for={v4}").as_bytes()),
            Node::Address(IpAddr::V6(v6)) => {
                out.extend_from_slice(format!("for=\"[{v6}]\"").as_bytes());
            }
            Node::Hidden => out.extend_from_slice(b"for=unknown"),
        }
        if let Some(proto) = self.proto {
            out.extend_from_slice(b";proto=");
            out.extend_from_slice(proto.as_bytes());
        }
        if let Some(host) = &self.host {
            // A host contains no byte that a quoted string would have to escape.
            let quote: &[u8] = if host.iter().all(|byte| is_token(*byte)) { b"" } else { b"\"" };
            for part in [&b";host="[..], quote, host, quote] {
                out.extend_from_slice(part);
            }
        }
    }
}

/// The error for a line that violates RFC 7239.
struct Malformed;

/// A `forwarded-pair` and the text after it. The name is in lower case, and the value is not empty.
struct Pair<'a> {
    name: Vec<u8>,
    value: Vec<u8>,
    behind: &'a [u8],
}

impl<'a> Pair<'a> {
    /// Parses the pair at the start of the text. Returns `None` where the syntax allows a pair to
    /// be missing.
    fn first(text: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let (name, rest) = token(text);
        let name = name.to_ascii_lowercase();
        let (value, behind) = match rest {
            [] | [b';' | b',' | b' ' | b'\t', ..] if name.is_empty() => return Ok(None),
            [b'=', b'"', rest @ ..] => quoted(rest)?,
            [b'=', rest @ ..] => {
                let (value, behind) = token(rest);
                (value.to_vec(), behind)
            }
            _ => return Err(Malformed),
        };
        let is_whole = !name.is_empty() && !value.is_empty();
        if is_whole { Ok(Some(Self { name, value, behind })) } else { Err(Malformed) }
    }
}

fn token(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !is_token(*byte)).unwrap_or(text.len());
    text.split_at(end)
}

/// Parses a quoted string after its opening quotation mark (RFC 9110 §5.6.4). Returns its content
/// and the text after it.
fn quoted(mut rest: &[u8]) -> Result<(Vec<u8>, &[u8]), Malformed> {
    let mut content = Vec::new();
    loop {
        rest = match rest {
            [b'"', behind @ ..] => return Ok((content, behind)),
            [] | [b'\\'] => return Err(Malformed),
            [b'\\', byte, behind @ ..] | [byte, behind @ ..] => {
                content.push(*byte);
                behind
            }
        }
    }
}

/// Parses a scheme (RFC 3986 §3.1). Returns `None` if it is valid but not one of [`SCHEMES`].
fn scheme(text: &[u8]) -> Result<Option<&'static str>, Malformed> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    if !text.iter().all(plain) || !text[0].is_ascii_alphabetic() {
        return Err(Malformed);
    }
    Ok(SCHEMES.into_iter().find(|known| known.as_bytes().eq_ignore_ascii_case(text)))
}
