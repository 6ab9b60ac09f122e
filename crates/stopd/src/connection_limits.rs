//! Limits the number of client connections.
//!
//! Clients that may lease and clients that may only stop have separate shares of the connections,
//! so that neither group can exclude the other. An identity has at most a quarter of a share, so
//! that a compromised application leaves room for the others. TLS handshakes have a share as well,
//! by the address of the client, because its identity is not proven yet.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;

use crate::peer::{Identity, Rights};

/// A group of clients that share a part of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Group {
    /// Clients that may lease: applications.
    Lessees,
    /// Clients that may only stop: gateways and web servers.
    Stoppers,
    /// Clients that may neither lease nor stop. Their connections get an error response.
    Unauthorised,
    /// Clients whose TLS handshake is not over.
    Handshakes,
}

/// The holder of a part of a group's share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Owner {
    Identity(Identity),
    /// An IPv4 address, or the first 64 bits of an IPv6 address. One machine commonly has all
    /// addresses with the same first 64 bits.
    Address(IpAddr),
}

impl Owner {
    fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) >> 64 << 64).into()),
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}

impl Group {
    const fn of(rights: Rights) -> Self {
        match (rights.leases, rights.stops) {
            (true, _) => Self::Lessees,
            (false, true) => Self::Stoppers,
            (false, false) => Self::Unauthorised,
        }
    }

    /// Returns the share of the group. The shares of a relay are together a quarter of the daemon's
    /// lessees, which is the part of one certificate there.
    const fn limit(self, is_relay: bool) -> usize {
        match (self, is_relay) {
            (Self::Lessees, false) => 4096,
            (Self::Lessees, true) => 768,
            (Self::Stoppers, false) => 1024,
            (Self::Stoppers, true) | (Self::Handshakes, _) => 256,
            (Self::Unauthorised, _) => 16,
        }
    }
}

#[derive(Debug, Default)]
struct Taken {
    by_group: HashMap<Group, usize>,
    by_owner: HashMap<(Group, Owner), usize>,
    is_relay: bool,
}

/// The number of open connections by group and owner. Clones share the counts.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLimits(Rc<RefCell<Taken>>);

/// The permission for one connection. The connection counts until this value is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    limits: ConnectionLimits,
    group: Group,
    owner: Owner,
}

impl ConnectionLimits {
    pub(crate) fn new(is_relay: bool) -> Self {
        Self(Rc::new(RefCell::new(Taken { is_relay, ..Taken::default() })))
    }

    /// Counts a connection of a client. Returns `None` if the share of the client's group is
    /// exhausted, or the client's part of it.
    pub(crate) fn take(&self, identity: Identity, rights: Rights) -> Option<ConnectionPermit> {
        self.take_share(Group::of(rights), Owner::Identity(identity))
    }

    /// Counts a TLS handshake with a client at this address. Returns `None` if there are too many
    /// in all, or from this address.
    pub(crate) fn take_handshake(&self, address: IpAddr) -> Option<ConnectionPermit> {
        self.take_share(Group::Handshakes, Owner::at(address))
    }

    fn take_share(&self, group: Group, owner: Owner) -> Option<ConnectionPermit> {
        let key = (group, owner);
        let mut taken = self.0.borrow_mut();
        let of_group = taken.by_group.get(&group).copied().unwrap_or(0);
        let of_owner = taken.by_owner.get(&key).copied().unwrap_or(0);
        let limit = group.limit(taken.is_relay);
        if of_group >= limit || of_owner >= limit / 4 {
            return None;
        }
        taken.by_group.insert(group, of_group + 1);
        taken.by_owner.insert(key.clone(), of_owner + 1);
        drop(taken);
        Some(ConnectionPermit { limits: self.clone(), group, owner: key.1 })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = self.limits.0.borrow_mut();
        if let Some(count) = taken.by_group.get_mut(&self.group) {
            *count -= 1;
        }
        let key = (self.group, self.owner.clone());
        if let Some(count) = taken.by_owner.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                taken.by_owner.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LESSEE: Rights = Rights { leases: true, stops: false };
    const BOTH: Rights = Rights { leases: true, stops: true };
    const STOPPER: Rights = Rights { leases: false, stops: true };

    fn take(limits: &ConnectionLimits, user: u32, rights: Rights) -> Option<ConnectionPermit> {
        limits.take(Identity::User(user), rights)
    }

    #[test]
    fn one_user_leaves_room_for_others() {
        let limits = ConnectionLimits::new(false);
        let one: Vec<_> = std::iter::from_fn(|| take(&limits, 1, BOTH)).collect();
        assert_eq!(one.len(), 1024);
        assert!(take(&limits, 2, LESSEE).is_some());
        drop(one);
        assert!(take(&limits, 1, BOTH).is_some());
    }

    #[test]
    fn lessees_and_stoppers_cannot_shut_each_other_out() {
        let limits = ConnectionLimits::new(false);
        let users = 1..=8;
        let lessees: Vec<_> = users
            .clone()
            .flat_map(|user| std::iter::from_fn(|| take(&limits, user, LESSEE)).collect::<Vec<_>>())
            .collect();
        assert_eq!(lessees.len(), 4096);
        assert!(take(&limits, 9, LESSEE).is_none());
        let stoppers: Vec<_> = users
            .flat_map(|user| {
                std::iter::from_fn(|| take(&limits, user, STOPPER)).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(stoppers.len(), 1024);
        drop(lessees);
        assert!(take(&limits, 9, STOPPER).is_none());
        assert!(take(&limits, 9, LESSEE).is_some());
    }

    #[test]
    fn a_user_without_rights_has_few() {
        let limits = ConnectionLimits::new(false);
        let few: Vec<_> = std::iter::from_fn(|| take(&limits, 1, Rights::NONE)).collect();
        assert_eq!(few.len(), 4);
    }

    #[test]
    fn all_clients_of_a_relay_have_room_at_the_daemon() {
        let (relay, daemon) = (ConnectionLimits::new(true), ConnectionLimits::new(false));
        let clients: Vec<_> = (1..=8)
            .flat_map(|user| [(user, LESSEE), (user, STOPPER)])
            .flat_map(|(user, rights)| {
                std::iter::from_fn(|| take(&relay, user, rights)).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(clients.len(), 1024);
        let certificate = || Identity::Certificate("app1.internal".to_owned());
        let room: Vec<_> = std::iter::from_fn(|| daemon.take(certificate(), BOTH)).collect();
        assert_eq!(room.len(), clients.len());
    }

    #[test]
    fn handshakes_of_one_machine_leave_room_for_others() {
        let limits = ConnectionLimits::new(false);
        let from = |address: &str| limits.take_handshake(address.parse().unwrap());
        let addresses = (0..).map(|number| format!("2001:db8::{number:x}"));
        let many: Vec<_> = addresses.map_while(|address| from(&address)).collect();
        assert_eq!(many.len(), 64);
        assert!(from("2001:db8:0:1::1").is_some());
        let mapped: Vec<_> = std::iter::from_fn(|| from("::ffff:192.0.2.1")).collect();
        assert_eq!(mapped.len(), 64);
        assert!(from("192.0.2.1").is_none() && from("192.0.2.2").is_some());
        drop(many);
        assert!(from("2001:db8::1").is_some());
    }
}
