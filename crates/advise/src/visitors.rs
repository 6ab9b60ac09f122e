//! Assigns requests to visitors.
//!
//! The first request of a visitor has no cookie, so it belongs to no session. From the second
//! request on, the visitor has a session. A new session is therefore assigned to an earlier visitor
//! without a session at the same address: the newest one whose last request was answered. Behind a
//! shared address that is a guess, but all counts stay correct.

use std::collections::{HashMap, VecDeque};

use bywash_units::Time;

use crate::request::Client;
use crate::sessions::{MOST, Sessions};

/// The maximum number of visitors without a session that are remembered for each address. Beyond
/// it, the earliest are forgotten, because they have most probably left.
const LOOKED_AT: usize = 64;

/// The visitors that have no session so far.
#[derive(Debug, Default)]
pub(crate) struct Visitors {
    /// The numbers of visitors without a session by address, the newest last.
    strangers: HashMap<u64, VecDeque<u64>>,
    /// The number of the next visitor without a session.
    next: u64,
}

impl Visitors {
    /// Returns the number that identifies the client of a request at time `now` in `sessions`.
    /// Returns `None` for a robot and for an unknown client, which belong to no session.
    pub(crate) fn identify(
        &mut self,
        client: Client,
        now: Time,
        sessions: &mut Sessions,
    ) -> Option<u64> {
        match client {
            Client::Untold | Client::Robot { .. } => None,
            Client::Known { number, .. } => Some(number),
            Client::Stranger { address } => Some(self.stranger(address, sessions)),
            Client::Session { session, address } => {
                if !sessions.is_open(session)
                    && let Some(there) = self.strangers.get_mut(&address)
                    && let Some(at) = there.iter().rposition(|one| sessions.was_answered(*one, now))
                    && let Some(stranger) = there.remove(at)
                {
                    sessions.rename(stranger, session);
                }
                Some(session)
            }
        }
    }

    fn stranger(&mut self, address: u64, sessions: &Sessions) -> u64 {
        if self.strangers.len() >= MOST && !self.strangers.contains_key(&address) {
            self.strangers.retain(|_, there| there.iter().any(|one| sessions.is_open(*one)));
            if self.strangers.len() >= MOST {
                self.strangers.clear();
            }
        }
        self.next += 1;
        let there = self.strangers.entry(address).or_default();
        if there.len() == LOOKED_AT {
            there.pop_front();
        }
        there.push_back(self.next);
        self.next
    }
}

#[cfg(test)]
mod tests {
    use bywash_units::TimeSpan;

    use super::*;
    use crate::sessions::Visit;

    #[test]
    fn a_session_goes_on_from_the_stranger_who_was_answered_last() {
        let (mut visitors, mut sessions) = (Visitors::default(), Sessions::default());
        let stranger = Client::Stranger { address: 1 };
        let session = |session, address| Client::Session { session, address };
        let (first, second, other) =
            (session(u64::MAX, 1), session(u64::MAX - 1, 1), session(u64::MAX - 2, 2));
        let mut begins = Vec::new();
        let asked = [
            (stranger, false),
            (stranger, false),
            (stranger, true),
            (first, false),
            (first, false),
            (second, false),
            (other, false),
        ];
        for (at, (client, in_vain)) in (0..).zip(asked) {
            let began = Time::ZERO + TimeSpan::from_secs(at);
            let client = visitors.identify(client, began, &mut sessions).unwrap();
            let visit = Visit { client, began, ended: began, page: Some((at as u16, 0)), in_vain };
            begins.push((sessions.visit(&visit, began).begins, sessions.all));
        }
        let new: Vec<bool> = begins.iter().map(|(begins, _)| *begins).collect();
        assert_eq!(new, [true, true, true, false, false, false, true]);
        assert_eq!(sessions.open(), 4, "a refused client stays a stranger");
    }
}
