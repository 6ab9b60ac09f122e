//! Converts the head of a request to the form that the `h2` library takes.
//!
//! The library takes a URI of the `http` crate, which in one respect is stricter than this gateway:
//! it does not allow `"`, `<` or `>` in a query. Clients send these characters unescaped, and
//! HTTP/1 servers accept them. No application distinguishes them from their escapes, so they are
//! escaped here. If a target or a host cannot be expressed as a URI, the client is at fault and not
//! the server, because nothing was sent.

use std::borrow::Cow;

use bywash_message::{Framing, Name, ParseError};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Uri, Version, header};

use super::super::Outbound;

pub(super) fn request(outbound: &Outbound<'_>, secure: bool) -> Result<Request<()>, ParseError> {
    let mut request = Request::new(());
    *request.method_mut() = outbound.method.clone();
    *request.uri_mut() = uri(outbound, secure)?;
    *request.version_mut() = Version::HTTP_2;
    let mut headers = outbound.fields.to_header_map();
    headers.remove(header::HOST);
    if let Framing::Length(length) = outbound.framing {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    if outbound.takes_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    *request.headers_mut() = headers;
    Ok(request)
}

fn uri(outbound: &Outbound<'_>, secure: bool) -> Result<Uri, ParseError> {
    let host = outbound.fields.get(Name::Host).unwrap_or_default();
    let authority = Authority::try_from(host).map_err(|_| ParseError::Host)?;
    // Of a checked target, only the length can be wrong: a URI has at most 65,534 bytes.
    let target = escaped(outbound.target);
    let target = PathAndQuery::try_from(target.as_ref()).map_err(|_| ParseError::UriTooLong)?;
    let scheme = if secure { Scheme::HTTPS } else { Scheme::HTTP };
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(target);
    uri.build().map_err(|_| ParseError::Host)
}

/// Escapes those characters that the `http` crate does not accept in a path or a query. A canonical
/// path contains none of them.
fn escaped(target: &str) -> Cow<'_, str> {
    const REFUSED: [char; 3] = ['"', '<', '>'];
    if !target.contains(REFUSED) {
        return Cow::Borrowed(target);
    }
    Cow::Owned(target.replace('"', "%22").replace('<', "%3C").replace('>', "%3E"))
}

#[cfg(test)]
mod tests {
    use bywash_message::{Fields, Target};
    use http::Method;

    use super::*;

    fn head(host: &str, target: &str) -> Result<Uri, ParseError> {
        let mut fields = Fields::new();
        fields.push(b"Host", host.as_bytes());
        let outbound = Outbound {
            method: &Method::GET,
            target,
            fields: &fields,
            framing: Framing::None,
            takes_trailers: false,
            upgrade: None,
        };
        request(&outbound, false).map(|request| request.uri().clone())
    }

    #[test]
    fn every_query_that_the_message_layer_takes_can_be_said() {
        for byte in 0..=u8::MAX {
            for target in [&b"/a?q="[..], b"/a"].map(|begin| [begin, &[byte, b'z']].concat()) {
                let Ok(target) = Target::canonical(&target) else { continue };
                let uri = head("shop.example", target.path_and_query());
                assert!(uri.is_ok(), "{target:?}: {uri:?}");
            }
        }
    }

    #[test]
    fn what_a_uri_may_not_hold_is_escaped_and_nothing_else_changes() {
        let path_and_query =
            |target| head("a", target).unwrap().path_and_query().unwrap().to_string();
        assert_eq!(path_and_query("/?q=\"x\"&r=<b>"), "/?q=%22x%22&r=%3Cb%3E");
        assert_eq!(path_and_query("/a%3Cb?{|}^`\\'[]~%zz"), "/a%3Cb?{|}^`\\'[]~%zz");
        assert_eq!(path_and_query("*"), "*");
    }

    #[test]
    fn what_cannot_be_said_is_the_clients_fault() {
        for host in ["", "a%41b", "a b", "[1:2:3:4:5:6:7:8:9:a:b]", "a/b", "[::1"] {
            assert_eq!(head(host, "/"), Err(ParseError::Host), "{host}");
        }
        assert_eq!(head("a", &format!("/{}", "x".repeat(65_534))), Err(ParseError::UriTooLong));
    }
}
