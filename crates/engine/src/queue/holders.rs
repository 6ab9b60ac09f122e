//! The table of holders: how many requests each has waiting and running, and how its clients have
//! behaved.
//!
//! A holder is a proven session, or otherwise an address. A running request counts for its holder
//! even if its address does not count while it waits (`identify.principal`). The counts are in a
//! fixed table indexed by bits of the holder's keyed hash. So counting costs two additions and
//! never allocates. Clients do not know the hash key, so they cannot choose the holder with which
//! they share an entry. Two holders that share an entry by chance count as one: while others wait,
//! their requests may rank last slightly too early.
//!
//! **Trust.** An entry also describes how the clients of one holder have behaved. That holder is
//! identified by further bits of the hash. Any other holder with the same entry is unknown.
//! - The entry has a balance. An answer that its client read without delay adds one, up to
//!   [`MOST_TRUST`].
//! - A request that was stopped because its client is slow subtracts [`STOP_PENALTY`].
//! - A holder whose balance is negative is [`Trust::Slow`], until answers to its other requests
//!   have made up for the stop. It is slow for [`FIRST_SLOW_SECONDS`] seconds at most. That time
//!   doubles with each further stop, up to [`RETENTION_SECONDS`] seconds.
//! - An address that many people share is therefore judged by all of them.
//! - A balance that has not changed for [`RETENTION_SECONDS`] seconds is forgotten.
//!
//! An event of another holder may overwrite the entry. A stop always does. An answer does unless
//! the present holder is slow. A refusal does only if nothing is known of the present holder.
//!
//! **Insistence.** A holder is insistent if it is refused more than [`TOLERATED_REFUSALS`] times,
//! each less than [`REFUSAL_WINDOW`] seconds after the one before. In one second at most
//! [`MAX_REFUSALS_PER_SECOND`] refusals count, because one page may ask for many things.

use alloc::boxed::Box;
use alloc::vec;

use bywash_units::Time;

use super::principals::Principal;

/// The number of entries of the table; a power of two.
const ENTRIES: usize = 65_536;

/// The maximum balance of an entry. It makes up for eight stops.
const MOST_TRUST: i8 = 64;
/// The amount that one stop of a request subtracts from the balance. One answer adds 1.
const STOP_PENALTY: i8 = 8;
/// The maximum number of seconds for which a holder is slow after its first stop.
const FIRST_SLOW_SECONDS: u32 = 60;
/// The number of seconds without a change after which the past of a holder is forgotten. It is also
/// the longest time for which a holder is slow.
const RETENTION_SECONDS: u32 = 600;
/// The maximum number of counted refusals of a holder that is not insistent.
const TOLERATED_REFUSALS: u8 = 2;
/// The maximum number of refusals within one second that count.
const MAX_REFUSALS_PER_SECOND: u8 = 2;
/// The number of seconds within which a refusal must follow the previous one to add to it.
const REFUSAL_WINDOW: u32 = 10;

/// How the clients of a holder have behaved in the last minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The clients read their answers without delay.
    Known,
    /// The behaviour of the clients is unknown.
    Unknown,
    /// The clients retry again and again although they are refused. Nothing else is known about
    /// them.
    Insistent,
    /// Requests of the holder were stopped because the clients were slow.
    Slow,
}

/// The index of an entry in the table of holders, and a tag. The tag distinguishes the holder from
/// others with the same entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    entry: u16,
    tag: u16,
}

impl Holder {
    /// Returns the entry and the tag of a principal.
    pub(crate) const fn of(principal: Principal) -> Self {
        // In the simulator keys are small numbers and not hashes, so they are mixed here.
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let key = match principal {
            Principal::Checkout(key) => key.0.wrapping_add(1),
            Principal::Session(key) => key.0,
            Principal::Address(key) => !key.0,
        };
        let mixed = key.wrapping_mul(MIX);
        let entry = (mixed >> (u64::BITS - ENTRIES.trailing_zeros())) as u16;
        Self { entry, tag: (mixed >> 32) as u16 }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    waiting: u32,
    running: u32,
}

/// The past of one holder's clients. Times are in seconds of the driver's clock.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    tag: u16,
    balance: i8,
    /// The number of stops in a row, each less than [`RETENTION_SECONDS`] seconds after the one
    /// before.
    stops: u8,
    refusals: u8,
    /// The number of refusals counted in the second `refused`; at most [`MAX_REFUSALS_PER_SECOND`].
    refusals_at_once: u8,
    /// The second in which the balance last changed.
    changed: u32,
    /// The second in which a request of the holder was last stopped.
    stopped: u32,
    /// The second in which a refusal was last counted.
    refused: u32,
}

/// The table of holders. Counts are stored separately from pasts: they change several times with
/// each request, and should fit into a processor's cache.
#[derive(Debug)]
pub(crate) struct Holders {
    counts: Box<[Counts]>,
    pasts: Box<[Past]>,
    /// The second from which on no holder of the table is slow.
    slow_until: u32,
}

impl Holders {
    pub(crate) fn new() -> Self {
        Self {
            counts: vec![Counts::default(); ENTRIES].into_boxed_slice(),
            pasts: vec![Past::default(); ENTRIES].into_boxed_slice(),
            slow_until: 0,
        }
    }

    /// Returns whether any holder of the table may be slow now.
    pub(crate) fn may_be_slow(&self, now: Time) -> bool {
        seconds(now) < self.slow_until
    }

    fn at(&mut self, holder: Option<Holder>) -> Option<&mut Counts> {
        holder.map(|Holder { entry, .. }| &mut self.counts[usize::from(entry)])
    }

    pub(crate) fn add_waiting(&mut self, holder: Option<Holder>) {
        if let Some(counts) = self.at(holder) {
            counts.waiting += 1;
        }
    }

    pub(crate) fn remove_waiting(&mut self, holder: Option<Holder>) {
        if let Some(counts) = self.at(holder) {
            counts.waiting -= 1;
        }
    }

    pub(crate) fn add_running(&mut self, holder: Option<Holder>) {
        if let Some(counts) = self.at(holder) {
            counts.running += 1;
        }
    }

    pub(crate) fn remove_running(&mut self, holder: Option<Holder>) {
        if let Some(counts) = self.at(holder) {
            counts.running -= 1;
        }
    }

    /// Returns the number of the holder's waiting requests; zero if there is no holder.
    pub(crate) fn waiting(&self, holder: Option<Holder>) -> u32 {
        holder.map_or(0, |Holder { entry, .. }| self.counts[usize::from(entry)].waiting)
    }

    /// Returns the number of the holder's running requests; zero if there is no holder.
    pub(crate) fn running(&self, holder: Option<Holder>) -> u32 {
        holder.map_or(0, |Holder { entry, .. }| self.counts[usize::from(entry)].running)
    }

    /// Notes that a client of the holder has read its answer without delay, which improves the
    /// balance.
    pub(crate) fn note_prompt_read(&mut self, now: Time, holder: Option<Holder>) {
        let now = seconds(now);
        if let Some(past) = self.past_for(now, holder, |other| !other.is_slow(now)) {
            past.balance = past.balance.saturating_add(1).min(MOST_TRUST);
            past.changed = now;
        }
    }

    /// Notes that a request of the holder was stopped because its client was slow, which lowers the
    /// balance.
    pub(crate) fn was_slow(&mut self, now: Time, holder: Option<Holder>) {
        let now = seconds(now);
        let mut lasts = FIRST_SLOW_SECONDS;
        if let Some(past) = self.past_for(now, holder, |_| true) {
            past.balance = (past.balance - STOP_PENALTY).max(-STOP_PENALTY);
            past.stops = past.stops.saturating_add(1);
            (past.changed, past.stopped) = (now, now);
            lasts = past.is_slow_for();
        }
        self.slow_until = self.slow_until.max(now + lasts);
    }

    /// Notes that a request of the holder was refused. Refusals in quick succession make a holder
    /// insistent.
    pub(crate) fn note_refusal(&mut self, now: Time, holder: Option<Holder>) {
        let now = seconds(now);
        // Refusals cost a client nothing. So they must not overwrite what answers and stops say
        // about another holder.
        let is_empty = |other: &Past| !other.is_slow(now) && !other.is_known(now);
        let Some(past) = self.past_for(now, holder, is_empty) else { return };
        if past.refused != now {
            past.refusals_at_once = 0;
        }
        if now.saturating_sub(past.refused) >= REFUSAL_WINDOW {
            past.refusals = 0;
        }
        past.refused = now;
        if past.refusals_at_once < MAX_REFUSALS_PER_SECOND {
            past.refusals_at_once += 1;
            past.refusals = past.refusals.saturating_add(1);
        }
    }

    /// Returns how the clients of the holder have behaved. A request without a known holder counts
    /// as well-behaved.
    pub(crate) fn trust(&self, now: Time, holder: Option<Holder>) -> Trust {
        let Some(Holder { entry, tag }) = holder else { return Trust::Known };
        let (past, now) = (&self.pasts[usize::from(entry)], seconds(now));
        if past.tag != tag {
            return Trust::Unknown;
        }
        if past.is_slow(now) {
            return Trust::Slow;
        }
        let insists =
            past.refusals > TOLERATED_REFUSALS && now.saturating_sub(past.refused) < REFUSAL_WINDOW;
        if past.is_known(now) {
            Trust::Known
        } else if insists {
            Trust::Insistent
        } else {
            Trust::Unknown
        }
    }

    /// Returns the past of the holder, to be changed. If the entry describes another holder,
    /// `may_go` decides whether that holder's past is dropped. If it may not be dropped, returns
    /// `None`.
    fn past_for(
        &mut self,
        now: u32,
        holder: Option<Holder>,
        may_go: impl FnOnce(&Past) -> bool,
    ) -> Option<&mut Past> {
        let Holder { entry, tag } = holder?;
        let past = &mut self.pasts[usize::from(entry)];
        if past.tag != tag {
            if !may_go(past) {
                return None;
            }
            *past = Past { tag, ..Past::default() };
        } else if past.is_old(now) {
            (past.balance, past.stops) = (0, 0);
        } else if past.balance < 0 && !past.is_slow(now) {
            past.balance = 0;
        }
        Some(past)
    }
}

impl Past {
    const fn is_old(&self, now: u32) -> bool {
        now.saturating_sub(self.changed) >= RETENTION_SECONDS
    }

    const fn is_known(&self, now: u32) -> bool {
        self.balance > 0 && !self.is_old(now)
    }

    const fn is_slow(&self, now: u32) -> bool {
        self.balance < 0 && now.saturating_sub(self.stopped) < self.is_slow_for()
    }

    /// Returns the maximum number of seconds after the last stop for which the holder is slow.
    const fn is_slow_for(&self) -> u32 {
        let doublings = self.stops.saturating_sub(1) as u32;
        if doublings > 3 { RETENTION_SECONDS } else { FIRST_SLOW_SECONDS << doublings }
    }
}

/// Returns the time in whole seconds of the driver's clock. A `u32` suffices for 136 years.
fn seconds(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000_000) as u32
}

#[cfg(test)]
mod tests {
    use bywash_units::TimeSpan;

    use super::*;
    use crate::request::AddressKey;

    fn holder(key: u64) -> Holder {
        Holder::of(Principal::Address(AddressKey(key)))
    }

    /// Returns two holders that share an entry.
    fn two() -> [Option<Holder>; 2] {
        let one = holder(0);
        let other = (1..10_000_000)
            .map(holder)
            .find(|other| other.entry == one.entry && other.tag != one.tag);
        assert!(other.is_some());
        [Some(one), other]
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_secs(seconds)
    }

    #[test]
    fn what_is_known_of_one_holder_is_not_believed_of_another_with_its_entry() {
        let [one, other] = two();
        let mut holders = Holders::new();
        holders.note_prompt_read(at(0), one);
        assert_eq!([one, other].map(|it| holders.trust(at(0), it)), [Trust::Known, Trust::Unknown]);
        holders.was_slow(at(0), other);
        assert_eq!([one, other].map(|it| holders.trust(at(0), it)), [Trust::Unknown, Trust::Slow]);
        // An answer of another holder does not overwrite the entry of a slow one, until the slow
        // one's time has ended.
        holders.note_prompt_read(at(59), one);
        assert_eq!(holders.trust(at(59), other), Trust::Slow);
        holders.note_prompt_read(at(60), one);
        assert_eq!(
            [one, other].map(|it| holders.trust(at(60), it)),
            [Trust::Known, Trust::Unknown]
        );
    }

    #[test]
    fn a_refusal_makes_no_answer_of_another_holder_forgotten() {
        let [one, other] = two();
        let mut holders = Holders::new();
        holders.note_prompt_read(at(20), one);
        for second in 20..30 {
            holders.note_refusal(at(second), other);
        }
        assert_eq!(holders.trust(at(30), one), Trust::Known);
    }

    #[test]
    fn trust_is_forgotten() {
        let (known, mut holders) = (Some(holder(1)), Holders::new());
        holders.note_prompt_read(at(5), known);
        assert_eq!(holders.trust(at(604), known), Trust::Known);
        assert_eq!(holders.trust(at(605), known), Trust::Unknown);
    }

    #[test]
    fn each_further_stop_lasts_twice_as_long_up_to_ten_minutes() {
        let (slow, mut holders) = (Some(holder(1)), Holders::new());
        let mut now = 1000;
        for lasts in [60, 120, 240, 480, 600, 600] {
            holders.was_slow(at(now), slow);
            assert_eq!(holders.trust(at(now + lasts - 1), slow), Trust::Slow);
            assert_ne!(holders.trust(at(now + lasts), slow), Trust::Slow, "{lasts}");
            // This lies within ten minutes of the previous stop, so the next stop counts as a
            // further one.
            now += lasts.min(599);
        }
        holders.was_slow(at(now + 600), slow);
        assert_ne!(holders.trust(at(now + 660), slow), Trust::Slow, "a first one again");
    }

    #[test]
    fn requests_that_are_refused_at_once_count_twice_at_most() {
        let (browser, mut holders) = (Some(holder(1)), Holders::new());
        for _ in 0..6 {
            holders.note_refusal(at(20), browser);
        }
        assert_eq!(holders.trust(at(20), browser), Trust::Unknown);
        holders.note_refusal(at(29), browser);
        assert_eq!(holders.trust(at(29), browser), Trust::Insistent);
        assert_eq!(holders.trust(at(39), browser), Trust::Unknown);
        holders.note_refusal(at(39), browser);
        assert_eq!(holders.trust(at(39), browser), Trust::Unknown);
    }

    #[test]
    fn a_holder_may_be_slow_for_as_long_as_a_stop_counts() {
        let (slow, mut holders) = (Some(holder(1)), Holders::new());
        assert!(!holders.may_be_slow(at(1000)));
        for (stopped, until) in [(1000, 1060), (1070, 1190)] {
            holders.was_slow(at(stopped), slow);
            assert!(holders.may_be_slow(at(until - 1)) && !holders.may_be_slow(at(until)));
        }
        // Another stop does not shorten the time during which a holder may be slow. A stop of an
        // unknown holder counts, too.
        holders.was_slow(at(1100), None);
        assert!(holders.may_be_slow(at(1189)) && !holders.may_be_slow(at(1190)));
        holders.was_slow(at(1200), None);
        assert!(holders.may_be_slow(at(1259)));
    }

    #[test]
    fn a_holder_that_is_not_known_ranks_as_others_do() {
        let mut holders = Holders::new();
        holders.was_slow(at(0), None);
        assert_eq!(holders.trust(at(0), None), Trust::Known);
    }
}
