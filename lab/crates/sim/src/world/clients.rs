//! The clients of a simulated run: visitors and adversaries.

use bywash_engine::RuleId;
use bywash_engine::{
    AddressKey, AttemptKey, ClassId, Event, PopulationKey, Request, RequestId, SessionKey, Signals,
    VisitorKey,
};
use bywash_scenario::{Attempt, Ending, Mode, Next, Of, PrincipalKind, Stream, Throttle, Visitor};
use bywash_units::{Time, TimeSpan};

use super::World;
use super::observe::Observed;
use crate::adversary::{AdversaryRequest, Slow, target_key};
use crate::case::Case;
use crate::events::SimEvent;
use crate::peers::RetryAfter;

/// The number of the random streams for the populations that visitors are in.
const SHAPES: u64 = 0x2002;
/// The number of the random streams for the targets that visitors ask for first.
const TARGETS: u64 = 0x2003;

/// The client that made a request, by its slab index.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequestSource {
    Visitor(u32),
    Intruder(u32),
}

/// A request that has been made and has not ended. The engine knows it by its slab index.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveRequest {
    source: RequestSource,
    session: SessionKey,
    /// Whether the request carries a session cookie, whether the site has issued it or not.
    claims: bool,
    /// Whether the client returns cookies.
    returns_cookies: bool,
    pub(super) of: Of,
    pub(super) address: Option<AddressKey>,
    pub(super) signals: Signals,
    pub(super) demand: TimeSpan,
    /// How the client keeps the slot longer than the service takes; `None` for a client that sends
    /// and reads at full speed.
    pub(super) slow: Option<Slow>,
    pub(super) made: Time,
    pub(super) client: Presence,
    /// The engine's decision if the request is only observed; `None` if decisions are enforced.
    pub(super) observed: Option<Observed>,
    /// Whether the outcome of the request is counted in the result.
    counts: bool,
    /// A number that is unique to this use of the slab entry. An event with another serial number
    /// belongs to an earlier request and is ignored.
    pub(super) serial: u64,
}

/// Whether the client of a request is present, and if not, what the gateway does with the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// The client waits for its answer.
    Waits,
    /// The client has given up, and the gateway does not notice.
    GaveUp,
    /// The client has given up. The gateway holds the slot while the application works on.
    GaveUpHeld,
    /// The client has given up. The gateway has freed the slot, but the application works on.
    GaveUpUnnoticed,
}

impl LiveRequest {
    /// Returns whether the client of the request has given up.
    pub(super) const fn is_abandoned(&self) -> bool {
        !matches!(self.client, Presence::Waits)
    }

    /// Returns whether the request is counted in the result of the visitors.
    pub(super) const fn is_counted(&self) -> bool {
        self.counts && matches!(self.source, RequestSource::Visitor(_))
    }

    /// Returns the session that the answer to this request belongs to. The answer to a request
    /// without a cookie begins a session. If no client reads that answer or returns its cookie, the
    /// result is a session key that no request will ever claim.
    pub(super) const fn served_session(&self) -> SessionKey {
        let unread = (self.is_abandoned() || !self.returns_cookies) && !self.claims;
        if unread { SessionKey(u64::MAX - self.serial) } else { self.session }
    }
}

/// A visitor whose session is in progress.
#[derive(Debug)]
pub(super) struct ActiveVisitor {
    /// The number of the visitor in the run, which is also the key of the session and of the
    /// address.
    number: u64,
    visitor: Visitor,
    /// Whether the visitor has read an answer, and so has the session's cookie.
    cookie: bool,
    /// The index of a permanent client among the clients of all sets; `None` for a visitor that
    /// arrived.
    client: Option<u32>,
    /// The time at which the session began.
    since: Time,
}

impl World<'_> {
    pub(super) fn schedule_next_session(&mut self) {
        match self.starts.next() {
            Some(at) => self.events.schedule(at, SimEvent::SessionStarts),
            None => self.arrivals_over = true,
        }
    }

    pub(super) fn start_session(&mut self) {
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

    /// Starts all permanent clients of all sets. Each begins after a random part of its pause.
    pub(super) fn start_clients(&mut self) {
        for client in 0..self.clients.len() {
            self.pause_client(client as u32);
        }
    }

    fn pause_client(&mut self, client: u32) {
        let (pause, session) = self.clients[client as usize].next(self.case.scenario);
        if self.now + pause < self.end {
            self.events.schedule(self.now + pause, SimEvent::ClientStarts { client, session });
        }
    }

    pub(super) fn start_client(&mut self, client: u32, session: u64) {
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

    /// Returns whether the outcomes of a visitor's requests are counted in the result. `client` is
    /// the index of a permanent client; `None` for a visitor that arrived.
    fn counts(&self, client: Option<u32>) -> bool {
        client.is_none_or(|client| {
            self.case.scenario.sets[self.clients[client as usize].set()].counted
        })
    }

    pub(super) fn attempt(&mut self, number: u32) {
        let active = self.visitors.get_mut(number);
        let client = &self.case.scenario.client;
        let claims = active.cookie && client.returns_cookies;
        let session = SessionKey(active.number);
        let carried = active.visitor.signals().iter();
        let signals = carried.fold(Signals::NONE, |all, kind| all.with(*kind));
        let attempt = active.visitor.attempt(self.case.scenario);
        let is_of_set = active.client.is_some();
        let begin = || Stream::new(self.case.seed, SHAPES, active.number);
        let shape = client.shape(begin).map(|(shape, _)| PopulationKey(u64::from(shape)));
        let begin = || Stream::new(self.case.seed, TARGETS, active.number);
        let target = client.target(begin).filter(|_| !active.cookie).map(target_key);
        let request = Request {
            session: claims.then_some(session),
            address: Some(AddressKey(active.number)),
            target,
            signals,
            population: shape,
            visitor: shape.map(|_| VisitorKey(active.number)),
            retry: attempt.declared,
            attempt: Some(AttemptKey(session.0 << 8 | attempt.class as u64)),
            ..Request::of(ClassId(attempt.class as u8))
        };
        // A request of a client of a set is counted only when it has ended.
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

    pub(super) fn start_burst(&mut self, population: usize) {
        for _ in 0..self.adversaries.burst(population) {
            let intruder = self.adversaries.begin(population);
            self.send_intrusion(intruder);
        }
        self.schedule_next_burst(population);
    }

    pub(super) fn send_intrusion(&mut self, intruder: u32) {
        let AdversaryRequest { request, session, demand, patience, slow } =
            self.adversaries.next_request(intruder);
        // The request is not an order, because an adversary puts nothing into a cart.
        let of = Of { class: request.class.index(), order: false };
        let mut live = self.live(RequestSource::Intruder(intruder), session, &request, of, demand);
        if let Some(Slow { holds, .. }) = slow {
            (live.slow, live.demand) = (slow, live.demand + holds);
        }
        self.arrive(live, patience, request);
    }

    /// Creates a request that is made at the present simulated time.
    fn live(
        &mut self,
        source: RequestSource,
        session: SessionKey,
        request: &Request,
        of: Of,
        demand: TimeSpan,
    ) -> LiveRequest {
        self.serial += 1;
        let (client, returns_cookies) = match source {
            RequestSource::Visitor(number) => {
                let client = self.visitors.get_mut(number).client;
                (client, self.case.scenario.client.returns_cookies)
            }
            RequestSource::Intruder(_) => (None, true),
        };
        LiveRequest {
            counts: self.counts(client),
            source,
            session,
            claims: request.session.is_some(),
            returns_cookies,
            of,
            address: request.address,
            signals: request.signals,
            demand: self.case.scenario.servers.demand(self.now, of.class, demand),
            slow: None,
            made: self.now,
            client: Presence::Waits,
            observed: None,
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
        // A rule is enforced in both modes, because an operator has approved it.
        if self.case.mode == Mode::Observe && request.rule.is_none() {
            self.observe(id, request);
        } else {
            self.notify_engine(Event::Arrived { id: RequestId(id), request });
        }
    }

    /// Passes the `Retry-After` of a refusal to the visitor. The gateway's value is an estimate in
    /// whole seconds with a jitter of ±50 %. A peer's value is the configured one.
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

    /// Handles the end of a request on the client's side, and schedules the next step of the
    /// client.
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
        // Clients of sets continue until the run ends. Only their requests that ended before the
        // end count.
        let counts = self.counts(client) && (client.is_none() || self.now <= self.end);
        if counts && client.is_some() {
            self.out.tally.generated(live.of.class, live.made);
        }
        if counts {
            self.out.tally.ended(live.of, self.now, response, ending);
        }
        match next {
            // The next attempt would be after the end of the run, so the session of this permanent
            // client ends here.
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
                    self.pause_client(client);
                }
            }
        }
    }

    /// Records the work done on a request as useful if its answer arrived in time, else as wasted.
    pub(super) fn record_work(&mut self, live: &LiveRequest, work: TimeSpan, in_time: bool) {
        match live.source {
            RequestSource::Intruder(_) => self.adversaries.record_work(self.now, work),
            RequestSource::Visitor(_) if !live.counts => {}
            RequestSource::Visitor(_) if in_time => self.out.tally.useful(self.now, work),
            RequestSource::Visitor(_) => self.out.tally.wasted(self.now, work),
        }
    }
}
