//! The evidence that a cookie is the session's, for `identify.session = "auto"`.
//!
//! **The evidence.** [`ENOUGH`] answers have set the cookie to long values that all differ, and [`ENOUGH`] requests have
//! returned such a value without being given another one. A token against forgery or a value that slides is set anew
//! again and again; a language has few values.
//!
//! **Not by one client.** Only values that answers have set count, of the last [`MOST`] of them. Of one address at most
//! [`BY_ADDRESS`] values count, and of each value at most [`BY_VALUE`] returns, so that no client gives the evidence alone.

use bywash_engine::AddressKey;

/// Answers that set it, and requests that return it.
const ENOUGH: usize = 20;
/// Values that are remembered.
const MOST: usize = 128;
/// Remembered values that were set for one address.
const BY_ADDRESS: usize = 5;
/// Requests that return one of them.
const BY_VALUE: u8 = 2;
/// Bytes of a value that nobody guesses.
const LONG: usize = 16;
/// Returns without another value for each one that is answered with another value, as a login does. A visitor of two
/// pages, each of which sets the cookie, makes four to one.
const CHANGES: usize = 10;

/// The values of a cookie that answers have set.
#[derive(Default)]
pub(super) struct Evidence(Vec<Value>);

struct Value {
    hash: u64,
    address: AddressKey,
    /// Requests that returned it and were given no other one.
    kept: u8,
    /// A request that returned it was given another one.
    changed: bool,
}

impl Evidence {
    /// An answer to this address has set a value that has this hash.
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

    /// A request has returned a value, and its answer has set this one, if any.
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

    /// It changes for clients that return it.
    fn changes(&self) -> bool {
        let changed = self.0.iter().filter(|value| value.changed).count();
        changed * CHANGES > self.kept()
    }

    pub(super) fn is_enough(&self) -> bool {
        self.0.len() >= ENOUGH && self.kept() >= ENOUGH && !self.changes()
    }

    /// There is evidence, and nothing speaks against it.
    pub(super) fn may_be_enough(&self) -> bool {
        self.0.len() > 1 && !self.changes()
    }
}
