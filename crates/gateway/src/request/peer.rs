//! The other end of a client's connection.

use std::cell::{Cell, OnceCell};
use std::net::{IpAddr, SocketAddr};

use bywash_engine::AddressKey;

use crate::settings::Settings;
use crate::shared::Shared;

pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// As it stands in `X-Forwarded-For`; written once for all requests of the connection.
    pub(super) text: String,
    /// A hop of the operator's own: what it says about where a request comes from is believed.
    pub(super) is_trusted: bool,
    /// The connection is encrypted.
    pub(super) is_secure: bool,
    /// Of its own address, once it was asked for.
    key: OnceCell<AddressKey>,
    /// Its last request was of a session whose standing is better than `new`.
    pub(super) proven: Cell<bool>,
}

impl Peer {
    pub(crate) fn new(settings: &Settings, peer: SocketAddr, is_secure: bool) -> Self {
        // A listener for both families sees IPv4 clients under IPv6 names.
        let address = peer.ip().to_canonical();
        let is_trusted = settings.trusts(address);
        Self::with(address, is_trusted, is_secure)
    }

    fn with(address: IpAddr, is_trusted: bool, is_secure: bool) -> Self {
        let (text, key, proven) = (address.to_string(), OnceCell::new(), Cell::new(false));
        Self { address, text, is_trusted, is_secure, key, proven }
    }

    /// For tests.
    #[cfg(test)]
    pub(super) fn of(address: IpAddr, is_trusted: bool) -> Self {
        Self::with(address, is_trusted, false)
    }

    /// For tests.
    #[cfg(test)]
    pub(super) fn secure(self) -> Self {
        Self { is_secure: true, ..self }
    }

    /// The engine's name for a client behind this connection: for its own address it is computed once.
    pub(super) fn address_key(&self, shared: &Shared, client: IpAddr) -> AddressKey {
        if client == self.address {
            *self.key.get_or_init(|| shared.address_key(client))
        } else {
            shared.address_key(client)
        }
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
