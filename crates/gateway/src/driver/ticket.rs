//! Tickets. A ticket stands for a request's place in the engine's queue, or for its slot.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bywash_engine::{
    AddressKey, ClassId, Decision, End, Event, PopulationKey, Refusal, RequestId, Service,
    SessionKey, Signals, Standing,
};

use super::{Driver, Progress};

/// The right of one request to its place in the engine's queue, or to its slot. Ending or dropping
/// the ticket gives the place or the slot back.
pub(crate) struct Ticket {
    pub(super) driver: Arc<Driver>,
    pub(super) id: RequestId,
    /// The standing of the request's session when the request arrived.
    pub(super) standing: Standing,
    /// The client's population and its level when the request arrived; `None` if its session had
    /// begun, or if populations are not told apart.
    pub(super) population: Option<(PopulationKey, usize)>,
    /// The facts of the request that the engine needs again at the end.
    pub(super) claimed: Claimed,
    /// The decision, if the request got a slot on arrival.
    pub(super) at_once: Option<Decision>,
    /// Whether the request's end is a measurement for the engine. It is not if the request was only
    /// observed and did not get a slot on arrival.
    pub(super) measured: bool,
    /// Whether the engine knows about the end, so that dropping the ticket does nothing.
    pub(super) done: bool,
    /// The departure of the client, if the client has left and the request keeps its slot.
    pub(super) departure: Option<Departure>,
    /// The place for the last decision about a request that is only observed.
    pub(super) last: Option<LastDecision>,
}

/// The engine's last decision about a request that was only observed. It is empty unless the ticket
/// was dropped, because the client had left.
pub(crate) type LastDecision = Arc<OnceLock<Decision>>;

/// The departure of a client whose request keeps its slot, because the application still works on
/// it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    /// Whether the application answered although the client had left.
    answered: bool,
}

/// The facts of a request that the engine needs again when the request has ended.
#[derive(Clone, Copy)]
pub(super) struct Claimed {
    pub(super) class: ClassId,
    pub(super) session: Option<SessionKey>,
    pub(super) address: Option<AddressKey>,
    pub(super) signals: Signals,
    /// Whether the session had begun before this request, according to its token.
    pub(super) had_begun: bool,
}

impl Ticket {
    /// Returns the standing of the request's session when the request arrived.
    pub(crate) const fn standing(&self) -> Standing {
        self.standing
    }

    /// Returns the client's population and its level when the request arrived; `None` if its session
    /// had begun, or if populations are not told apart.
    pub(crate) const fn population(&self) -> Option<(PopulationKey, usize)> {
        self.population
    }

    /// Returns the engine's decision about the request so far.
    pub(crate) fn decision(&self) -> Decision {
        self.driver.lock().decision(self.id)
    }

    /// Returns the place for the last decision; `None` unless the request is only observed.
    pub(crate) fn last_decision(&self) -> Option<LastDecision> {
        self.last.clone()
    }

    /// Waits for the engine's decision. Ready when the request has a slot, was refused or was
    /// stopped.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Decision> {
        if let Some(decision) = self.at_once {
            return Poll::Ready(decision);
        }
        self.driver.lock().poll(self.id, cx, |decision| match decision {
            Decision::Waits => None,
            decided => Some(decided),
        })
    }

    /// Tells the engine that the client's own deadline has passed, so that a waiting request is
    /// refused. A request that has a slot already keeps it.
    pub(crate) fn out_of_time(&self) {
        self.driver.with(|requests, now, wakers| {
            if matches!(requests.decision(self.id), Decision::Waits) {
                requests.apply(now, Event::OutOfTime { id: self.id }, wakers);
            }
        });
    }

    /// Waits for the engine to stop the running request. Pending for as long as it may run.
    pub(crate) fn poll_stopped(&self, cx: &mut Context<'_>) -> Poll<Refusal> {
        self.driver.lock().poll(self.id, cx, |decision| match decision {
            Decision::Stopped(refusal) => Some(refusal),
            Decision::Waits | Decision::Granted { .. } | Decision::Refused(_) => None,
        })
    }

    /// Tells the engine that the request does not wait for the application but for its client,
    /// which moves `rate` bytes per second.
    pub(crate) fn client_slow(&self, rate: u64) {
        self.while_granted(Event::ClientSlow { id: self.id, rate });
    }

    /// Tells the engine that the request does not wait for its client any more.
    pub(crate) fn client_caught_up(&self) {
        self.while_granted(Event::ClientCaughtUp { id: self.id });
    }

    /// Tells the engine that the request's body, which was unfinished, is complete.
    pub(crate) fn body_complete(&self) {
        self.while_granted(Event::BodyComplete { id: self.id });
    }

    /// Tells the engine that the response is a redirection or "not modified", not a page.
    pub(crate) fn redirected(&self) {
        self.while_granted(Event::Redirected { id: self.id });
    }

    /// Tells the engine that the response has begun. From then on the request is not stopped,
    /// unless it has been already.
    pub(crate) fn answering(&self) {
        self.while_granted(Event::Answering { id: self.id });
    }

    /// Notes that the client has left and that the request keeps its slot until the ticket is
    /// dropped. Returns whether the request has a slot. If not, nothing is noted.
    pub(crate) fn client_left(&mut self) -> bool {
        let holds_slot = matches!(self.decision(), Decision::Granted { .. });
        self.departure = (holds_slot && self.measured).then_some(Departure { answered: false });
        if self.departure.is_some() {
            self.while_granted(Event::Departed { id: self.id });
        }
        holds_slot
    }

    /// Notes that the application answered although the client had left. It has no effect unless
    /// [`Ticket::client_left`] has noted the departure.
    pub(crate) const fn answered_after_departure(&mut self) {
        if let Some(departure) = &mut self.departure {
            departure.answered = true;
        }
    }

    /// Hands the engine an event of a request that holds a slot. For any other request the event
    /// has no meaning and is dropped.
    fn while_granted(&self, event: Event) {
        self.driver.with(|requests, now, wakers| {
            if matches!(requests.decision(self.id), Decision::Granted { .. }) {
                requests.apply(now, event, wakers);
            }
        });
    }

    /// Ends a request that the upstream has answered in full. `progress` is the progress of the
    /// session that the answer has advanced: the request's own session, or one that the answer has
    /// begun. `None` if the answer has advanced no session.
    pub(crate) fn answered(mut self, progress: Option<Progress>, end: End) {
        let Claimed { class, session: claimed, address, signals, had_begun } = self.claimed;
        let how = self.ended(end);
        self.done = true;
        self.driver.with(|requests, now, wakers| {
            if let Some(Progress { session, answer, revenue, succeeded, in_time }) = progress {
                if let Some(from) = claimed.filter(|from| *from != session) {
                    requests.apply(now, Event::Renamed { from, to: session }, wakers);
                }
                let service = Service { class, address, answer, had_begun, succeeded };
                let served = Event::Served { session, service, signals, revenue, in_time };
                requests.apply(now, served, wakers);
            }
            requests.release(now, self.id, how, wakers);
        });
    }

    /// Ends a request that the upstream has failed. `end` tells the engine how the run ended.
    pub(crate) fn failed(self, end: End) {
        self.answered(None, end);
    }

    const fn ended(&self, end: End) -> Event {
        let id = self.id;
        if self.measured { Event::Finished { id, end } } else { Event::Withdrawn { id } }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.done {
            let id = self.id;
            let gone = match self.departure {
                Some(Departure { answered }) => {
                    Event::Finished { id, end: End::Abandoned { answered } }
                }
                None => Event::ClientGone { id },
            };
            let how = if self.measured { gone } else { Event::Withdrawn { id } };
            self.driver.with(|requests, now, wakers| {
                if let Some(last) = &self.last {
                    // It is empty, because a ticket is dropped once.
                    let _ = last.set(requests.decision(id));
                }
                requests.release(now, id, how, wakers);
            });
        }
    }
}
