//! Resolves `[listen]`. Checks that every listener has its own address, and that operators connect
//! only from this machine.

use std::net::{IpAddr, SocketAddr};

use super::fields;
use crate::code;
use crate::key::Key;
use crate::keys;
use crate::listen::{AdminAddress, Listen};
use crate::network::{Network, NoNetwork};
use crate::read::Values;
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::value::Value;

pub(super) fn listen(values: &Values, report: &mut Report) -> Listen {
    let listen = Listen {
        http: values.of(&keys::HTTP).address(),
        https: values.get(&keys::HTTPS).map(Value::address),
        admin: values.of(&keys::ADMIN).admin().clone(),
        operators_key: values.get(&keys::OPERATORS_KEY).map(|path| path.text().into()),
        workers: values.of(&keys::WORKERS).whole() as usize,
        half_close: values.of(&keys::HALF_CLOSE).word(),
        http2: values.of(&keys::HTTP2).truth(),
        proxy_protocol: networks(&keys::PROXY_PROTOCOL, values, report),
        trusted_proxies: networks(&keys::TRUSTED_PROXIES, values, report),
        forwarded: values.of(&keys::FORWARDED).word(),
        pass_fields: pass_fields(values, report),
    };
    check_admin(&listen.admin, values, report);
    check_collisions(&listen, values, report);
    check_trust(values, report);
    listen
}

/// Returns the listeners that have an IP address, each with its key.
pub(super) fn addresses(listen: &Listen) -> Vec<(Key, SocketAddr)> {
    let admin = match listen.admin {
        AdminAddress::Tcp(address) => Some(address),
        AdminAddress::Unix(_) => None,
    };
    let all = [(keys::HTTP, Some(listen.http)), (keys::HTTPS, listen.https), (keys::ADMIN, admin)];
    all.into_iter().filter_map(|(key, address)| Some((key, address?))).collect()
}

fn check_admin(admin: &AdminAddress, values: &Values, report: &mut Report) {
    let admin = match admin {
        AdminAddress::Tcp(admin) if !is_loopback(admin.ip()) => admin,
        AdminAddress::Tcp(_) | AdminAddress::Unix(_) => return,
    };
    let message = format!("`listen.admin` {admin} can be reached from other machines");
    let port = admin.port();
    let help = format!("write \"127.0.0.1:{port}\": connections of operators are not encrypted");
    report.add(Finding::new(&code::ADMIN, values.at(&keys::ADMIN), message).help(help));
}

fn check_collisions(listen: &Listen, values: &Values, report: &mut Report) {
    let listeners = addresses(listen);
    for (index, (second, address)) in listeners.iter().enumerate() {
        let collides = |(_, other): &&(Key, SocketAddr)| collide(*other, *address);
        let Some((first, _)) = listeners[..index].iter().find(collides) else {
            continue;
        };
        let (one, other) = (first.name, second.name);
        let message = format!("`listen.{one}` and `listen.{other}` both use {address}");
        let mut finding = Finding::new(&code::SAME_ADDRESS, values.at(second), message)
            .help("give one of them another port".to_string());
        if let Some((_, at)) = values.given(first) {
            finding = finding.elsewhere(at, one);
        }
        report.add(finding);
    }
}

/// Returns whether the kernel would refuse the second of two listeners because of the first. Port 0
/// never collides, because the kernel chooses a free port.
fn collide(a: SocketAddr, b: SocketAddr) -> bool {
    let (x, y) = (a.ip().to_canonical(), b.ip().to_canonical());
    let same_ip = x == y || takes_all(x, y) || takes_all(y, x);
    a.port() == b.port() && a.port() != 0 && same_ip
}

/// Returns whether traffic to the address `target` arrives at a listener on the address `listener`.
pub(super) fn meets(listener: SocketAddr, target: SocketAddr) -> bool {
    let (a, b) = (listener.ip().to_canonical(), target.ip().to_canonical());
    // For any other pair it is unknown whether the address belongs to this machine.
    let same_ip = a == b || takes_all(a, b) && (is_loopback(b) || b.is_unspecified());
    listener.port() == target.port() && listener.port() != 0 && same_ip
}

/// Returns whether a listener on `a` also receives traffic for `b`. The unspecified IPv6 address
/// covers both families, and the unspecified IPv4 address only its own.
const fn takes_all(a: IpAddr, b: IpAddr) -> bool {
    a.is_unspecified() && (a.is_ipv6() || b.is_ipv4())
}

const fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

fn pass_fields(values: &Values, report: &mut Report) -> Vec<String> {
    let texts = values.of(&keys::PASS_FIELDS).texts().iter();
    texts.filter_map(|text| fields::passed(text.get_ref(), text.span(), report)).collect()
}

fn networks(key: &Key, values: &Values, report: &mut Report) -> Vec<Network> {
    let mut networks = Vec::new();
    for text in values.of(key).texts() {
        match text.get_ref().parse() {
            Ok(network) => networks.push(network),
            Err(no) => {
                let message = format!("`listen.{}`: \"{}\": {no}", key.name, shown(text.get_ref()));
                let help = meant_network(text.get_ref(), no);
                report.add(Finding::new(&code::NETWORK, text.span(), message).help(help));
            }
        }
    }
    networks
}

fn meant_network(text: &str, no: NoNetwork) -> String {
    match no {
        NoNetwork::HostBits(network) => {
            let address = text.split('/').next().unwrap_or_default();
            format!("write \"{network}\", or \"{}\" for this one address", shown(address))
        }
        NoNetwork::Prefix(bits) => format!("write a prefix of at most {bits} bits: \"10.0.0.0/8\""),
        NoNetwork::Address => match text {
            "localhost" => "write \"127.0.0.1\" and \"::1\"".to_string(),
            _ => "names are not looked up: write \"10.0.0.0/8\", or an address".to_string(),
        },
    }
}

/// Warns if every client is trusted as a hop. Such a client can claim to be any other, and so
/// choose the class and the principal of its requests.
fn check_trust(values: &Values, report: &mut Report) {
    for text in values.of(&keys::TRUSTED_PROXIES).texts() {
        let network = text.get_ref().parse::<Network>();
        if network.is_ok_and(|network| network.is_everything()) {
            let name = shown(text.get_ref());
            let message =
                format!("`listen.trusted_proxies` \"{name}\": the gateway believes every client");
            let help = "name only the hops in front of the gateway".to_string();
            report.add(Finding::new(&code::EVERYBODY, text.span(), message).help(help));
        }
    }
}
