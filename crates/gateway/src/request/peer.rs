//! The other end of a client's connection.

use std::net::{IpAddr, SocketAddr};

use crate::settings::Settings;

pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// As it stands in `X-Forwarded-For`; written once for all requests of the connection.
    pub(super) text: String,
    /// A hop of the operator's own: what it says about where a request comes from is believed.
    pub(super) is_trusted: bool,
    /// The connection is encrypted.
    pub(super) is_secure: bool,
}

impl Peer {
    pub(crate) fn new(settings: &Settings, peer: SocketAddr, is_secure: bool) -> Self {
        // A listener for both families sees IPv4 clients under IPv6 names.
        let address = peer.ip().to_canonical();
        let is_trusted = settings.trusts(address);
        Self { address, text: address.to_string(), is_trusted, is_secure }
    }

    pub(crate) const fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    pub(super) const fn scheme(&self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }
}
