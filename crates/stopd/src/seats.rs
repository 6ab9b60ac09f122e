//! Bounds the number of client connections.
//!
//! Users that may lease and users that may only stop have separate shares, so that neither group
//! can shut the other out. A user has at most a quarter of a share, so that a compromised
//! application leaves room for the others.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::lease_broker::Rights;

/// A share of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Share {
    /// Users that may lease.
    Lessees,
    /// Users that may only stop: gateways.
    Stoppers,
    /// Users without rights. They get an error response.
    Strangers,
}

impl Share {
    const fn of(rights: Rights) -> Self {
        match (rights.leases, rights.stops) {
            (true, _) => Self::Lessees,
            (false, true) => Self::Stoppers,
            (false, false) => Self::Strangers,
        }
    }

    const fn seats(self) -> usize {
        match self {
            Self::Lessees => 4096,
            Self::Stoppers => 1024,
            Self::Strangers => 16,
        }
    }

    const fn of_one_user(self) -> usize {
        self.seats() / 4
    }
}

#[derive(Debug, Default)]
struct Taken {
    by_share: HashMap<Share, usize>,
    by_user: HashMap<(Share, u32), usize>,
}

/// The counts of all connections. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats(Rc<RefCell<Taken>>);

/// A connection, which counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Seats,
    share: Share,
    user: u32,
}

impl Seats {
    /// Takes a connection for a user with these rights. Returns `None` if its share, or the user's
    /// part of it, is exhausted.
    pub(crate) fn take(&self, user: u32, rights: Rights) -> Option<Seat> {
        let share = Share::of(rights);
        let mut taken = self.0.borrow_mut();
        let of_share = taken.by_share.get(&share).copied().unwrap_or(0);
        let of_user = taken.by_user.get(&(share, user)).copied().unwrap_or(0);
        if of_share >= share.seats() || of_user >= share.of_one_user() {
            return None;
        }
        taken.by_share.insert(share, of_share + 1);
        taken.by_user.insert((share, user), of_user + 1);
        drop(taken);
        Some(Seat { seats: self.clone(), share, user })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.0.borrow_mut();
        if let Some(count) = taken.by_share.get_mut(&self.share) {
            *count -= 1;
        }
        let key = (self.share, self.user);
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
        let seats = Seats::default();
        let one: Vec<_> = std::iter::from_fn(|| seats.take(1, BOTH)).collect();
        assert_eq!(one.len(), 1024);
        assert!(seats.take(2, LESSEE).is_some());
        drop(one);
        assert!(seats.take(1, BOTH).is_some());
    }

    #[test]
    fn lessees_and_stoppers_cannot_shut_each_other_out() {
        let seats = Seats::default();
        let users = 1..=8;
        let lessees: Vec<_> = users
            .clone()
            .flat_map(|user| std::iter::from_fn(|| seats.take(user, LESSEE)).collect::<Vec<_>>())
            .collect();
        assert_eq!(lessees.len(), 4096);
        assert!(seats.take(9, LESSEE).is_none());
        let stoppers: Vec<_> = users
            .flat_map(|user| std::iter::from_fn(|| seats.take(user, STOPPER)).collect::<Vec<_>>())
            .collect();
        assert_eq!(stoppers.len(), 1024);
        drop(lessees);
        assert!(seats.take(9, STOPPER).is_none());
        assert!(seats.take(9, LESSEE).is_some());
    }

    #[test]
    fn a_user_without_rights_has_few() {
        let seats = Seats::default();
        let few: Vec<_> = std::iter::from_fn(|| seats.take(1, Rights::NONE)).collect();
        assert_eq!(few.len(), 4);
    }
}
