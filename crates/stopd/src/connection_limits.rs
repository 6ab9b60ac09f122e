//! Limits the number of client connections.
//!
//! Users that may lease and users that may only stop have separate shares of the connections, so
//! that neither group can exclude the other. A user has at most a quarter of a share, so that a
//! compromised application leaves room for the others.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::lease_broker::Rights;

/// A group of users that share a part of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum UserGroup {
    /// Users that may lease: applications.
    Lessees,
    /// Users that may only stop: gateways and web servers.
    Stoppers,
    /// Users that may neither lease nor stop. Their connections get an error response.
    Unauthorised,
}

impl UserGroup {
    const fn of(rights: Rights) -> Self {
        match (rights.leases, rights.stops) {
            (true, _) => Self::Lessees,
            (false, true) => Self::Stoppers,
            (false, false) => Self::Unauthorised,
        }
    }

    const fn limit(self) -> usize {
        match self {
            Self::Lessees => 4096,
            Self::Stoppers => 1024,
            Self::Unauthorised => 16,
        }
    }

    const fn limit_per_user(self) -> usize {
        self.limit() / 4
    }
}

#[derive(Debug, Default)]
struct Taken {
    by_group: HashMap<UserGroup, usize>,
    by_user: HashMap<(UserGroup, u32), usize>,
}

/// The number of open connections by group and user. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionLimits(Rc<RefCell<Taken>>);

/// The permission for one connection. The connection counts until this value is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    limits: ConnectionLimits,
    group: UserGroup,
    user: u32,
}

impl ConnectionLimits {
    /// Counts a connection for the user with the ID `user` and the rights `rights`. Returns `None`
    /// if the share of the user's group is exhausted, or the user's part of it.
    pub(crate) fn take(&self, user: u32, rights: Rights) -> Option<ConnectionPermit> {
        let group = UserGroup::of(rights);
        let mut taken = self.0.borrow_mut();
        let of_group = taken.by_group.get(&group).copied().unwrap_or(0);
        let of_user = taken.by_user.get(&(group, user)).copied().unwrap_or(0);
        if of_group >= group.limit() || of_user >= group.limit_per_user() {
            return None;
        }
        taken.by_group.insert(group, of_group + 1);
        taken.by_user.insert((group, user), of_user + 1);
        drop(taken);
        Some(ConnectionPermit { limits: self.clone(), group, user })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = self.limits.0.borrow_mut();
        if let Some(count) = taken.by_group.get_mut(&self.group) {
            *count -= 1;
        }
        let key = (self.group, self.user);
        if let Some(count) = taken.by_user.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                taken.by_user.remove(&key);
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

    #[test]
    fn one_user_leaves_room_for_others() {
        let limits = ConnectionLimits::default();
        let one: Vec<_> = std::iter::from_fn(|| limits.take(1, BOTH)).collect();
        assert_eq!(one.len(), 1024);
        assert!(limits.take(2, LESSEE).is_some());
        drop(one);
        assert!(limits.take(1, BOTH).is_some());
    }

    #[test]
    fn lessees_and_stoppers_cannot_shut_each_other_out() {
        let limits = ConnectionLimits::default();
        let users = 1..=8;
        let lessees: Vec<_> = users
            .clone()
            .flat_map(|user| std::iter::from_fn(|| limits.take(user, LESSEE)).collect::<Vec<_>>())
            .collect();
        assert_eq!(lessees.len(), 4096);
        assert!(limits.take(9, LESSEE).is_none());
        let stoppers: Vec<_> = users
            .flat_map(|user| std::iter::from_fn(|| limits.take(user, STOPPER)).collect::<Vec<_>>())
            .collect();
        assert_eq!(stoppers.len(), 1024);
        drop(lessees);
        assert!(limits.take(9, STOPPER).is_none());
        assert!(limits.take(9, LESSEE).is_some());
    }

    #[test]
    fn a_user_without_rights_has_few() {
        let limits = ConnectionLimits::default();
        let few: Vec<_> = std::iter::from_fn(|| limits.take(1, Rights::NONE)).collect();
        assert_eq!(few.len(), 4);
    }
}
