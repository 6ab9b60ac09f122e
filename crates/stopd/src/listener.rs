//! Accepts the connections of clients, and finds out their identity and their rights.
//!
//! A client on this machine has the identity of its user, which the kernel reports. A relay on
//! another machine has the identity in its certificate.

use std::cell::Cell;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bywash_lease::Holder;
use bywash_tls::MutualAcceptor;
use tokio::net::{TcpListener, TcpStream, UnixListener};

use crate::connection_limits::{ConnectionLimits, ConnectionPermit};
use crate::network::{check_protocol, keep_alive};
use crate::numbers::REMOTE;
use crate::peer::{Identity, Peer, Rights};
use crate::service::Service;

/// The time limit for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// The pause after a failed `accept`, which fails again at once while there are no descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// The identities that may lease and stop.
pub(crate) struct Allowed<T> {
    pub(crate) leases: Vec<T>,
    pub(crate) stops: Vec<T>,
}

/// The listeners of one daemon. They share the limits and the numbers of connections.
pub(crate) struct Listeners {
    service: Service,
    limits: ConnectionLimits,
    last: Cell<u64>,
}

impl Listeners {
    pub(crate) fn new(service: Service) -> Rc<Self> {
        let is_relay = matches!(service, Service::Relay(_));
        Rc::new(Self { service, limits: ConnectionLimits::new(is_relay), last: Cell::new(0) })
    }

    /// Counts a client. Returns `None` if there are too many.
    fn admit(&self, identity: Identity, rights: Rights) -> Option<(Peer, ConnectionPermit)> {
        let permit = self.limits.take(identity.clone(), rights)?;
        self.last.set(self.last.get() + 1);
        Some((Peer { holder: Holder(self.last.get()), identity, rights }, permit))
    }

    /// Serves the clients on this machine, forever. The daemon's own user may do everything.
    pub(crate) async fn accept_local(self: Rc<Self>, socket: UnixListener, allowed: Allowed<u32>) {
        let own = bywash_files::own_user().unwrap_or(u32::MAX);
        loop {
            let Ok((stream, _)) = socket.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let Ok(credentials) = stream.peer_cred() else { continue };
            let user = credentials.uid();
            let may = |listed: &[u32]| user == own || listed.contains(&user);
            let rights = Rights { leases: may(&allowed.leases), stops: may(&allowed.stops) };
            let Some((peer, permit)) = self.admit(Identity::User(user), rights) else { continue };
            let this = Rc::clone(&self);
            tokio::task::spawn_local(async move {
                this.service.serve(stream, &peer).await;
                drop(permit);
            });
        }
    }

    /// Serves the relays on other machines, forever.
    pub(crate) async fn accept_remote(
        self: Rc<Self>,
        listener: TcpListener,
        acceptor: MutualAcceptor,
        allowed: Allowed<String>,
    ) {
        let allowed = Rc::new(allowed);
        loop {
            let Ok((stream, address)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let Some(permit) = self.limits.take_handshake(address.ip()) else {
                self.complain(address, &"too many handshakes at once");
                continue;
            };
            let (this, acceptor, allowed) =
                (Rc::clone(&self), acceptor.clone(), Rc::clone(&allowed));
            tokio::task::spawn_local(async move {
                this.serve_remote(stream, address, permit, acceptor, &allowed).await;
            });
        }
    }

    async fn serve_remote(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        handshake: ConnectionPermit,
        acceptor: MutualAcceptor,
        allowed: &Allowed<String>,
    ) {
        keep_alive(&stream);
        let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "no handshake within 5 s"));
        let handshaking = async {
            let (stream, names) = acceptor.accept(stream).await?;
            check_protocol(&stream)?;
            Ok((stream, names))
        };
        let accepted = tokio::time::timeout(HANDSHAKE, handshaking).await;
        drop(handshake);
        match accepted.unwrap_or_else(late) {
            Ok((stream, names)) => {
                let (identity, rights) = identify(&names, allowed);
                if let Some((peer, permit)) = self.admit(identity, rights) {
                    self.service.serve(stream, &peer).await;
                    drop(permit);
                } else {
                    self.complain(address, &"too many connections of this certificate");
                }
            }
            Err(error) => self.complain(address, &error),
        }
    }

    /// Counts a relay that was not served, and records the reason for the status.
    fn complain(&self, address: SocketAddr, why: &dyn Display) {
        let numbers = self.service.numbers();
        numbers.relay_refused();
        numbers
            .complain(REMOTE, Some(format!("the last relay that was refused: {address}: {why}")));
    }
}

/// Returns the identity of a certificate with these names, and the rights of all of them.
fn identify(names: &[String], allowed: &Allowed<String>) -> (Identity, Rights) {
    let may = |listed: &[String]| names.iter().find(|name| listed.contains(name));
    let (leases, stops) = (may(&allowed.leases), may(&allowed.stops));
    let rights = Rights { leases: leases.is_some(), stops: stops.is_some() };
    let name = leases.or(stops).or(names.first()).cloned().unwrap_or_default();
    (Identity::Certificate(name), rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_has_the_rights_of_all_its_names() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let allowed = Allowed {
            leases: names(&["app.internal"]),
            stops: names(&["gateway.internal", "spiffe://internal/gateway"]),
        };
        for (shown, name, leases, stops) in [
            (&["app.internal"][..], "app.internal", true, false),
            (&["spiffe://internal/gateway"], "spiffe://internal/gateway", false, true),
            (&["x.internal", "gateway.internal", "app.internal"], "app.internal", true, true),
            (&["*.internal", "sub.app.internal"], "*.internal", false, false),
            (&[], "", false, false),
        ] {
            let identified = identify(&names(shown), &allowed);
            let expected = (Identity::Certificate(name.to_owned()), Rights { leases, stops });
            assert_eq!(identified, expected, "{shown:?}");
        }
    }
}
