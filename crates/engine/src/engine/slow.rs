//! Slow clients: running requests that wait for their clients and not for the application.
//!
//! A client that sends its body or reads its answer slowly holds a slot that the application could use for
//! another request. While nobody waits that costs nothing. While others wait, slow clients together may hold
//! [`Options::slow_share`](super::Options) of the slots, so that an honest client on a slow line is served under
//! load as well. Where that is less than a slot, they may hold one for that share of the time; a minute's share
//! can be saved up. Beyond that, the request whose loss costs least is stopped:
//!
//! 1. the worst standing, so a proven session is stopped after a stranger;
//! 2. then the slowest, by powers of two of its rate: whoever wants to hold a slot must send or read faster
//!    than the other slow clients do;
//! 3. then the holder (session or address) that runs most requests;
//! 4. then the one that has run for the shortest time.
//!
//! The driver tells which requests are slow, and at what rate (`Event::ClientSlow`).
//!
//! A client that is stopped may ask again at once. So its session and its address are remembered as slow
//! (`queue/holders.rs`): requests of a slow address wait behind all others, and those of a slow session that has
//! proven itself behind all strangers who are not slow. Where requests are stopped faster than one for every second
//! slot in [`ATTACK`], and as many more have been stopped, it is an attack. For [`ATTACK`] after the last such stop
//! requests of addresses of which nothing is known wait behind those of addresses that have taken an answer. Requests
//! of addresses that come again and again although they are refused wait behind these. The same holds for [`CROWD`] after
//! more uploads of strangers waited than may run.

use alloc::vec::Vec;
use core::cmp::Reverse;

use bywash_units::{Span, Time};

use super::Engine;
use crate::action::Action;
use crate::limit::Way;
use crate::queue::State;
use crate::reason::Reason;
use crate::request::RequestId;

/// The running requests whose clients are slow. There are no more than requests that run.
#[derive(Debug, Default)]
pub(super) struct SlowClients {
    requests: Vec<(RequestId, u64)>,
    /// For how many seconds they may hold a slot that is theirs for part of the time, as of `looked`; `None`: a
    /// minute's share.
    credit: Option<f64>,
    looked: Time,
    /// Stops, less half as many as there are slots for each [`ATTACK`] that passes.
    stops: f64,
    stopped: Time,
}

/// How long stops of slow clients count, and how long strangers wait behind others because of them.
const ATTACK: Span = Span::from_secs(10);

/// How long strangers wait behind others after more uploads waited than may run.
const CROWD: Span = Span::from_secs(1);

/// With fewer slots so many stops make an attack.
const FEW: f64 = 8.0;

/// The driver judges a client no sooner than after so long.
const JUDGED: Span = Span::from_millis(500);

/// Their share of so many seconds can be saved up.
const SAVED: f64 = 60.0;

/// Seconds between two looks at a slow client while others wait, at most: the driver says twice a second that it is
/// slow. What is more was a time in which nobody waited.
const BETWEEN: f64 = 1.0;

impl SlowClients {
    fn note(&mut self, id: RequestId, rate: u64) {
        match self.requests.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = rate,
            None => self.requests.push((id, rate)),
        }
    }

    /// How many slots they may hold of `share`, which need not be whole, while others wait.
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

    /// None was slow until now: what they did not use of their share is saved.
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

    /// Whether the client of this request is slow.
    pub(super) fn has(&self, id: RequestId) -> bool {
        self.requests.iter().any(|(known, _)| *known == id)
    }

    /// The request does not run any more, or its client is not slow any more.
    pub(super) fn forget(&mut self, id: RequestId) {
        self.requests.retain(|(known, _)| *known != id);
    }
}

impl Engine {
    /// A running request waits for its client.
    pub(super) fn client_slow(&mut self, now: Time, id: RequestId, rate: u64) {
        if !matches!(self.requests.state(id), State::Running(_)) {
            return;
        }
        if self.slow.requests.is_empty() {
            self.slow.save(now, self.share_of_slow());
        }
        self.slow.note(id, rate);
    }

    /// Treats it as an attack when more uploads of strangers wait than may run: no client could be judged yet.
    pub(super) fn note_crowd_of_uploads(&mut self, now: Time) {
        if self.requests.has_crowd_of_uploads() {
            self.requests.is_attacked_until(now + CROWD);
        }
    }

    /// How many slots requests with slow clients may hold while others wait.
    fn share_of_slow(&self) -> f64 {
        f64::from(self.limit.slots()) * self.options.slow_share.get()
    }

    /// How many slots requests with slow clients hold.
    pub fn slow_clients(&self) -> u32 {
        self.slow.requests.len() as u32
    }

    /// Stops requests of slow clients that hold more than their share of the slots while others wait, until
    /// a slot is free, and one that an unfinished request may have if one waits. `wanted`: a request that is not in the
    /// queue wants a slot.
    pub(super) fn stop_slow_clients(&mut self, now: Time, wanted: bool, actions: &mut Vec<Action>) {
        // Mostly there is none.
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
            // One that was slow from the start has not been judged before.
            if now.since(since) >= JUDGED {
                if self.slow.stop(now, self.limit.slots()) {
                    self.requests.is_attacked_until(now + ATTACK);
                }
                self.requests.was_slow(now, id);
            }
            self.take_back(now, id, since, Way::Void);
            let retry_after = self.come_again(now, false);
            actions.push(Action::Terminate { id, reason: Reason::SlowClient, retry_after });
        }
    }

    /// The request of a slow client whose loss costs least, and since when it runs. `unfinished`: only unfinished
    /// requests are looked at.
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
