//! Whose requests are one visitor's.
//!
//! Whoever has a session has it from her second request on, as the first had no cookie yet. So a session that appears
//! for the first time goes on from the stranger who was answered last at its address and whom nothing goes on from yet.
//! Behind a shared address that is a guess, though one that keeps every number.

use std::collections::{HashMap, VecDeque};

use bywash_units::Time;

use crate::request::Client;
use crate::sessions::{MOST, Sessions};

/// Strangers at one address who are looked at: one who is further back has most probably gone.
const LOOKED_AT: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Guests {
    /// By their address, the newest last.
    strangers: HashMap<u64, VecDeque<u64>>,
    /// The number of the next stranger.
    next: u64,
}

impl Guests {
    /// The number under which she is in `sessions`, who asks for something now.
    pub(crate) fn whose(
        &mut self,
        client: Client,
        now: Time,
        sessions: &mut Sessions,
    ) -> Option<u64> {
        match client {
            Client::Untold => None,
            Client::Known(key) => Some(key),
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
    use bywash_units::Span;

    use super::*;
    use crate::sessions::Visit;

    #[test]
    fn a_session_goes_on_from_the_stranger_who_was_answered_last() {
        let (mut guests, mut sessions) = (Guests::default(), Sessions::default());
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
            let began = Time::ZERO + Span::from_secs(at);
            let client = guests.whose(client, began, &mut sessions).unwrap();
            let visit = Visit { client, began, ended: began, page: Some((at as u16, 0)), in_vain };
            begins.push((sessions.visit(&visit, began).begins, sessions.all));
        }
        let new: Vec<bool> = begins.iter().map(|(begins, _)| *begins).collect();
        assert_eq!(new, [true, true, true, false, false, false, true]);
        assert_eq!(sessions.open(), 4, "the one who was refused stays a stranger");
    }
}
