//! The permit of a client connection, which registers it in the index of open connections.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::connections::{Bounds, Inbox, OpenConnection, Owner};
use crate::process::secret::network;
use crate::settings::Settings;
use crate::shared::Shared;

/// The permit of one open client connection. Dropping it removes the connection from the index.
pub(crate) struct ConnectionPermit {
    shared: Arc<Shared>,
    pub(crate) held: Arc<OpenConnection>,
    /// The address that the connection is counted for (for IPv6 the /64); `None` if the client's
    /// address is unknown, or is a trusted hop's.
    counted: Option<IpAddr>,
}

impl ConnectionPermit {
    /// Registers a connection that a worker has accepted; `inbox` is the worker's queue of
    /// evictions. Returns `None` if the limits allow no further connection, or none of this
    /// address.
    pub(crate) fn take(
        shared: &Arc<Shared>,
        settings: &Settings,
        inbox: &Arc<Inbox>,
        from: SocketAddr,
    ) -> Option<Self> {
        let announced = settings.config.listen.proxy_protocol.iter();
        let is_known = !announced.clone().any(|hop| hop.contains(from.ip()));
        let is_hop = is_known && settings.trusts(from.ip().to_canonical());
        let counted = (is_known && !is_hop).then(|| network(from.ip()));
        let held = OpenConnection::new(inbox, is_hop);
        let owner = counted.map_or_else(Owner::alone, Owner::Address);
        let connections = &shared.connections;
        let bounds = Bounds::of(&settings.config.client_limits, Some(&shared.memory));
        connections.enter(&held, owner, bounds).ok()?;
        if is_hop {
            connections.proof_changed(true);
        }
        Some(Self { shared: Arc::clone(shared), held, counted })
    }

    /// Counts the connection for its client's address, which a PROXY header has given. Returns
    /// whether the limits allow the connection; if not, the caller must close it.
    pub(crate) fn count_for_address(&mut self, settings: &Settings, address: IpAddr) -> bool {
        let counted = (!settings.trusts(address.to_canonical())).then(|| network(address));
        if counted == self.counted {
            return true;
        }
        self.counted = counted;
        let owner = counted.map_or_else(Owner::alone, Owner::Address);
        let bounds = Bounds::of(&settings.config.client_limits, None);
        self.shared.connections.change_owner(&self.held, owner, bounds).is_ok()
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.shared.connections.leave(&self.held);
    }
}
