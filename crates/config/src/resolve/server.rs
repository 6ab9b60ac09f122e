//! Parses the URL of a server: `http://HOST:PORT`, `https://`, `h2c://` or `unix:/PATH`.
//!
//! A server's URL (RFC 3986 §3) has only a scheme and an authority without user information. A list
//! of servers has no use for the other parts of a URL.

use std::net::Ipv6Addr;

use crate::socket;
use crate::source::shown;
use crate::upstream::{Collector, Endpoint, Scheme, Server};

/// The reason why a text is not the URL of a server, and the proposed correction.
#[derive(Debug)]
pub(super) struct NoServer {
    pub(super) why: &'static str,
    pub(super) help: String,
}

const SCHEMES: [Scheme; 3] = [Scheme::Http, Scheme::Https, Scheme::H2c];

pub(super) fn parse(text: &str) -> Result<Server, NoServer> {
    if let Some(path) = text.strip_prefix(socket::PREFIX) {
        return on_socket(path);
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(no_scheme(text));
    };
    let of_name = |known: &&Scheme| known.name().eq_ignore_ascii_case(scheme);
    let Some(scheme) = SCHEMES.iter().find(of_name).copied() else {
        return Err(no_scheme(rest));
    };
    if rest.starts_with('/') || rest.starts_with(socket::PREFIX) {
        return Err(no_scheme_of_socket(rest));
    }
    let (host, port) = authority(scheme, rest)?;
    Ok(Server { scheme, endpoint: Endpoint::Tcp { host, port } })
}

/// Parses the URL of a trace collector, which is reached in clear text (`http`).
pub(super) fn collector(text: &str) -> Result<Collector, NoServer> {
    match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
            authority(Scheme::Http, rest).map(|(host, port)| Collector { host, port })
        }
        Some((_, rest)) => Err(no(Scheme::Http, "a collector is reached by http:// only", rest)),
        None => Err(no(Scheme::Http, "it does not start with http://", text)),
    }
}

/// Returns whether a text is a host name, as a certificate may have it, or an IP address.
pub(super) fn is_name(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok() || is_host(text)
}

fn on_socket(path: &str) -> Result<Server, NoServer> {
    let wrong = |why| {
        let help = match socket::meant(path) {
            Some(meant) => format!("write \"{}\"", shown(&meant)),
            None => "write \"unix:/run/app.sock\"".to_string(),
        };
        NoServer { why, help }
    };
    let path = socket::path(path).map_err(wrong)?;
    Ok(Server { scheme: Scheme::Http, endpoint: Endpoint::Unix(path) })
}

/// Returns the error for a Unix socket after a scheme, such as `http://unix:/run/app.sock`, which
/// other proxies accept.
fn no_scheme_of_socket(rest: &str) -> NoServer {
    let path = rest.strip_prefix(socket::PREFIX).unwrap_or(rest);
    let path = format!("/{}", path.trim_matches('/'));
    let help = format!("write \"{}{}\"", socket::PREFIX, shown(&path));
    NoServer { why: "a socket has no scheme: the gateway uses HTTP/1.1 without TLS there", help }
}

fn no_scheme(rest: &str) -> NoServer {
    if rest.starts_with('/') {
        let help = format!("write \"{}{}\"", socket::PREFIX, shown(rest));
        return NoServer { why: "it has no scheme", help };
    }
    no(Scheme::Http, "it does not start with http://, https://, h2c:// or unix:", rest)
}

/// Parses host and port from the text after `://`. If the text has no port, returns the port of the
/// scheme.
fn authority(scheme: Scheme, rest: &str) -> Result<(String, u16), NoServer> {
    let no = |why, meant: &str| no(scheme, why, meant);
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if let Some((before, _)) = rest.split_once(['/', '?', '#']) {
        return Err(no("a path is not allowed here", before));
    }
    let (host, port) = split(scheme, rest)?;
    let port = match port {
        None => scheme.port(),
        Some(port) => match port.parse() {
            Ok(port) if port != 0 => port,
            _ => return Err(no("the port is not a number from 1 to 65535", host)),
        },
    };
    Ok((host_name(scheme, host)?, port))
}

/// Splits a text into host and port, both as text. An IPv6 address keeps its brackets.
fn split(scheme: Scheme, authority: &str) -> Result<(&str, Option<&str>), NoServer> {
    let no = |why, meant: &str| no(scheme, why, meant);
    if authority.starts_with('[') {
        let end = authority.find(']').ok_or_else(|| no("a `]` is missing", "[::1]:3000"))?;
        let (host, rest) = authority.split_at(end + 1);
        return Ok((host, rest.strip_prefix(':').or((!rest.is_empty()).then_some(rest))));
    }
    if let Ok(ip) = authority.parse::<Ipv6Addr>() {
        return Err(no("an IPv6 address must be in brackets", &format!("[{ip}]")));
    }
    match authority.rsplit_once(':') {
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((authority, None)),
    }
}

fn host_name(scheme: Scheme, host: &str) -> Result<String, NoServer> {
    let no = |why, meant: &str| no(scheme, why, meant);
    if let Some(ip) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        let ip = ip.parse::<Ipv6Addr>();
        return ip
            .map(|ip| ip.to_string())
            .map_err(|_| no("the text in brackets is not an IPv6 address", "[::1]"));
    }
    if is_host(host) {
        return Ok(host.to_ascii_lowercase());
    }
    let meant = host.rsplit('@').next().unwrap_or_default();
    Err(no("the host is neither a name nor an address", meant.trim()))
}

fn is_host(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !text.is_empty() && text.len() <= 253 && text.chars().all(is_plain)
}

fn no(scheme: Scheme, why: &'static str, meant: &str) -> NoServer {
    let meant = if meant.is_empty() { "127.0.0.1:3000" } else { meant };
    NoServer { why, help: format!("write \"{}://{}\"", scheme.name(), shown(meant)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_scheme_a_host_and_perhaps_a_port() {
        let cases = [
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("http://Shop.internal/", "http://shop.internal:80"),
            ("HTTP://[::1]:81", "http://[::1]:81"),
            ("http://[::1]", "http://[::1]:80"),
            ("https://shop", "https://shop:443"),
            ("h2c://shop", "h2c://shop:80"),
            ("H2C://shop:50051/", "h2c://shop:50051"),
            ("unix:/run/app.sock", "unix:/run/app.sock"),
        ];
        for (text, expected) in cases {
            let server = parse(text).unwrap_or_else(|no| panic!("{text}: {}", no.why));
            assert_eq!(server.to_string(), expected);
            assert_eq!(parse(expected).ok(), Some(server), "it reads back as the same");
        }
    }

    #[test]
    fn the_host_field_is_host_and_port() {
        let authority = |text| parse(text).map(|server| server.authority()).ok();
        assert_eq!(authority("https://[::1]:3000").as_deref(), Some("[::1]:3000"));
        assert_eq!(authority("unix:/run/app.sock").as_deref(), Some("localhost"));
    }

    #[test]
    fn anything_else_is_refused_with_the_correction() {
        let cases = [
            ("127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("http://a:80/shop", "http://a:80"),
            ("https://a/shop", "https://a"),
            ("http://a:b", "http://a"),
            ("http://a:0", "http://a"),
            ("http://a:", "http://a"),
            ("h2c://a:65536", "h2c://a"),
            ("http://::1", "http://[::1]"),
            ("http://[::1", "http://[::1]:3000"),
            ("http://[::1]x", "http://[::1]"),
            ("http://me:pw@host:80", "http://host"),
            ("http://", "http://127.0.0.1:3000"),
            ("ftp://a", "http://a"),
            ("unix:run/app.sock", "unix:/run/app.sock"),
            ("unix:", "unix:/run/app.sock"),
            ("/run/app.sock", "unix:/run/app.sock"),
            ("http://unix:/run/app.sock", "unix:/run/app.sock"),
            ("h2c://unix:/run/app.sock", "unix:/run/app.sock"),
            ("https:///run/app.sock", "unix:/run/app.sock"),
        ];
        for (text, meant) in cases {
            let help = parse(text).err().map(|no| no.help).unwrap_or_default();
            assert_eq!(help, format!("write \"{meant}\""), "{text}");
        }
    }

    #[test]
    fn a_collector_is_reached_in_clear() {
        let shown = |text| collector(text).map(|collector| collector.to_string());
        assert_eq!(shown("http://Localhost:4318/").ok().as_deref(), Some("http://localhost:4318"));
        for text in ["https://a:1", "unix:/a", "a:4318", "h2c://a:1", "http://a:4318/v1/traces"] {
            let help = shown(text).expect_err(text).help;
            assert!(help.starts_with("write \"http://"), "{help}");
        }
    }

    #[test]
    fn a_name_of_a_certificate_is_a_host_or_an_address() {
        for name in ["app.internal", "127.0.0.1", "::1"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a b", "a:443", "https://a", "*.a", "[::1]"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
