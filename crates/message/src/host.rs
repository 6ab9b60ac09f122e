//! Determines the host that a request is addressed to (RFC 9110 §7.2, RFC 9112 §3.2, RFC 3986
//! §3.2.2).

use std::net::Ipv6Addr;

use crate::fields::Fields;
use crate::name::Name;
use crate::parse_error::ParseError;

/// Returns the authority of a request, which is the value of `Host`. `needed` says whether `Host`
/// is mandatory.
///
/// # Errors
/// Returns [`ParseError::Host`] if `Host` is repeated or malformed, is missing although it is
/// needed, or contradicts an authority in the request line.
pub(crate) fn authority(
    fields: &mut Fields,
    named: Option<&[u8]>,
    needed: bool,
) -> Result<Box<[u8]>, ParseError> {
    let (host, second) = {
        let mut hosts = fields.all(Name::Host);
        (hosts.next(), hosts.next())
    };
    let authority: Box<[u8]> = match (host, named) {
        _ if second.is_some() => return Err(ParseError::Host),
        (Some(host), Some(named)) if host.eq_ignore_ascii_case(named) => host.into(),
        (Some(host), None) => host.into(),
        (None, Some(named)) if !needed => named.into(),
        (None, None) if !needed => return Ok(Box::default()),
        (Some(_), Some(_)) | (None, _) => return Err(ParseError::Host),
    };
    let (pushes, missing) = (host.is_none(), named.is_some() && authority.is_empty());
    if missing || !is_host(&authority) {
        return Err(ParseError::Host);
    }
    if pushes {
        fields.push(b"Host", &authority);
    }
    Ok(authority)
}

/// Returns the authority of an HTTP/2 request, which may be in a pseudo-field instead of `Host`
/// (RFC 9113 §8.3.1).
pub(crate) fn authority_of_h2(
    fields: &mut Fields,
    named: Option<&[u8]>,
) -> Result<Box<[u8]>, ParseError> {
    let needed = named.is_none();
    authority(fields, named, needed)
}

/// Returns whether the text could be a name or an address, with an optional port.
///
/// User names are not allowed, nor are percent-encoded characters or characters that names do not
/// use in practice. The empty text is allowed (RFC 9112 §3.2), and so is one dot at the end of a
/// name. No label of a name may be empty (RFC 1034 §3.1).
pub fn is_host(host: &[u8]) -> bool {
    let (name, port) = match memchr::memrchr2(b':', b']', host) {
        Some(at) if host[at] == b':' => (&host[..at], Some(&host[at + 1..])),
        _ => (host, None),
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let literal = name.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    let is_name = || {
        let labels = name.strip_suffix(b".").unwrap_or(name);
        let all_named = labels.split(|byte| *byte == b'.').all(|label| !label.is_empty());
        let is_empty = name.is_empty() && port.is_none();
        name.iter().all(plain) && (is_empty || all_named)
    };
    let named = literal.map_or_else(is_name, is_address);
    named && port.is_none_or(is_port)
}

/// Returns whether the text after a colon is a port. It may be empty (RFC 3986 §3.2.3).
fn is_port(port: &[u8]) -> bool {
    let number = |digits: &[u8]| {
        digits.iter().fold(0_u32, |number, digit| number * 10 + u32::from(digit - b'0'))
    };
    port.len() <= 5 && port.iter().all(u8::is_ascii_digit) && number(port) <= u16::MAX.into()
}

/// Returns whether the text is an IPv6 address.
fn is_address(address: &[u8]) -> bool {
    std::str::from_utf8(address).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}
