//! How many requests each holder has waiting and running, and how its clients have behaved.
//!
//! A holder is a proven session, or else an address: whether or not its address is charged for what
//! waits (`identify.charge`), a request that runs holds a slot for somebody. The counts are kept in
//! a fixed table by the low bits of the holder's keyed hash, so counting costs two additions and
//! never allocates. Clients do not know the hash key, so they cannot choose with whom they share an
//! entry. Two holders that share one by chance count as one: they may rank last a moment too early
//! while others wait, and nothing is refused because of it.
//!
//! **Trust.** An answer that its client took at once adds one to the balance of its holder, up to
//! [`MOST_TRUST`]. A request that was stopped because its client is slow takes [`STOP_COSTS`]. A holder whose
//! balance is negative is [`Trust::Slow`] until its other requests have made up for it or [`FORGIVEN`] has passed,
//! so an address that many people share is judged by all of them.
//!
//! **Insistence.** A holder that was refused more than [`REFUSALS`] times within [`REFUSED`] asks again whatever it is
//! told.

use alloc::boxed::Box;
use alloc::vec;

use bywash_units::Time;

use super::principals::Principal;

/// Entries of the table: a power of two.
const ENTRIES: usize = 65_536;

/// The balance of a holder whose clients have taken many answers at once: four stops.
const MOST_TRUST: i8 = 64;
/// Answers that make up for one stop.
const STOP_COSTS: i8 = 16;
/// Seconds after its last stop after which a holder is not slow any more.
const FORGIVEN: u32 = 600;
/// Refusals that a patient client may get within [`REFUSED`] seconds.
const REFUSALS: u8 = 3;
/// Seconds after which refusals are counted anew.
const REFUSED: u32 = 10;

/// How the clients of a holder have behaved so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    /// They take their answers.
    Known,
    /// Nothing is known of them.
    #[default]
    Unknown,
    /// Nothing is known of them, but that they ask again and again although they are refused.
    Insistent,
    /// Requests of theirs were stopped because they were slow.
    Slow,
}

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
    balance: i8,
    refusals: u8,
    /// When a request was last stopped because its client was slow, in seconds.
    stopped: u32,
    /// Since when refusals are counted, in seconds.
    refused: u32,
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

    /// A client of the holder has taken its answer at once.
    pub(crate) fn took_answer(&mut self, now: Time, holder: Option<Holder>) {
        if let Some(counts) = self.at(holder) {
            counts.balance = counts.balance_at(now).saturating_add(1).min(MOST_TRUST);
        }
    }

    /// A request of the holder was stopped because its client was slow.
    pub(crate) fn was_slow(&mut self, now: Time, holder: Option<Holder>) {
        if let Some(counts) = self.at(holder) {
            counts.balance = (counts.balance_at(now) - STOP_COSTS).max(-STOP_COSTS);
            counts.stopped = seconds(now);
        }
    }

    /// A request of the holder was refused.
    pub(crate) fn was_refused(&mut self, now: Time, holder: Option<Holder>) {
        if let Some(counts) = self.at(holder) {
            if seconds(now).saturating_sub(counts.refused) >= REFUSED {
                (counts.refused, counts.refusals) = (seconds(now), 0);
            }
            counts.refusals = counts.refusals.saturating_add(1);
        }
    }

    /// Returns how the clients of the holder have behaved.
    pub(crate) fn trust(&self, now: Time, holder: Option<Holder>) -> Trust {
        let Some(Holder(entry)) = holder else { return Trust::Unknown };
        let counts = &self.counts[usize::from(entry)];
        match counts.balance_at(now) {
            ..0 => Trust::Slow,
            1.. => Trust::Known,
            0 if counts.insists(now) => Trust::Insistent,
            0 => Trust::Unknown,
        }
    }
}

impl Counts {
    fn balance_at(&self, now: Time) -> i8 {
        let is_forgiven = self.balance < 0 && seconds(now).saturating_sub(self.stopped) >= FORGIVEN;
        if is_forgiven { 0 } else { self.balance }
    }

    fn insists(&self, now: Time) -> bool {
        self.refusals > REFUSALS && seconds(now).saturating_sub(self.refused) < REFUSED
    }
}

/// Seconds of the driver's clock: they suffice for 136 years.
fn seconds(now: Time) -> u32 {
    now.as_secs_f64() as u32
}
