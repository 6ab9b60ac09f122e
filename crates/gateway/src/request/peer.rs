//! The other end of a client's connection.

use std::cell::Cell;
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
    /// Its last request was of a session whose standing is better than `new`.
    pub(super) proven: Cell<bool>,
}

impl Peer {
    pub(crate) fn new(settings: &Settings, peer: SocketAddr, is_secure: bool) -> Self {
        // A listener for both families sees IPv4 clients under IPv6 names.
        let address = peer.ip().to_canonical();
        let is_trusted = settings.trusts(address);
        let (text, proven) = (address.to_string(), Cell::new(false));
        Self { address, text, is_trusted, is_secure, proven }
    }

    pub(crate) const fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// Whether its connection is kept rather than a stranger's.
    pub(crate) const fn is_proven(&self) -> bool {
        self.is_trusted || self.proven.get()
    }

    pub(super) const fn scheme(&self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }
}
