//! `[upstream]`: the server's URL, and that it is not this proxy itself.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::listen;
use crate::code::{self, Code};
use crate::config::{Listen, Upstream};
use crate::document::Document;
use crate::keys;
use crate::read::Values;
use crate::report::{Finding, Report};
use crate::source::shown;

/// Why a text is no server.
struct NoServer {
    code: &'static Code,
    why: &'static str,
    help: String,
}

pub(super) fn upstream(document: &Document<'_>, ours: &Listen, report: &mut Report) -> Upstream {
    let values = document.section(&keys::UPSTREAM, report);
    let (host, port) = server(&values, ours, report);
    Upstream {
        host,
        port,
        limit: values.of(&keys::LIMIT).whole() as u32,
        connect_timeout: values.of(&keys::CONNECT_TIMEOUT).span(),
        response_timeout: values.of(&keys::RESPONSE_TIMEOUT).span(),
    }
}

fn server(values: &Values, ours: &Listen, report: &mut Report) -> (String, u16) {
    let text = values.of(&keys::SERVER).text();
    let at = values.at(&keys::SERVER);
    match parse(text) {
        Ok((host, port)) => {
            if values.given(&keys::SERVER).is_some() && is_ours(&host, port, ours) {
                let message = format!("`upstream.server` is `listen.http` {}", ours.http);
                let help = "every request would come back here; name the application".to_string();
                report.add(Finding::new(&code::LOOP, at, message).help(help));
            }
            (host, port)
        }
        Err(no) => {
            let message = format!("`upstream.server` \"{}\": {}", shown(text), no.why);
            report.add(Finding::new(no.code, at, message).help(no.help));
            (String::new(), 0)
        }
    }
}

fn is_ours(host: &str, port: u16, ours: &Listen) -> bool {
    let host = if host == "localhost" { "127.0.0.1" } else { host };
    let ip = host.parse::<IpAddr>();
    ip.is_ok_and(|ip| listen::meets(ours.http, SocketAddr::new(ip, port)))
}

/// Host and port of `http://HOST:PORT`.
fn parse(text: &str) -> Result<(String, u16), NoServer> {
    let rest = without_scheme(text)?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if let Some(end) = rest.find(['/', '?', '#']) {
        return Err(no("a path cannot be given here", &rest[..end]));
    }
    let (host, port) = split(rest)?;
    let port = port.map_or(Some(80), |port| port.parse().ok().filter(|port| *port != 0));
    let port = port.ok_or_else(|| no("the port is no number from 1 to 65535", host))?;
    Ok((host_name(host)?, port))
}

fn without_scheme(text: &str) -> Result<&str, NoServer> {
    match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => Ok(rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => Err(NoServer {
            code: &code::TLS,
            why: "https to the application is not supported yet",
            help: format!("write \"http://{}\" if it listens without TLS too", shown(rest)),
        }),
        Some((_, rest)) => Err(no("it does not start with http://", rest)),
        None => Err(no("it does not start with http://", text)),
    }
}

/// Host and port as text; the host of an IPv6 address keeps its brackets.
fn split(authority: &str) -> Result<(&str, Option<&str>), NoServer> {
    if authority.starts_with('[') {
        let end = authority.find(']').ok_or_else(|| no("a `]` is missing", "[::1]:3000"))?;
        let (host, rest) = authority.split_at(end + 1);
        return Ok((host, rest.strip_prefix(':').or((!rest.is_empty()).then_some(rest))));
    }
    if let Ok(ip) = authority.parse::<Ipv6Addr>() {
        return Err(no("an IPv6 address stands in brackets", &format!("[{ip}]")));
    }
    match authority.rsplit_once(':') {
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((authority, None)),
    }
}

fn host_name(host: &str) -> Result<String, NoServer> {
    if let Some(ip) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        let ip = ip.parse::<Ipv6Addr>();
        return ip.map(|ip| ip.to_string()).map_err(|_| no("that is no IPv6 address", "[::1]"));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if host.is_empty() || host.len() > 253 || !host.chars().all(is_plain) {
        let meant: String = host.rsplit('@').next().into_iter().collect();
        return Err(no("the host is no name and no address", meant.trim()));
    }
    Ok(host.to_ascii_lowercase())
}

fn no(why: &'static str, meant: &str) -> NoServer {
    let meant = if meant.is_empty() { "127.0.0.1:3000" } else { meant };
    NoServer { code: &code::SERVER, why, help: format!("write \"http://{}\"", shown(meant)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_and_perhaps_a_port() {
        let cases = [
            ("http://127.0.0.1:3000", "127.0.0.1", 3000),
            ("http://Shop.internal/", "shop.internal", 80),
            ("HTTP://[::1]:81", "::1", 81),
            ("http://[::1]", "::1", 80),
        ];
        for (text, host, port) in cases {
            let parsed = parse(text).ok();
            assert_eq!(parsed, Some((host.to_string(), port)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_the_correction() {
        let cases = [
            ("127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("http://a:80/shop", "http://a:80"),
            ("http://a:b", "http://a"),
            ("http://a:0", "http://a"),
            ("http://::1", "http://[::1]"),
            ("http://[::1", "http://[::1]:3000"),
            ("http://[::1]x", "http://[::1]"),
            ("http://me:pw@host:80", "http://host"),
            ("http://", "http://127.0.0.1:3000"),
            ("ftp://a", "http://a"),
            ("https://a", "http://a"),
        ];
        for (text, meant) in cases {
            let help = parse(text).err().map(|no| no.help).unwrap_or_default();
            assert!(help.starts_with(&format!("write \"{meant}\"")), "{text}: {help}");
        }
    }
}
