//! Slow clients: running requests that wait for their clients and not for the application.
//!
//! A client that sends its body or reads its answer slowly holds a slot that the application could
//! use for another request. While no request waits, that costs nothing. While others wait, slow
//! clients together may hold [`Options::slow_share`](super::Options) of the slots, so that an
//! honest client on a slow line is served under load as well. If that share is less than one slot,
//! they may hold one slot for that share of the time, and up to a minute's share can be saved.
//! Beyond the share, the engine stops the request whose loss costs least. It compares, in this
//! order:
//!
//! 1. the standing: the worst is stopped first, so a proven session is stopped after a new one;
//! 2. the rate, by powers of two: the slowest is stopped first, so a client that wants to hold a
//!    slot must send or read faster than the other slow clients do;
//! 3. the number of running requests of the holder (session or address): the highest is stopped
//!    first;
//! 4. the running time: the shortest is stopped first.
//!
//! The driver reports which requests are slow, and at what rate (`Event::ClientSlow`).
//!
//! A client whose request is stopped may ask again at once. So its session and its address are
//! remembered as slow (`queue/holders.rs`). Requests of a slow address wait behind all others.
//! Requests of a slow session that has proven itself wait behind those of new sessions that are not
//! slow.
//!
//! If requests are stopped faster than one per two slots in [`ATTACK`], and that many more have
//! been stopped, the engine assumes an attack. For [`ATTACK`] after the last such stop, requests of
//! unknown addresses wait behind those of addresses that have taken an answer. Requests of
//! addresses that retry again and again although they are refused wait behind these. The same holds
//! for [`CROWD`] after more uploads of new sessions waited than may run.

use alloc::vec::Vec;
use core::cmp::Reverse;

use bywash_units::{Time, TimeSpan};

use super::Engine;
use crate::action::Action;
use crate::limit::Completion;
use crate::queue::State;
use crate::reason::Reason;
use crate::request::RequestId;

/// The running requests whose clients are slow; at most as many as there are running requests.
#[derive(Debug, Default)]
pub(super) struct SlowClients {
    requests: Vec<(RequestId, u64)>,
    /// The seconds for which slow clients may hold a slot that is theirs for part of the time, at
    /// the time `looked`. `None` means that a full minute's share is left.
    credit: Option<f64>,
    looked: Time,
    /// The number of stops as a leaky bucket: in each [`ATTACK`] it loses half the number of slots,
    /// or [`FEW`] if that is more.
    stops: f64,
    stopped: Time,
}

/// How long stops of slow clients count, and how long unknown addresses wait behind others because
/// of them.
const ATTACK: TimeSpan = TimeSpan::from_secs(10);

/// How long unknown addresses wait behind others after more uploads waited than may run.
const CROWD: TimeSpan = TimeSpan::from_secs(1);

/// The minimum number of stops that make an attack, however few slots there are.
const FEW: f64 = 8.0;

/// The minimum running time before a stop counts against a client. The driver needs that long to
/// judge a client.
const JUDGED: TimeSpan = TimeSpan::from_millis(500);

/// The number of seconds whose share can be saved.
const SAVED: f64 = 60.0;

/// The maximum number of seconds that one report charges. The driver reports a slow client twice a
/// second while others wait, so a longer gap includes time in which no request waited.
const BETWEEN: f64 = 1.0;

impl SlowClients {
    fn note(&mut self, id: RequestId, rate: u64) {
        match self.requests.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = rate,
            None => self.requests.push((id, rate)),
        }
    }

    /// Returns the number of slots that slow clients may hold while others wait, for an entitlement
    /// of `share` slots, which may be fractional.
    fn allowance(&mut self, now: Time, share: f64) -> usize {
        if share >= 1.0 {
            return share as usize;
        }
        let passed = now.since(self.looked).as_secs_f64().min(BETWEEN);
        self.looked = now;
        let credit = self.credit.unwrap_or(SAVED * share) - passed * (1.0 - share);
        self.credit = Some(credit.max(0.0));
        usize::from(credit > 0.0)
    }

    /// Saves the share that was not used while no client was slow.
    fn save(&mut self, now: Time, share: f64) {
        let passed = now.since(self.looked).as_secs_f64();
        self.looked = now;
        self.credit = self.credit.map(|credit| (credit + passed * share).min(SAVED * share));
    }

    /// Notes that a request was stopped. Returns whether that makes an attack.
    fn stop(&mut self, now: Time, slots: u32) -> bool {
        let many = (f64::from(slots) / 2.0).max(FEW);
        let passed = now.since(self.stopped).as_secs_f64() / ATTACK.as_secs_f64();
        self.stops = (self.stops - passed * many).max(0.0).min(many) + 1.0;
        self.stopped = now;
        self.stops >= many
    }

    /// Returns whether the client of this request is slow.
    pub(super) fn has(&self, id: RequestId) -> bool {
        self.requests.iter().any(|(known, _)| *known == id)
    }

    /// Forgets a request that no longer runs or whose client is no longer slow.
    pub(super) fn forget(&mut self, id: RequestId) {
        self.requests.retain(|(known, _)| *known != id);
    }
}

impl Engine {
    /// Notes that a running request waits for its client.
    pub(super) fn client_slow(&mut self, now: Time, id: RequestId, rate: u64) {
        if !matches!(self.requests.state(id), State::Running(_)) {
            return;
        }
        if self.slow.requests.is_empty() {
            self.slow.save(now, self.share_of_slow());
        }
        self.slow.note(id, rate);
    }

    /// Assumes an attack when more uploads of new sessions wait than may run, although no client
    /// could be judged yet.
    pub(super) fn note_crowd_of_uploads(&mut self, now: Time) {
        if self.requests.has_crowd_of_uploads() {
            self.requests.is_attacked_until(now + CROWD);
        }
    }

    /// Returns the number of slots, possibly fractional, that requests with slow clients may hold
    /// while others wait.
    fn share_of_slow(&self) -> f64 {
        f64::from(self.limit.slots()) * self.options.slow_share.get()
    }

    /// Returns the number of slots that requests with slow clients hold.
    pub fn slow_clients(&self) -> u32 {
        self.slow.requests.len() as u32
    }

    /// Stops requests of slow clients that hold more than their share of the slots while others
    /// wait. It stops them until a slot is free, and until an unfinished request may have one if
    /// such a request waits. `wanted`: a request that is not in the queue wants a slot.
    pub(super) fn stop_slow_clients(&mut self, now: Time, wanted: bool, actions: &mut Vec<Action>) {
        // Usually there are none.
        if self.slow.requests.is_empty() || !self.stops {
            return;
        }
        let lacks_slot = |engine: &Self| {
            engine.running >= engine.limit.slots() && (wanted || engine.requests.wants_slot())
        };
        let lacks_any = |engine: &Self| lacks_slot(engine) || engine.requests.has_blocked_uploads();
        if !lacks_any(self) {
            return;
        }
        let allowed = self.slow.allowance(now, self.share_of_slow());
        while self.slow.requests.len() > allowed && lacks_any(self) {
            let Some((id, since)) = self.slowest(!lacks_slot(self)) else { return };
            self.lost(now, id);
            self.did_not_arrive(now, id);
            // A client that was reported as slow from the start has not been judged before that.
            if now.since(since) >= JUDGED {
                if self.slow.stop(now, self.limit.slots()) {
                    self.requests.is_attacked_until(now + ATTACK);
                }
                self.requests.was_slow(now, id);
            }
            self.take_back(now, id, since, Completion::Void);
            let retry_after = self.retry_after(now, false);
            actions.push(Action::Terminate { id, reason: Reason::SlowClient, retry_after });
        }
    }

    /// Returns the request of a slow client whose loss costs least, and the time at which it
    /// started. `unfinished`: consider only unfinished requests.
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
