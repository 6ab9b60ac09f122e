//! The rules of the reference reader, one function each: for a line, a field, a target, a host and
//! the framing of a body (RFC 9112 §2–§7, RFC 9110 §5, RFC 3986 §3).

use super::reading::{Field, Request, Speaker};

/// The reason why the reader stops before the end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The received bytes end before the message does.
    More,
    /// The bytes break a rule. The text describes that rule.
    Fault(&'static str),
}

/// Splits an absolute target `http://authority/path` (or `https`) into its authority and the rest.
/// Returns `None` for a target of another form.
pub(super) fn absolute(target: &[u8]) -> Option<(&[u8], &[u8])> {
    let after = |scheme: &[u8]| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    let rest = after(b"http://").or_else(|| after(b"https://"))?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    Some(rest.split_at(end))
}

pub(super) fn request_line(line: &[u8]) -> Result<(&[u8], &[u8], u8), Stop> {
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Stop::Fault("a request line without exactly three words"));
    };
    let minor = match version {
        b"HTTP/1.0" => 0,
        b"HTTP/1.1" => 1,
        _ => return Err(Stop::Fault("a version other than HTTP/1.0 and HTTP/1.1")),
    };
    if !is_token(method) || method == b"CONNECT" {
        return Err(Stop::Fault("a method that is not a token, or is CONNECT"));
    }
    Ok((method, target, minor))
}

pub(super) fn check_target(request: &Request, speaker: Speaker) -> Result<(), Stop> {
    if request.target == b"*" && request.method == b"OPTIONS" {
        return Ok(());
    }
    let whole = absolute(&request.target);
    let path = match whole {
        Some(_) if speaker == Speaker::Gateway => {
            return Err(Stop::Fault("an absolute target from a gateway"));
        }
        // An absolute target may have no path.
        Some((_, rest)) => rest,
        None if request.target.starts_with(b"/") => &request.target,
        None => return Err(Stop::Fault("a target that is invalid")),
    };
    if whole.is_some_and(|(authority, _)| !is_host(authority) || authority.is_empty()) {
        return Err(Stop::Fault("an authority that is invalid"));
    }
    let is_end = |byte: &u8| *byte == b'?';
    let (path, query) = path.split_at(path.iter().position(is_end).unwrap_or(path.len()));
    // Browsers send these characters unencoded. In queries, browsers also send backslashes and bare
    // percent signs.
    let tolerated = |byte: u8| b"\"<>[]^`{|}".contains(&byte);
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/%".contains(&byte) || tolerated(byte)
    };
    let in_query = |byte: u8| plain(byte) || matches!(byte, b'?' | b'\\');
    let in_order = path.iter().all(|byte| plain(*byte))
        && encodings_are_whole(path)
        && query.iter().all(|byte| in_query(*byte));
    if in_order {
        Ok(())
    } else {
        Err(Stop::Fault("a target with bytes that are not allowed in it"))
    }
}

/// Returns whether two hexadecimal digits follow every percent sign of `path`.
fn encodings_are_whole(path: &[u8]) -> bool {
    let mut pieces = path.split(|byte| *byte == b'%');
    pieces.next();
    pieces.all(|piece| piece.get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit)))
}

pub(super) fn check_host(request: &Request) -> Result<(), Stop> {
    let hosts: Vec<&[u8]> = request.all("host").collect();
    match (hosts[..].first(), hosts.len()) {
        (None, _) if request.minor == 0 => Ok(()),
        (Some(host), 1) if is_host(host) => match absolute(&request.target) {
            Some((authority, _)) if !authority.eq_ignore_ascii_case(host) => {
                Err(Stop::Fault("a request line for another host"))
            }
            _ => Ok(()),
        },
        _ => Err(Stop::Fault("no single valid Host")),
    }
}

/// Returns whether `host` is a name or an address, with an optional port (RFC 3986 §3.2.2). An
/// empty host is allowed.
fn is_host(host: &[u8]) -> bool {
    let colon = host.iter().rposition(|byte| matches!(byte, b':' | b']'));
    let (name, port) = match colon {
        Some(at) if host[at] == b':' => (&host[..at], &host[at + 1..]),
        _ => (host, &[][..]),
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%".contains(byte);
    let literal = name.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    let in_literal = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    let named = literal.map_or_else(
        || name.iter().all(plain),
        |inside| !inside.is_empty() && inside.iter().all(in_literal),
    );
    named && port.len() <= 5 && port.iter().all(u8::is_ascii_digit)
}

pub(super) fn check_framing(request: &Request) -> Result<(), Stop> {
    let codings: Vec<&[u8]> = request.all("transfer-encoding").collect();
    let lengths: Vec<&[u8]> = request.all("content-length").collect();
    match (&codings[..], &lengths[..]) {
        ([], []) => Ok(()),
        ([], [one]) if decimal(one).is_some() => Ok(()),
        ([], _) => Err(Stop::Fault("no single valid Content-Length")),
        ([one], []) if one.eq_ignore_ascii_case(b"chunked") && request.minor == 1 => Ok(()),
        (_, []) => Err(Stop::Fault("a Transfer-Encoding other than chunked, or in HTTP/1.0")),
        (_, _) => Err(Stop::Fault("both Content-Length and Transfer-Encoding")),
    }
}

pub(super) fn check_trailers(trailers: &[Field], speaker: Speaker) -> Result<(), Stop> {
    const NEVER: [&str; 6] =
        ["content-length", "transfer-encoding", "host", "trailer", "connection", "te"];
    let forbidden =
        |field: &Field| NEVER.iter().any(|n| field.0.eq_ignore_ascii_case(n.as_bytes()));
    if speaker == Speaker::Gateway && trailers.iter().any(forbidden) {
        return Err(Stop::Fault("framing or routing in a trailer"));
    }
    Ok(())
}

pub(super) fn field(line: &[u8]) -> Result<Field, Stop> {
    let colon = line.iter().position(|byte| *byte == b':');
    let (name, value) = line.split_at(colon.ok_or(Stop::Fault("a field without a colon"))?);
    if !is_token(name) {
        return Err(Stop::Fault("a field name that is not a token"));
    }
    let value = value.get(1..).unwrap_or_default();
    if value.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f) {
        return Err(Stop::Fault("a control character in a field value"));
    }
    Ok((name.to_vec(), value.trim_ascii().to_vec()))
}

pub(super) fn chunk_size(line: &[u8], speaker: Speaker) -> Result<usize, Stop> {
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let (digits, extension) = line.split_at(end);
    let plain = extension.is_empty() || (speaker == Speaker::Client && extension[0] == b';');
    let printable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | 0x80..);
    if !plain || !extension.iter().all(printable) || digits.len() > 16 {
        return Err(Stop::Fault("a chunk size that is invalid"));
    }
    let text = str::from_utf8(digits).unwrap_or_default();
    let size = isize::from_str_radix(text, 16).ok().and_then(|size| usize::try_from(size).ok());
    size.ok_or(Stop::Fault("a chunk size that is invalid"))
}

/// Parses a decimal number, up to the maximum of a signed 64-bit number. Returns `None` for a
/// greater number, and for text with anything other than digits.
pub(super) fn decimal(text: &[u8]) -> Option<usize> {
    let digits = text.iter().all(u8::is_ascii_digit) && text.len() <= 19;
    let number: i64 = str::from_utf8(text).ok().filter(|_| digits)?.parse().ok()?;
    usize::try_from(number).ok()
}

fn is_token(text: &[u8]) -> bool {
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> bool {
        let request = Request {
            method: b"GET".to_vec(),
            target: text.as_bytes().to_vec(),
            minor: 1,
            fields: Vec::new(),
            body: Vec::new(),
            span: 0..0,
        };
        check_target(&request, Speaker::Client).is_ok()
    }

    #[test]
    fn a_target_is_a_path_or_a_whole_address() {
        for good in ["/", "/a%20b?x=%zz\\", "/{a}|b", "http://a", "http://a:80/x", "http://a?x"] {
            assert!(target(good), "{good}");
        }
        for wrong in
            ["", "*", "a", "/%2", "/%zz", "/a\\b", "/a#b", "/\u{e4}", "http:///x", "ftp://a/"]
        {
            assert!(!target(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_host_is_a_name_or_an_address_and_perhaps_a_port() {
        for good in ["", "a", "a.test:80", "[::1]", "[::1]:8080", "a_b", "a:", "a%41"] {
            assert!(is_host(good.as_bytes()), "{good}");
        }
        for wrong in ["a b", "a/b", "u@a", "a:b", "a,b", "[::1", "::1", "[]", "a:123456"] {
            assert!(!is_host(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn a_number_is_digits_only() {
        assert_eq!(decimal(b"007"), Some(7));
        for wrong in
            ["", "+1", "-1", " 1", "1_0", "0x1", "9223372036854775808", "00000000000000000001"]
        {
            assert_eq!(decimal(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
