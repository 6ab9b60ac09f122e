//! The evidence that a cookie is the session cookie, for `identify.session = "auto"`.
//!
//! **The evidence.** Two things are required. Responses have set the cookie to at least [`ENOUGH`]
//! long values that all differ. Requests have returned such values at least [`ENOUGH`] times
//! without getting another value in return. This excludes a CSRF token and a value that every
//! response renews, because both are set again and again. It excludes a language, because that has
//! few values.
//!
//! **Which values are remembered.** Many values may go to crawlers, which never return them. At
//! most [`MOST`] values are remembered. While fewer than half of them were ever returned, a new
//! value replaces the oldest value that was never returned, if that one is at least [`HELD`] old.
//! Otherwise the new value replaces the oldest value that was returned. So visitors have time to
//! return, however fast crawlers are given values, and the returns of visitors add up.
//!
//! **One client is not enough.** Only values that responses have set count: at most [`BY_ADDRESS`]
//! of them for one address, and at most [`BY_VALUE`] returns for one value. So the evidence takes
//! at least four addresses, and an attacker cannot create it for a cookie that the application does
//! not set.
//!
//! An attacker who wants to exclude all other visitors must hold all remembered values, which takes
//! 26 addresses. The attacker must then ask for new values without a pause: a value that was never
//! returned makes room after [`HELD`], and a value that was returned makes room for the next new
//! one.
//!
//! Evidence against the cookie takes more than one replaced value for every [`CHANGES`] counted
//! returns. At most [`BY_ADDRESS`] of the replaced values belong to one address.

use std::time::{Duration, Instant};

use bywash_engine::AddressKey;

/// The minimum number of distinct values that responses set, and the minimum number of counted
/// returns.
const ENOUGH: usize = 20;
/// The maximum number of values that are remembered for one cookie.
const MOST: usize = 128;
/// The maximum number of remembered values that were set for one address.
const BY_ADDRESS: usize = 5;
/// The maximum number of returns that count for one value.
const BY_VALUE: u8 = 2;
/// The minimum length in bytes of a value that counts. A shorter value might be guessed.
const LONG: usize = 16;
/// The minimum number of counted returns for each replaced value. A value is replaced when a
/// request returns it and the response sets another one, as a login does.
///
/// The number is above 4, so that a cookie that several pages set is rejected. A visitor that loads
/// two such pages at once makes four counted returns for one replaced value.
const CHANGES: usize = 10;
/// The minimum time for which a value that was never returned is remembered. Within this time most
/// visitors request the next page, or something that the page contains.
const HELD: Duration = Duration::from_secs(30);

/// The remembered values of one cookie that responses have set, in the order in which they were
/// set.
#[derive(Default)]
pub(super) struct Evidence(Vec<Value>);

struct Value {
    hash: u64,
    address: AddressKey,
    since: Instant,
    /// The number of requests that returned the value and got no other value, at most [`BY_VALUE`].
    kept: u8,
    /// Whether a request that returned the value has got another value.
    changed: bool,
}

impl Value {
    const fn was_returned(&self) -> bool {
        self.kept > 0 || self.changed
    }
}

impl Evidence {
    /// Records that a response to this address has set `value`, whose hash is `hash`. Ignores a
    /// value that is too short or known, and one for which there is no space.
    pub(super) fn record_set(
        &mut self,
        value: &[u8],
        hash: u64,
        address: AddressKey,
        now: Instant,
    ) {
        let of_address = self.0.iter().filter(|value| value.address == address).count();
        let is_known = self.0.iter().any(|value| value.hash == hash);
        if value.len() < LONG || is_known || of_address >= BY_ADDRESS || !self.make_room(now) {
            return;
        }
        self.0.push(Value { hash, address, since: now, kept: 0, changed: false });
    }

    /// Makes room for a value, if necessary by removing one. Returns false if no value may be
    /// removed yet.
    fn make_room(&mut self, now: Instant) -> bool {
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

    /// Records that a request has returned the value with this hash. `set` is the hash of the value
    /// that the response to this request has set, if any.
    pub(super) fn record_returned(&mut self, hash: u64, set: Option<u64>) {
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

    /// Returns whether responses have replaced more than one value for every [`CHANGES`] counted
    /// returns.
    fn changes(&self) -> bool {
        let changed = self.0.iter().filter(|value| value.changed).count();
        changed * CHANGES > self.kept()
    }

    pub(super) fn is_enough(&self) -> bool {
        self.0.len() >= ENOUGH && self.kept() >= ENOUGH && !self.changes()
    }

    /// Returns whether the cookie has at least two remembered values, and responses do not replace
    /// values that are returned.
    pub(super) fn may_be_enough(&self) -> bool {
        self.0.len() > 1 && !self.changes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records a value for an address that has no other value.
    fn set(evidence: &mut Evidence, hash: u64, now: Instant) {
        evidence.record_set(&[b'v'; LONG], hash, AddressKey(hash), now);
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
            evidence.record_returned(visitor, None);
            evidence.record_returned(visitor, None);
        }
        assert!(evidence.is_enough());
        assert_eq!(evidence.0.len(), MOST);
    }

    #[test]
    fn values_that_strangers_had_replaced_make_room_for_those_of_visitors() {
        let (mut evidence, now) = (Evidence::default(), Instant::now());
        for stranger in 0..MOST as u64 {
            let address = AddressKey(stranger / BY_ADDRESS as u64);
            evidence.record_set(&[b'v'; LONG], stranger, address, now);
            evidence.record_returned(stranger, Some(u64::MAX));
        }
        // Each visitor returns its value only after 50 other values were set.
        for first in [1000, 2000, 3000] {
            for visitor in first..first + 50 {
                set(&mut evidence, visitor, now);
            }
            for visitor in first..first + 50 {
                evidence.record_returned(visitor, None);
            }
        }
        assert!(evidence.is_enough());
    }
}
