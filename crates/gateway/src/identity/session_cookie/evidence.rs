//! The evidence that a cookie is the session cookie, for `identify.session = "auto"`.
//!
//! **The evidence.** [`ENOUGH`] responses have set the cookie to long values that all differ, and
//! [`ENOUGH`] requests have returned such a value without being given another one. This excludes a
//! CSRF token and a sliding value, which are set again and again, and a language, which has few
//! values.
//!
//! **Not by one client.** Only values that responses have set count, and of those only the last
//! [`MOST`]. At most [`BY_ADDRESS`] values count for one address, and at most [`BY_VALUE`] returns
//! for one value. So no client can produce the evidence alone.

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

/// The values of a cookie that responses have set.
#[derive(Default)]
pub(super) struct Evidence(Vec<Value>);

struct Value {
    hash: u64,
    address: AddressKey,
    /// Requests that returned the value and were given no other one.
    kept: u8,
    /// A request that returned the value was given another one.
    changed: bool,
}

impl Evidence {
    /// Records that a response to this address has set a value with this hash.
    pub(super) fn is_set(&mut self, value: &[u8], hash: u64, address: AddressKey) {
        let of_address = self.0.iter().filter(|value| value.address == address).count();
        let is_known = self.0.iter().any(|value| value.hash == hash);
        if value.len() < LONG || is_known || of_address >= BY_ADDRESS {
            return;
        }
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push(Value { hash, address, kept: 0, changed: false });
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
