//! The evidence that a cookie is the session cookie, for `identify.session = "auto"`.
//!
//! **The evidence.** [`ENOUGH`] responses have set the cookie to long values that all differ, and
//! [`ENOUGH`] requests have returned such a value without being given another one. This excludes a
//! CSRF token and a sliding value, which are set again and again, and a language, which has few
//! values.
//!
//! **Which values are remembered.** Many values may go to crawlers, which never return them. While
//! more than half of [`MOST`] values were never returned, a new value replaces the oldest of these,
//! but not before that one is [`HELD`] old. Otherwise it replaces the oldest value that was
//! returned. So visitors have time to return, however fast crawlers are given values, and their
//! returns add up.
//!
//! **Not by one client.** Only values that responses have set count, at most [`BY_ADDRESS`] of them
//! for one address, and at most [`BY_VALUE`] returns for one value. So the evidence takes at least
//! four addresses, and attackers cannot give it for a cookie that the application does not set. To
//! keep all others out, attackers must hold all values, which takes 26 addresses. They must ask for
//! new ones without a pause: each value that was never returned makes room after [`HELD`], and each
//! that was returned makes room for the next new one. Evidence that the value changes takes more
//! than one replaced value for [`CHANGES`] counted returns, and again at most [`BY_ADDRESS`] of
//! them come from one address.

use std::time::{Duration, Instant};

use bywash_engine::AddressKey;

/// The number of values set, and of requests that return one.
const ENOUGH: usize = 20;
/// The number of values that are remembered.
const MOST: usize = 128;
/// The number of remembered values that were set for one address.
const BY_ADDRESS: usize = 5;
/// The number of counted returns for one value.
const BY_VALUE: u8 = 2;
/// The number of bytes of a value that cannot be guessed.
const LONG: usize = 16;
/// The minimum number of unchanged returns for each value that was replaced on return, as a login
/// does. A visitor of two pages that both set the cookie makes four unchanged returns for one
/// replaced value.
const CHANGES: usize = 10;
/// How long a value that was never returned is remembered at least: most visitors request the next
/// page, or something that the page contains, within this time.
const HELD: Duration = Duration::from_secs(30);

/// The values of a cookie that responses have set, in the order in which they were set.
#[derive(Default)]
pub(super) struct Evidence(Vec<Value>);

struct Value {
    hash: u64,
    address: AddressKey,
    since: Instant,
    /// Requests that returned the value and were given no other one.
    kept: u8,
    /// A request that returned the value was given another one.
    changed: bool,
}

impl Value {
    const fn was_returned(&self) -> bool {
        self.kept > 0 || self.changed
    }
}

impl Evidence {
    /// Records that a response to this address has set a value with this hash.
    pub(super) fn is_set(&mut self, value: &[u8], hash: u64, address: AddressKey, now: Instant) {
        let of_address = self.0.iter().filter(|value| value.address == address).count();
        let is_known = self.0.iter().any(|value| value.hash == hash);
        if value.len() < LONG || is_known || of_address >= BY_ADDRESS || !self.makes_room(now) {
            return;
        }
        self.0.push(Value { hash, address, since: now, kept: 0, changed: false });
    }

    /// Makes room for a value. Returns false if all values are to be remembered for longer.
    fn makes_room(&mut self, now: Instant) -> bool {
        if self.0.len() < MOST {
            return true;
        }
        let returned = self.0.iter().filter(|value| value.was_returned()).count();
        let is_over = |value: &Value| {
            if returned < MOST / 2 {
                !value.was_returned() && now.duration_since(value.since) >= HELD
            } else {
                value.was_returned()
            }
        };
        let over = self.0.iter().position(is_over);
        over.map(|at| self.0.remove(at)).is_some()
    }

    /// Records that a request has returned a value. `set`: the value that its response has set, if
    /// any.
    pub(super) fn is_returned(&mut self, hash: u64, set: Option<u64>) {
        let Some(value) = self.0.iter_mut().find(|value| value.hash == hash) else { return };
        if set.is_some_and(|set| set != hash) {
            value.changed = true;
        } else {
            value.kept = (value.kept + 1).min(BY_VALUE);
        }
    }

    pub(super) fn kept(&self) -> usize {
        self.0.iter().map(|value| usize::from(value.kept)).sum()
    }

    /// Returns whether the value changes for clients that return it.
    fn changes(&self) -> bool {
        let changed = self.0.iter().filter(|value| value.changed).count();
        changed * CHANGES > self.kept()
    }

    pub(super) fn is_enough(&self) -> bool {
        self.0.len() >= ENOUGH && self.kept() >= ENOUGH && !self.changes()
    }

    /// Returns whether there is some evidence and nothing against it.
    pub(super) fn may_be_enough(&self) -> bool {
        self.0.len() > 1 && !self.changes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets a value for an address of its own.
    fn set(evidence: &mut Evidence, hash: u64, now: Instant) {
        evidence.is_set(&[b'v'; LONG], hash, AddressKey(hash), now);
    }

    #[test]
    fn visitors_give_the_evidence_however_many_values_go_to_crawlers() {
        let (mut evidence, mut now) = (Evidence::default(), Instant::now());
        for visitor in 0..12 {
            now += HELD;
            set(&mut evidence, visitor, now);
            for crawler in 0..1000 {
                set(&mut evidence, 1000 * (visitor + 1) + crawler, now);
            }
            evidence.is_returned(visitor, None);
            evidence.is_returned(visitor, None);
        }
        assert!(evidence.is_enough());
        assert_eq!(evidence.0.len(), MOST);
    }

    #[test]
    fn values_that_strangers_had_replaced_make_room_for_those_of_visitors() {
        let (mut evidence, now) = (Evidence::default(), Instant::now());
        for stranger in 0..MOST as u64 {
            let address = AddressKey(stranger / BY_ADDRESS as u64);
            evidence.is_set(&[b'v'; LONG], stranger, address, now);
            evidence.is_returned(stranger, Some(u64::MAX));
        }
        // Each visitor returns only after 50 others have come.
        for first in [1000, 2000, 3000] {
            for visitor in first..first + 50 {
                set(&mut evidence, visitor, now);
            }
            for visitor in first..first + 50 {
                evidence.is_returned(visitor, None);
            }
        }
        assert!(evidence.is_enough());
    }
}
