//! The other end of a client connection: its address, and whether the gateway trusts it.

use std::cell::{Cell, OnceCell};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use bywash_engine::AddressKey;
use tokio::time::Sleep;

use crate::settings::Settings;
use crate::shared::Shared;

pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// The address as it stands in `X-Forwarded-For`, formatted once for all requests of the
    /// connection.
    pub(super) text: String,
    /// Whether the peer is a trusted hop of the operator, whose forwarding fields are believed.
    pub(super) is_trusted: bool,
    /// Whether the connection is encrypted.
    pub(super) is_secure: bool,
    /// The engine's key of the peer's own address, computed on first use.
    key: OnceCell<AddressKey>,
    /// Whether the last request belonged to a session whose standing is better than `new`.
    pub(super) proven: Cell<bool>,
    /// The timer of an earlier request, for the next one; see
    /// [`Deadline`](super::deadline::Deadline).
    pub(super) timer: Cell<Option<Pin<Box<Sleep>>>>,
}

impl Peer {
    pub(crate) fn new(settings: &Settings, peer: SocketAddr, is_secure: bool) -> Self {
        // A listener for both IP families reports the address of an IPv4 client as an IPv4-mapped
        // IPv6 address.
        let address = peer.ip().to_canonical();
        let is_trusted = settings.trusts(address);
        Self::with(address, is_trusted, is_secure)
    }

    fn with(address: IpAddr, is_trusted: bool, is_secure: bool) -> Self {
        Self {
            address,
            text: address.to_string(),
            is_trusted,
            is_secure,
            key: OnceCell::new(),
            proven: Cell::new(false),
            timer: Cell::new(None),
        }
    }

    #[cfg(test)]
    pub(super) fn of(address: IpAddr, is_trusted: bool) -> Self {
        Self::with(address, is_trusted, false)
    }

    #[cfg(test)]
    pub(super) fn secure(self) -> Self {
        Self { is_secure: true, ..self }
    }

    /// Returns the engine's key for the client at the address `client` behind this connection. The
    /// key of the peer's own address is computed once.
    pub(super) fn address_key(&self, shared: &Shared, client: IpAddr) -> AddressKey {
        if client == self.address {
            *self.key.get_or_init(|| shared.secret.address_key(client))
        } else {
            shared.secret.address_key(client)
        }
    }

    pub(crate) const fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// Returns whether this connection is proven, so that unproven ones are evicted before it.
    pub(crate) const fn is_proven(&self) -> bool {
        self.is_trusted || self.proven.get()
    }

    pub(super) const fn scheme(&self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }
}
