//! `[listen]`: the two addresses must not collide, and operators come in by loopback only.

use std::net::{IpAddr, SocketAddr};

use crate::code;
use crate::config::Listen;
use crate::document::Document;
use crate::keys;
use crate::read::Values;
use crate::report::{Finding, Report};

pub(super) fn listen(document: &Document<'_>, report: &mut Report) -> Listen {
    let values = document.section(&keys::LISTEN, report);
    check_admin(&values, report);
    check_collision(&values, report);
    Listen {
        http: values.of(&keys::HTTP).address(),
        admin: values.of(&keys::ADMIN).address(),
        workers: values.of(&keys::WORKERS).whole() as usize,
        half_close: values.of(&keys::HALF_CLOSE).word(),
    }
}

fn check_admin(values: &Values, report: &mut Report) {
    let admin = values.of(&keys::ADMIN).address();
    if !is_loopback(admin.ip()) {
        let message = format!("`listen.admin` {admin} can be reached from other machines");
        let port = admin.port();
        let help = format!("write \"127.0.0.1:{port}\": there is no authentication yet");
        report.add(Finding::new(&code::ADMIN, values.at(&keys::ADMIN), message).help(help));
    }
}

fn check_collision(values: &Values, report: &mut Report) {
    let (http, admin) = (values.of(&keys::HTTP).address(), values.of(&keys::ADMIN).address());
    if meets(http, admin) {
        let message = format!("`listen.http` and `listen.admin` both want {admin}");
        let mut finding = Finding::new(&code::SAME_ADDRESS, values.at(&keys::ADMIN), message)
            .help("give one of them another port".to_string());
        if let Some((_, at)) = values.given(&keys::HTTP) {
            finding = finding.elsewhere(at, "http");
        }
        report.add(finding);
    }
}

/// Whether what is sent to `target` arrives at a listener on `listener`. Port 0 is a different
/// port each time.
pub(super) fn meets(listener: SocketAddr, target: SocketAddr) -> bool {
    let (a, b) = (listener.ip().to_canonical(), target.ip().to_canonical());
    // An unspecified IPv6 address takes both families, an IPv4 one only its own.
    let takes_all = a.is_unspecified() && (a.is_ipv6() || b.is_ipv4());
    let same_ip = a == b || takes_all && (is_loopback(b) || b.is_unspecified());
    listener.port() == target.port() && listener.port() != 0 && same_ip
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}
