//! Who is connected, so that nobody shuts operators out.
//!
//! Every user of the machine can connect on loopback, and hold as many connections as there may be. So a connection
//! counts as somebody's only once a token has come by it (or it came by the unix socket), and where there are as many as there
//! may be, the oldest of the others makes room.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use tokio::sync::Notify;

/// Operators and scrapers, not crowds. A browser opens up to six.
pub(crate) const MOST: usize = 256;

/// All connections, the oldest first.
#[derive(Default)]
pub(super) struct Guests(RefCell<VecDeque<Weak<Guest>>>);

/// One of them.
#[derive(Debug, Default)]
pub(super) struct Guest {
    /// It has shown that it may be here.
    pub(super) is_known: Cell<bool>,
    leaves: Notify,
}

impl Guests {
    /// Another one; nobody if all that there may be are known.
    pub(super) fn admit(&self) -> Option<Rc<Guest>> {
        let mut guests = self.0.borrow_mut();
        guests.retain(|guest| guest.strong_count() > 0);
        if guests.len() >= MOST {
            let is_stranger =
                |guest: &Weak<Guest>| guest.upgrade().is_some_and(|guest| !guest.is_known.get());
            let oldest = guests.iter().position(is_stranger)?;
            if let Some(stranger) = guests.remove(oldest).and_then(|guest| guest.upgrade()) {
                stranger.leaves.notify_one();
            }
        }
        let guest = Rc::default();
        guests.push_back(Rc::downgrade(&guest));
        Some(guest)
    }
}

impl Guest {
    /// When it is to make room.
    pub(super) async fn leaves(&self) {
        self.leaves.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_stranger_makes_room_and_nobody_who_is_known() {
        let guests = Guests::default();
        let mut here: Vec<Rc<Guest>> = (0..MOST).map(|_| guests.admit().unwrap()).collect();
        here[0].is_known.set(true);
        let next = guests.admit().expect("there is room");
        let told = |guest: &Guest| {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            std::pin::pin!(guest.leaves()).poll(&mut cx).is_ready()
        };
        assert!(!told(&here[0]) && told(&here[1]) && !told(&here[2]));
        here.push(next);
        for guest in &here {
            guest.is_known.set(true);
        }
        // The one that was told to go is gone from the list.
        assert!(guests.admit().is_none());
        here.truncate(10);
        assert!(guests.admit().is_some(), "who has left takes no room");
    }
}
