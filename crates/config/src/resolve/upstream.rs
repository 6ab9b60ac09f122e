//! Resolves `[upstream]`. Checks that its servers have no duplicates, and that none of them is this
//! gateway itself.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;

use super::{concurrency, health, listen, server, timeouts};
use bywash_engine::catalog::LimitSettings;

use crate::code;
use crate::document::Document;
use crate::key::Key;
use crate::keys;
use crate::listen::{AdminAddress, Listen};
use crate::read::Values;
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::upstream::{Endpoint, Scheme, Server, Upstream, UpstreamTls};

/// A server, and the position of its URL in the file.
type Placed = (Server, Range<usize>);

/// Returns the upstream and its initial concurrency limit.
pub(super) fn upstream(
    document: &Document<'_>,
    ours: &Listen,
    report: &mut Report,
) -> (Upstream, LimitSettings) {
    let values = document.section(&keys::UPSTREAM, report);
    let (servers, all_read) = servers(&values, report);
    if values.given(&keys::SERVER).is_some() {
        check_loops(&servers, ours, report);
        check_twice(&servers, report);
    }
    if all_read && servers.iter().all(|(server, _)| server.scheme != Scheme::Https) {
        check_tls_unused(&values, report);
    }
    let limit = concurrency::settings(document, &values, report);
    let upstream = Upstream {
        servers: servers.into_iter().map(|(server, _)| server).collect(),
        limit: limit.most(),
        pinned_connections: values.of(&keys::PINNED_CONNECTIONS).whole() as usize,
        timeouts: timeouts::of_upstream(&values, report),
        ignore_case: values.given(&keys::IGNORE_CASE).map(|(value, _)| value.truth()),
        departures: values.of(&keys::DEPARTURES).word(),
        keep_alive: values.of(&keys::KEEP_ALIVE).span(),
        resolve_every: values.of(&keys::RESOLVE_EVERY).span(),
        tls: tls(&values, report),
        health: health::health(document, report),
    };
    (upstream, limit)
}

/// Returns the valid servers, and whether all servers were valid. Invalid ones are reported.
fn servers(values: &Values, report: &mut Report) -> (Vec<Placed>, bool) {
    let mut servers = Vec::new();
    let mut all_read = values.given(&keys::SERVER).is_some() && !values.refused(&keys::SERVER);
    for text in values.of(&keys::SERVER).texts() {
        match server::parse(text.get_ref()) {
            Ok(server) => servers.push((server, text.span())),
            Err(no) => {
                let message =
                    format!("`upstream.server` \"{}\": {}", shown(text.get_ref()), no.why);
                report.add(Finding::new(&code::SERVER, text.span(), message).help(no.help));
                all_read = false;
            }
        }
    }
    (servers, all_read)
}

fn check_loops(servers: &[Placed], ours: &Listen, report: &mut Report) {
    for (server, at) in servers {
        if let Some((key, address)) = listener(&server.endpoint, ours) {
            let message =
                format!("`upstream.server` is this gateway: `listen.{}` {address}", key.name);
            let help =
                "the gateway would send every request to itself; name the application".to_string();
            report.add(Finding::new(&code::LOOP, at.clone(), message).help(help));
        }
    }
}

/// Returns the listener of this gateway that a request to `endpoint` would reach; `None` if there
/// is none.
fn listener(endpoint: &Endpoint, ours: &Listen) -> Option<(Key, AdminAddress)> {
    match endpoint {
        Endpoint::Tcp { host, port } => {
            let target = SocketAddr::new(ip(host)?, *port);
            let met = |(_, address): &(Key, SocketAddr)| listen::meets(*address, target);
            let (key, address) = listen::addresses(ours).into_iter().find(met)?;
            Some((key, AdminAddress::Tcp(address)))
        }
        Endpoint::Unix(path) => {
            let admin = AdminAddress::Unix(path.clone());
            (admin == ours.admin).then_some((keys::ADMIN, admin))
        }
    }
}

/// Parses an IP address. The only host name that is resolved here is `localhost`, because it always
/// means this machine.
fn ip(host: &str) -> Option<IpAddr> {
    let host = if host == "localhost" { "127.0.0.1" } else { host };
    host.parse().ok().map(|ip: IpAddr| ip.to_canonical())
}

/// Reports servers with the same address. Two schemes at one address are one server.
fn check_twice(servers: &[Placed], report: &mut Report) {
    for (index, (server, at)) in servers.iter().enumerate() {
        let same = |(other, _): &&Placed| is_same(&other.endpoint, &server.endpoint);
        if let Some((_, first)) = servers[..index].iter().find(same) {
            let message = format!("the server \"{}\" is listed twice", shown(&server.to_string()));
            let help = "keep one of them; the limit is for all servers together".to_string();
            let finding = Finding::new(&code::SAME_SERVER, at.clone(), message).help(help);
            report.add(finding.elsewhere(first.clone(), "first here"));
        }
    }
}

fn is_same(a: &Endpoint, b: &Endpoint) -> bool {
    match (a, b) {
        (Endpoint::Tcp { host: a, port: p }, Endpoint::Tcp { host: b, port: q }) => {
            p == q && (a == b || ip(a).is_some_and(|ip_of_a| Some(ip_of_a) == ip(b)))
        }
        (Endpoint::Unix(a), Endpoint::Unix(b)) => a == b,
        (Endpoint::Tcp { .. }, Endpoint::Unix(_)) | (Endpoint::Unix(_), Endpoint::Tcp { .. }) => {
            false
        }
    }
}

fn tls(values: &Values, report: &mut Report) -> UpstreamTls {
    check_half_pair(values, report);
    let path = |key: &Key| values.get(key).map(|value| PathBuf::from(value.text()));
    UpstreamTls {
        ca: path(&keys::TLS_CA),
        name: tls_name(values, report),
        certificate: path(&keys::TLS_CERTIFICATE),
        key: path(&keys::TLS_KEY),
    }
}

fn tls_name(values: &Values, report: &mut Report) -> Option<String> {
    let (value, at) = values.given(&keys::TLS_NAME)?;
    let text = value.text();
    if server::is_name(text) {
        return Some(text.to_ascii_lowercase());
    }
    let message = format!("`upstream.tls_name` takes a host name, not \"{}\"", shown(text));
    let help = "write it without scheme, port and wildcard: \"app.internal\"".to_string();
    report.add(Finding::new(&code::TLS_NAME, at, message).help(help));
    None
}

fn check_half_pair(values: &Values, report: &mut Report) {
    let pair = [keys::TLS_CERTIFICATE, keys::TLS_KEY];
    if pair.iter().any(|key| values.refused(key)) {
        return;
    }
    let (there, missing, at) = match pair.each_ref().map(|key| values.given(key)) {
        [Some((_, at)), None] => (&pair[0], &pair[1], at),
        [None, Some((_, at))] => (&pair[1], &pair[0], at),
        [Some(_), Some(_)] | [None, None] => return,
    };
    let message = format!("`upstream.{}` needs `upstream.{}`", there.name, missing.name);
    let help = format!("write {} as well, or remove both", missing.line());
    report.add(Finding::new(&code::HALF_PAIR, at, message).help(help));
}

fn check_tls_unused(values: &Values, report: &mut Report) {
    for key in [keys::TLS_CA, keys::TLS_NAME, keys::TLS_CERTIFICATE, keys::TLS_KEY] {
        if let Some((_, at)) = values.given(&key) {
            let message =
                format!("`upstream.{}` has no effect: there is no https server", key.name);
            let help = "write a server as https://HOST:PORT, or remove the key".to_string();
            report.add(Finding::new(&code::NO_TLS_SERVER, at, message).help(help));
        }
    }
}
