//! The clients of a run: visitors, and adversaries.

use bywash_engine::RuleId;
use bywash_engine::{
    AddressKey, AttemptKey, ClassId, Event, Request, RequestId, SessionKey, Signals,
};
use bywash_scenario::{Attempt, Ending, Next, Of, PrincipalKind, Throttle, Visitor};
use bywash_units::{Time, TimeSpan};

use super::World;
use crate::adversary::{AdversaryRequest, Slow};
use crate::case::Case;
use crate::events::SimEvent;
use crate::peers::RetryAfter;

/// The client of a request, by slab index.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequestSource {
    Visitor(u32),
    Intruder(u32),
}

/// A request in the world. The engine knows it by its index.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveRequest {
    source: RequestSource,
    session: SessionKey,
    /// Whether it claims a session: its client has a cookie, or an invented one.
    claims: bool,
    pub(super) of: Of,
    pub(super) address: Option<AddressKey>,
    pub(super) signals: Signals,
    pub(super) demand: TimeSpan,
    /// Set if its client keeps the slot beyond the service.
    pub(super) slow: Option<Slow>,
    pub(super) made: Time,
    pub(super) client: Presence,
    /// Whether its outcome is counted.
    counts: bool,
    /// Changes with every use of the slab entry; events with another serial are void.
    pub(super) serial: u64,
}

/// Whether the client of a request is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// The client waits for its answer.
    Waits,
    /// The client has given up unnoticed.
    GaveUp,
    /// The client has given up, and the gateway holds the slot while the application works on.
    GaveUpHeld,
    /// The client has given up, the slot is free, and the application works on.
    GaveUpUnnoticed,
}

impl LiveRequest {
    /// Returns whether the client has given up.
    pub(super) const fn is_abandoned(&self) -> bool {
        !matches!(self.client, Presence::Waits)
    }

    /// Returns the session that its answer belongs to. The answer to a request without a cookie
    /// begins a session. If no client reads it, that is a session that no request will ever claim.
    pub(super) const fn served_session(&self) -> SessionKey {
        let unread = self.is_abandoned() && !self.claims;
        if unread { SessionKey(u64::MAX - self.serial) } else { self.session }
    }
}

/// A visitor in the world.
#[derive(Debug)]
pub(super) struct ActiveVisitor {
    /// The number of the visitor in the run, which is also the key of the session and of the
    /// address.
    number: u64,
    visitor: Visitor,
    /// Whether the visitor has read an answer, and so received the session's cookie.
    cookie: bool,
    /// The index among the clients of all sets; `None` for a visitor that arrived.
    client: Option<u32>,
    /// When the session began.
    since: Time,
}

impl World<'_> {
    pub(super) fn schedule_next_session(&mut self) {
        match self.starts.next() {
            Some(at) => self.events.schedule(at, SimEvent::SessionStarts),
            None => self.arrivals_over = true,
        }
    }

    pub(super) fn session_starts(&mut self) {
        let Case { scenario, rho, seed, .. } = self.case;
        let visitor = scenario.visitor(seed, self.sessions, self.now);
        let rho_now = scenario.profile.rho_at(rho, self.now);
        self.out.tally.session(scenario, &visitor, self.now, rho_now);
        let (number, since) = (self.sessions, self.now);
        let active = ActiveVisitor { number, visitor, cookie: false, client: None, since };
        let visitor = self.visitors.put(active);
        self.sessions += 1;
        self.attempt(visitor);
        self.schedule_next_session();
    }

    /// Starts all clients of all sets, each at some time within a pause.
    pub(super) fn start_clients(&mut self) {
        for client in 0..self.clients.len() {
            self.client_pauses(client as u32);
        }
    }

    fn client_pauses(&mut self, client: u32) {
        let (pause, session) = self.clients[client as usize].next(self.case.scenario);
        if self.now + pause < self.end {
            self.events.schedule(self.now + pause, SimEvent::ClientStarts { client, session });
        }
    }

    pub(super) fn client_starts(&mut self, client: u32, session: u64) {
        let Case { scenario, rho, seed, .. } = self.case;
        let of = &scenario.sets[self.clients[client as usize].set()];
        let visitor = scenario.visitor(seed, session, self.now).of_set(of);
        if of.counted {
            self.out.tally.session(scenario, &visitor, self.now, rho);
        }
        let (number, since) = (session, self.now);
        let active = ActiveVisitor { number, visitor, cookie: false, client: Some(client), since };
        let visitor = self.visitors.put(active);
        self.attempt(visitor);
    }

    /// Returns whether the outcomes of a visitor's requests are counted.
    fn counts(&self, client: Option<u32>) -> bool {
        client.is_none_or(|client| {
            self.case.scenario.sets[self.clients[client as usize].set()].counted
        })
    }

    pub(super) fn attempt(&mut self, number: u32) {
        let active = self.visitors.get_mut(number);
        let (session, claims) = (SessionKey(active.number), active.cookie);
        let carried = active.visitor.signals().iter();
        let signals = carried.fold(Signals::NONE, |all, kind| all.with(*kind));
        let attempt = active.visitor.attempt(self.case.scenario);
        let is_of_set = active.client.is_some();
        let request = Request {
            session: claims.then_some(session),
            address: Some(AddressKey(active.number)),
            signals,
            retry: attempt.declared,
            attempt: Some(AttemptKey(session.0 << 8 | attempt.class as u64)),
            ..Request::of(ClassId(attempt.class as u8))
        };
        // A request of a client of a set is counted when it has ended.
        if !is_of_set {
            self.out.tally.generated(attempt.class, self.now);
        }
        let Attempt { class, order, .. } = attempt;
        let source = RequestSource::Visitor(number);
        let live = self.live(source, session, &request, Of { class, order }, attempt.demand);
        self.arrive(live, attempt.patience, request);
    }

    pub(super) fn schedule_next_burst(&mut self, population: usize) {
        if let Some(at) = self.adversaries.next_burst(population, self.now) {
            let population = population as u32;
            self.events.schedule(at, SimEvent::BurstComes { population });
        }
    }

    pub(super) fn burst_comes(&mut self, population: usize) {
        for _ in 0..self.adversaries.burst(population) {
            let intruder = self.adversaries.begin(population);
            self.intrude(intruder);
        }
        self.schedule_next_burst(population);
    }

    pub(super) fn intrude(&mut self, intruder: u32) {
        let AdversaryRequest { request, session, demand, patience, slow } =
            self.adversaries.next_request(intruder);
        // The request is not an order, as the adversary has put nothing into a cart.
        let of = Of { class: request.class.index(), order: false };
        let mut live = self.live(RequestSource::Intruder(intruder), session, &request, of, demand);
        if let Some(Slow { holds, .. }) = slow {
            (live.slow, live.demand) = (slow, live.demand + holds);
        }
        self.arrive(live, patience, request);
    }

    /// Creates a request that is made now.
    fn live(
        &mut self,
        source: RequestSource,
        session: SessionKey,
        request: &Request,
        of: Of,
        demand: TimeSpan,
    ) -> LiveRequest {
        self.serial += 1;
        let client = match source {
            RequestSource::Visitor(number) => self.visitors.get_mut(number).client,
            RequestSource::Intruder(_) => None,
        };
        LiveRequest {
            counts: self.counts(client),
            source,
            session,
            claims: request.session.is_some(),
            of,
            address: request.address,
            signals: request.signals,
            demand: self.case.scenario.servers.demand(self.now, of.class, demand),
            slow: None,
            made: self.now,
            client: Presence::Waits,
            serial: self.serial,
        }
    }

    fn arrive(&mut self, live: LiveRequest, patience: TimeSpan, mut request: Request) {
        request.charged = self.case.principal == PrincipalKind::Address;
        let of_class = |throttle: &Throttle| throttle.class == live.of.class;
        let rule = self.case.throttles.iter().position(of_class);
        request.rule = rule.map(|rule| RuleId(rule as u32));
        self.arrivals[live.of.class] += 1;
        let id = self.requests.put(live);
        if patience < TimeSpan::MAX {
            let end = SimEvent::PatienceEnds { request: id, serial: live.serial };
            self.events.schedule(self.now + patience, end);
        }
        self.notify_engine(Event::Arrived { id: RequestId(id), request });
    }

    /// Sends the `Retry-After` of a refusal to the visitor. It is the gateway's estimate in whole
    /// seconds with a jitter of ±50 %, or the peer's.
    pub(super) fn send_retry_after(&mut self, live: &LiveRequest, retry_after: TimeSpan) {
        let RequestSource::Visitor(visitor) = live.source else { return };
        let wait = match self.retry_after {
            RetryAfter::Estimated => {
                let seconds = retry_after.as_secs_f64() * (0.5 + self.jitter.unit());
                TimeSpan::from_secs((seconds.round() as u64).max(1))
            }
            RetryAfter::Fixed(wait) => wait,
            RetryAfter::Absent => return,
        };
        self.visitors.get_mut(visitor).visitor.asked_to_wait(wait);
    }

    /// Handles the end of a request for its client, and schedules the client's next step.
    pub(super) fn ended(&mut self, live: &LiveRequest, ending: Ending) {
        match live.source {
            RequestSource::Visitor(visitor) => self.ended_for_visitor(visitor, live, ending),
            RequestSource::Intruder(intruder) => {
                if self.adversaries.ended(intruder, ending) {
                    self.events.schedule(self.now, SimEvent::Intrusion { intruder });
                }
            }
        }
    }

    fn ended_for_visitor(&mut self, number: u32, live: &LiveRequest, ending: Ending) {
        let response = self.now.since(live.made);
        let active = self.visitors.get_mut(number);
        active.cookie |= ending == Ending::Completed;
        let (client, since) = (active.client, active.since);
        let next = active.visitor.ended(self.case.scenario, ending);
        // A client of a set has no last request; only requests that ended in time count.
        let counts = self.counts(client) && (client.is_none() || self.now <= self.end);
        if counts && client.is_some() {
            self.out.tally.generated(live.of.class, live.made);
        }
        if counts {
            self.out.tally.ended(live.of, self.now, response, ending);
        }
        match next {
            // The next attempt would be after the end, and so would be another session.
            Next::After(pause) if client.is_some() && self.now + pause >= self.end => {
                if counts {
                    self.out.tally.session_over(0);
                }
                self.visitors.free(number);
            }
            Next::After(pause) => {
                self.events.schedule(self.now + pause, SimEvent::Attempt { visitor: number });
            }
            Next::Gone { not_generated } => {
                if counts {
                    self.out.tally.session_over(not_generated);
                    self.out.tally.session_ended(self.now.since(since));
                }
                self.visitors.free(number);
                if let Some(client) = client {
                    self.client_pauses(client);
                }
            }
        }
    }

    /// Records work on a request, and whether its answer arrived in time.
    pub(super) fn worked(&mut self, live: &LiveRequest, work: TimeSpan, in_time: bool) {
        match live.source {
            RequestSource::Intruder(_) => self.adversaries.worked(self.now, work),
            RequestSource::Visitor(_) if !live.counts => {}
            RequestSource::Visitor(_) if in_time => self.out.tally.useful(self.now, work),
            RequestSource::Visitor(_) => self.out.tally.wasted(self.now, work),
        }
    }
}
