//! How many requests each holder has waiting and running.
//!
//! A holder is a proven session, or else an address: whether or not its address is charged for what
//! waits (`identify.charge`), a request that runs holds a slot for somebody. The counts are kept in
//! a fixed table by the low bits of the holder's keyed hash, so counting costs two additions and
//! never allocates. Clients do not know the hash key, so they cannot choose with whom they share an
//! entry. Two holders that share one by chance count as one: they may rank last a moment too early
//! while others wait, and nothing is refused because of it.

use alloc::boxed::Box;
use alloc::vec;

use super::principals::Principal;

/// Entries of the table: a power of two.
const ENTRIES: usize = 1024;

/// An entry of the table of holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder(u16);

impl Holder {
    /// The entry of a principal.
    pub(crate) const fn of(principal: Principal) -> Self {
        // Keys are hashes in the gateway and small numbers in the simulator: mix them once more.
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let key = match principal {
            Principal::Checkout(key) => key.0.wrapping_add(1),
            Principal::Session(key) => key.0,
            Principal::Address(key) => !key.0,
        };
        Self((key.wrapping_mul(MIX) >> (64 - ENTRIES.trailing_zeros())) as u16)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    waiting: u32,
    running: u32,
}

/// The counts of all holders.
#[derive(Debug)]
pub(crate) struct Holders {
    counts: Box<[Counts]>,
}

impl Holders {
    pub(crate) fn new() -> Self {
        Self { counts: vec![Counts::default(); ENTRIES].into_boxed_slice() }
    }

    fn at(&mut self, holder: Option<Holder>) -> Option<&mut Counts> {
        holder.map(|Holder(entry)| &mut self.counts[usize::from(entry)])
    }

    pub(crate) fn waits(&mut self, holder: Option<Holder>) {
        if let Some(counts) = self.at(holder) {
            counts.waiting += 1;
        }
    }

    pub(crate) fn waits_no_longer(&mut self, holder: Option<Holder>) {
        if let Some(counts) = self.at(holder) {
            counts.waiting -= 1;
        }
    }

    pub(crate) fn runs(&mut self, holder: Option<Holder>) {
        if let Some(counts) = self.at(holder) {
            counts.running += 1;
        }
    }

    pub(crate) fn runs_no_longer(&mut self, holder: Option<Holder>) {
        if let Some(counts) = self.at(holder) {
            counts.running -= 1;
        }
    }

    /// Requests of the holder that wait; none where the holder is not known.
    pub(crate) fn waiting(&self, holder: Option<Holder>) -> u32 {
        holder.map_or(0, |Holder(entry)| self.counts[usize::from(entry)].waiting)
    }

    /// Requests of the holder that run; none where the holder is not known.
    pub(crate) fn running(&self, holder: Option<Holder>) -> u32 {
        holder.map_or(0, |Holder(entry)| self.counts[usize::from(entry)].running)
    }
}
