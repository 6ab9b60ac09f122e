//! Slow clients: running requests that wait for their clients and not for the application.
//!
//! A client that sends its body or reads its answer slowly holds a slot that the application could
//! use for another request. That costs nothing while no request waits. While others wait, slow
//! clients together may hold [`Options::slow_share`](super::Options) of the slots, so that an
//! honest client on a slow line is served under load, too. If that share is less than one slot,
//! slow clients may hold one slot for that fraction of the time. Unused time is saved, up to the
//! share of one minute. If slow clients hold more, the engine stops the request whose loss costs
//! least. It compares, in this order:
//!
//! 1. the standing: the worst is stopped first, so a proven session is stopped after a new one;
//! 2. the rate, by powers of two: the slowest is stopped first, so a client keeps its slot only if
//!    it is faster than the other slow clients;
//! 3. the number of running requests of the holder (session or address): the highest is stopped
//!    first;
//! 4. the running time: the shortest is stopped first.
//!
//! The driver reports which requests are slow, and at what rate (`Event::ClientSlow`).
//!
//! A client whose request is stopped may send another request immediately. Therefore its session
//! and its address are remembered as slow (`queue/holders.rs`). Requests of a slow address wait
//! behind all others. Requests of a slow session that is proven wait behind those of new sessions
//! that are not slow.
//!
//! The engine assumes an attack when the recent stops fill a leaky bucket. The bucket holds one
//! stop per two slots, and loses as many in each [`ATTACK_HOLD`]. For [`ATTACK_HOLD`] after the
//! last stop that filled it, requests of unknown addresses wait behind those of addresses that have
//! taken an answer. Requests of addresses that retry again and again although they are refused wait
//! behind these. The same order holds for [`UPLOAD_CROWD_HOLD`] after more uploads of new sessions
//! waited than may run.

use alloc::vec::Vec;
use core::cmp::Reverse;

use bywash_units::{Time, TimeSpan};

use super::Engine;
use crate::action::Action;
use crate::limit::Completion;
use crate::queue::State;
use crate::reason::Reason;
use crate::request::RequestId;

/// The running requests whose clients are slow, with the state that decides which of them are
/// stopped.
#[derive(Debug, Default)]
pub(super) struct SlowClients {
    requests: Vec<(RequestId, u64)>,
    /// The number of seconds, from the time `looked` on, for which slow clients may still hold one
    /// slot. `None` means the maximum. The number is used only if the share of slow clients is less
    /// than one slot.
    credit: Option<f64>,
    looked: Time,
    /// The present content of a leaky bucket of stops, as a number of stops. In each
    /// [`ATTACK_HOLD`] it loses half the number of slots, and [`MIN_ATTACK_STOPS`] at least.
    stops: f64,
    stopped: Time,
}

/// The time in which the bucket of stops drains, and the time for which unknown addresses wait
/// behind others after an attack.
const ATTACK_HOLD: TimeSpan = TimeSpan::from_secs(10);

/// The time for which unknown addresses wait behind others after there were too many uploads: more
/// of them waited than may run.
const UPLOAD_CROWD_HOLD: TimeSpan = TimeSpan::from_secs(1);

/// The minimum number of stops that make an attack, even if there are few slots.
const MIN_ATTACK_STOPS: f64 = 8.0;

/// The minimum running time of a stopped request for the stop to count against its client. The
/// driver needs that long to judge a client.
const MIN_JUDGED_RUN: TimeSpan = TimeSpan::from_millis(500);

/// The number of seconds over which an unused share of less than one slot can be saved.
const MAX_SAVED_SECONDS: f64 = 60.0;

/// The maximum number of seconds that one report of a slow client deducts from the saved share. The
/// driver reports a slow client twice a second while others wait. A longer gap includes time in
/// which no request waited.
const MAX_REPORT_SECONDS: f64 = 1.0;

impl SlowClients {
    fn note(&mut self, id: RequestId, rate: u64) {
        match self.requests.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = rate,
            None => self.requests.push((id, rate)),
        }
    }

    /// Returns the whole number of slots that slow clients may hold now while others wait. `share`
    /// is the share of slow clients as a number of slots. If `share` is less than one, the saved
    /// time decides between one slot and none.
    fn allowance(&mut self, now: Time, share: f64) -> usize {
        if share >= 1.0 {
            return share as usize;
        }
        let passed = now.since(self.looked).as_secs_f64().min(MAX_REPORT_SECONDS);
        self.looked = now;
        let credit = self.credit.unwrap_or(MAX_SAVED_SECONDS * share) - passed * (1.0 - share);
        self.credit = Some(credit.max(0.0));
        usize::from(credit > 0.0)
    }

    /// Saves time for slow clients: the fraction `share` of the seconds since the time `looked`. No
    /// client was slow in that time.
    fn save(&mut self, now: Time, share: f64) {
        let passed = now.since(self.looked).as_secs_f64();
        self.looked = now;
        self.credit =
            self.credit.map(|credit| (credit + passed * share).min(MAX_SAVED_SECONDS * share));
    }

    /// Notes that a request was stopped. Returns whether the recent stops make an attack. `slots`
    /// is the concurrency limit.
    fn stop(&mut self, now: Time, slots: u32) -> bool {
        let many = (f64::from(slots) / 2.0).max(MIN_ATTACK_STOPS);
        let passed = now.since(self.stopped).as_secs_f64() / ATTACK_HOLD.as_secs_f64();
        self.stops = (self.stops - passed * many).max(0.0).min(many) + 1.0;
        self.stopped = now;
        self.stops >= many
    }

    /// Returns whether the client of this running request is slow.
    pub(super) fn has(&self, id: RequestId) -> bool {
        self.requests.iter().any(|(known, _)| *known == id)
    }

    /// Forgets a request that no longer runs, or whose client is no longer slow.
    pub(super) fn forget(&mut self, id: RequestId) {
        self.requests.retain(|(known, _)| *known != id);
    }
}

impl Engine {
    /// Notes that a running request waits for its slow client. Requests that do not run are
    /// ignored.
    pub(super) fn client_slow(&mut self, now: Time, id: RequestId, rate: u64) {
        if !matches!(self.requests.state(id), State::Running(_)) {
            return;
        }
        if self.slow.requests.is_empty() {
            self.slow.save(now, self.share_of_slow());
        }
        self.slow.note(id, rate);
    }

    /// Assumes an attack if more uploads of new sessions wait than may run. The engine need not be
    /// able to judge the clients yet.
    pub(super) fn note_crowd_of_uploads(&mut self, now: Time) {
        if self.requests.has_crowd_of_uploads() {
            self.requests.extend_attack(now + UPLOAD_CROWD_HOLD);
        }
    }

    /// Returns the number of slots, possibly fractional, that requests with slow clients may hold
    /// while others wait.
    fn share_of_slow(&self) -> f64 {
        f64::from(self.slots()) * self.options.slow_share.get()
    }

    /// Returns the number of slots that requests with slow clients hold.
    pub fn slow_clients(&self) -> u32 {
        self.slow.requests.len() as u32
    }

    /// Stops requests of slow clients while others wait and slow clients hold more than their share
    /// of the slots.
    ///
    /// It stops them until a slot is free. If a request with an incomplete body waits, it continues
    /// until that request may have the slot. `wanted` says whether a request outside the queue
    /// wants a slot.
    pub(super) fn stop_slow_clients(&mut self, now: Time, wanted: bool, actions: &mut Vec<Action>) {
        // In most calls no client is slow.
        if self.slow.requests.is_empty() || !self.stops {
            return;
        }
        let lacks_slot = |engine: &Self| {
            engine.running >= engine.slots() && (wanted || engine.requests.wants_slot())
        };
        let lacks_any = |engine: &Self| lacks_slot(engine) || engine.requests.has_blocked_uploads();
        if !lacks_any(self) {
            return;
        }
        let allowed = self.slow.allowance(now, self.share_of_slow());
        while self.slow.requests.len() > allowed && lacks_any(self) {
            let Some((id, since)) = self.slowest(!lacks_slot(self)) else { return };
            self.lost(now, id);
            self.report_no_outcome(now, id);
            // The driver may have reported a client as slow before it could judge that client. Such
            // a stop does not count against the client.
            if now.since(since) >= MIN_JUDGED_RUN {
                if self.slow.stop(now, self.slots()) {
                    self.requests.extend_attack(now + ATTACK_HOLD);
                }
                self.requests.was_slow(now, id);
            }
            self.take_back(now, id, since, Completion::Void);
            let retry_after = self.retry_after(now, false);
            actions.push(Action::Terminate { id, reason: Reason::SlowClient, retry_after });
        }
    }

    /// Returns the request of a slow client whose loss costs least, and the start of that request.
    /// If `unfinished`, only requests with an incomplete body are considered. Returns `None` if
    /// there is no such request.
    fn slowest(&self, unfinished: bool) -> Option<(RequestId, Time)> {
        let slow = self.slow.requests.iter();
        let slow = slow.filter(|(id, _)| !unfinished || self.requests.waiting(*id).unfinished);
        let running = slow.filter_map(|(id, rate)| match self.requests.state(*id) {
            State::Running(since) => Some((*id, *rate, since)),
            State::Free | State::Waiting => None,
        });
        let worst = running.min_by_key(|(id, rate, since)| {
            let standing = self.requests.waiting(*id).standing.index();
            let holds = self.requests.running_of_holder(*id);
            (
                usize::MAX - standing,
                u64::BITS - rate.leading_zeros(),
                u32::MAX - holds,
                Reverse(*since),
            )
        });
        worst.map(|(id, _, since)| (id, since))
    }
}
