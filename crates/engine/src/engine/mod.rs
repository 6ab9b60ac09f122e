//! The engine's state machine: slots, the table of requests, and the scheduler.
//!
//! A request number is `Waiting` (its request is in the queue), `Running` (its request holds a
//! slot) or `Free` (not in use). The number of waiting requests is the length of a list. The number
//! of running requests is a counter that only `start` and `take_back` change.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan, Utility};

use crate::action::Action;
use crate::classify::strict;
use crate::event::{End, Event, Meter, Service};
use crate::limit::{Completion, Ended, Limit, Load};
use crate::mean_service::MeanService;
use crate::overload::GROUPS;
use crate::queue::{
    Floor, Holder, Principal, Push, QueueView, Requests, Scheduler, State, Waiting,
};
use crate::reason::Reason;
use crate::recent::Recent;
use crate::request::{
    AttemptKey, Class, ClassId, ClassSet, Request, RequestId, SessionKey, Signals, Standing, Upload,
};
use crate::retry_after::RetryAfter;
use crate::session::{Evictions, Sessions, proving};
use crate::terminate::Terminate;
use crate::throttle::Lanes;
use crate::value::{Learning, Values};
pub use fleet::Offered;
pub use options::{Options, Status};
use slow::SlowClients;

mod departed;
mod fleet;
mod learn;
mod options;
mod populations;
mod reconfigure;
mod refuse;
mod restore;
mod slow;
mod stop;
mod throttled;
mod timer;

/// The maximum number of lost attempts that are remembered. It is more than the length of a queue.
const LOST_ATTEMPTS: usize = 8192;

/// The engine, which makes every decision of one gateway or of one simulated server.
pub struct Engine {
    classes: Vec<Class>,
    /// Whether the requests of some class can be stopped.
    any_stops: bool,
    scheduler: Box<dyn Scheduler>,
    limit: Box<dyn Limit>,
    /// The number of slots that the fleet leases to this engine, in place of the policy's number.
    slot_lease: Option<u32>,
    /// The numbers of well-behaved requests that have arrived since the start, by group. They are
    /// counted only while slots are leased.
    arrivals: [u64; GROUPS],
    terminate: Box<dyn Terminate>,
    /// Whether the driver allows that requests are stopped at present.
    stops: bool,
    /// The time until which a lower pressure is enough to stop a running request for waiting ones
    /// (see `stop.rs`).
    pressed: Time,
    requests: Requests,
    /// The queues of the requests that wait under throttle rules.
    lanes: Lanes,
    /// The floor share of throttled requests: the slots that they get although other requests wait.
    floor: Floor,
    /// The running requests that wait for their slow clients.
    slow: SlowClients,
    running: u32,
    sessions: Sessions,
    /// The attempts that were lost recently, by which their repetitions are recognised.
    lost_attempts: Recent<AttemptKey, ()>,
    retry_after: RetryAfter,
    learning: Learning,
    mean_service: MeanService,
    options: Options,
}

impl Engine {
    /// Creates an engine without requests, for these classes, this scheduler and these options.
    pub fn new(classes: Vec<Class>, scheduler: Box<dyn Scheduler>, options: Options) -> Self {
        let mut requests = Requests::new(classes.len());
        let limit = options.limit.limit();
        requests.set_slots(limit.slots(), options.slow_share);
        Self {
            requests,
            learning: Learning::new(classes.len(), options.learn),
            any_stops: any_stops(&classes),
            sessions: Sessions::new(options.sessions, options.session_ttl, proving(&classes)),
            classes,
            scheduler,
            limit,
            slot_lease: None,
            arrivals: [0; GROUPS],
            terminate: options.termination.termination(),
            stops: true,
            pressed: Time::ZERO,
            lanes: Lanes::none(),
            floor: Floor::new(throttled::FLOOR),
            slow: SlowClients::default(),
            running: 0,
            lost_attempts: Recent::new(LOST_ATTEMPTS, options.retry_window),
            retry_after: RetryAfter::CALM,
            mean_service: MeanService::UNKNOWN,
            options,
        }
    }

    /// Handles an event, and appends the resulting actions to `actions`. The driver must carry them
    /// out in this order.
    ///
    /// Call [`Engine::next_timer`] after this, because its result may have changed.
    pub fn on_event(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        if self.learning.is_due(now) {
            self.learning.publish(now, &self.classes);
        }
        self.terminate.tick(now);
        self.requests.populations.tick(now);
        match event {
            Event::Arrived { id, request } => self.arrived(now, id, request, actions),
            Event::OutOfTime { id } => self.out_of_time(now, id, actions),
            Event::ClientGone { id } => self.client_gone(now, id, actions),
            Event::Departed { id } => self.departed(now, id),
            Event::Answering { id } => self.requests.note_answer_begun(id),
            Event::ClientSlow { id, rate } => self.client_slow(now, id, rate),
            Event::ClientCaughtUp { id } => self.slow.forget(id),
            Event::Redirected { id } => {
                let Waiting { visitor, part, .. } = *self.view(now).waiting(id);
                if !part {
                    self.requests.populations.redirected(now, visitor);
                }
            }
            Event::BodyComplete { id } => self.requests.note_body_complete(id),
            Event::Finished { id, end } => self.finished(now, id, end),
            Event::Withdrawn { id } => self.withdrawn(now, id),
            Event::Served { session, service, signals, revenue, in_time } => {
                self.served(now, session, Served { service, signals, revenue, in_time });
            }
            Event::Renamed { from, to } => self.sessions.renamed(from, to),
            Event::Read(reading) => self.scheduler.read(reading),
        }
        self.fill(now, actions);
    }

    /// Sets whether requests may be stopped from now on. Requests that became due to be stopped
    /// while this was off are stopped at the next timer.
    pub const fn may_stop(&mut self, may: bool) {
        self.stops = may;
    }

    /// Returns the present number of slots.
    fn slots(&self) -> u32 {
        self.slot_lease.unwrap_or_else(|| self.limit.slots())
    }

    /// Returns which measurement of the machine ([`Reading`](crate::Reading)) the scheduler needs,
    /// and the time to average it over. Returns `None` if the scheduler needs none.
    pub fn meter(&self) -> Option<(Meter, TimeSpan)> {
        self.scheduler.meter()
    }

    /// Returns a summary of the engine's current state.
    pub fn status(&self, now: Time) -> Status {
        let view = self.view(now);
        Status {
            limit: self.slots(),
            running: self.running,
            waiting: view.length() as u32,
            throttled_waiting: self.lanes.length() as u32,
            oldest: view.oldest().map_or(TimeSpan::ZERO, |id| view.age(id)),
            lifo: self.scheduler.lifo(),
            mean_service: self.mean_service.mean(),
            sessions: self.sessions.len() as u32,
        }
    }

    /// Returns the number of requests that hold a slot.
    pub const fn running(&self) -> u32 {
        self.running
    }

    /// Returns whether any request that arrived now would run immediately, even one with an
    /// incomplete body.
    pub fn has_free_slot(&self) -> bool {
        let is_empty = self.view(Time::ZERO).length() == 0;
        self.running < self.slots() && is_empty && !self.requests.unfinished_is_full()
    }

    /// Returns the number of waiting requests of a class; those that wait under rules are not
    /// counted.
    pub fn waiting_of(&self, class: ClassId) -> u32 {
        self.view(Time::ZERO).length_of(class.index())
    }

    /// Returns the classes that the engine was configured with.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Returns the standing that a request of `class` has if it claims `session`.
    pub fn standing(&self, now: Time, session: Option<SessionKey>, class: ClassId) -> Standing {
        self.sessions.standing(now, session, ClassSet::NONE, &self.classes[class.index()])
    }

    /// Returns the standing that a waiting or running request had when it arrived.
    pub fn standing_of(&self, id: RequestId) -> Standing {
        self.view(Time::ZERO).waiting(id).standing
    }

    /// Returns the number of remembered sessions that are proven.
    pub fn proven_sessions(&self) -> u32 {
        self.sessions.proven()
    }

    /// Returns the total numbers of sessions that were evicted to make room for others.
    pub const fn evictions(&self) -> Evictions {
        self.sessions.evictions()
    }

    /// Returns whether an answer begins the session or advances it.
    pub fn begins_or_advances(
        &self,
        now: Time,
        session: Option<SessionKey>,
        service: &Service,
    ) -> bool {
        self.sessions.begins_or_advances(now, session, service)
    }

    /// Returns the classes that a session was served, as far as the engine remembers. The set is
    /// empty for an unknown session.
    pub fn path(&self, now: Time, session: SessionKey) -> ClassSet {
        self.sessions.path(now, session).unwrap_or_default()
    }

    /// Returns the standing of an arriving request. If the request has several classes, it is the
    /// worst standing for any of them.
    fn standing_of_new(&self, now: Time, request: &Request) -> Standing {
        let of = |class: ClassId| {
            let class = &self.classes[class.index()];
            self.sessions.standing(now, request.session, request.proven, class)
        };
        request.also.iter().map(of).fold(of(request.class), Standing::max)
    }

    fn arrived(&mut self, now: Time, id: RequestId, request: Request, actions: &mut Vec<Action>) {
        let standing = self.standing_of_new(now, &request);
        let holder = charged_principal(standing, &request);
        let stops_as =
            strict::stops_as(request.class, request.also, |id| &self.classes[id.index()]);
        let (population, target_group) = self.ranks_by(now, standing, &request);
        let waiting = Waiting {
            class: request.class,
            stops_as,
            standing,
            claims_session: request.session.is_some(),
            signals: self.signals_of(standing, &request),
            population,
            visitor: request.visitor,
            part: request.part,
            target: request.target,
            target_group,
            repeats: self.repeats(now, &request),
            attempt: request.attempt,
            principal: holder.filter(|_| standing != Standing::New || request.charged),
            holder: holder.map(Holder::of),
            address: request.address.map(|key| Holder::of(Principal::Address(key))),
            unfinished: request.upload == Upload::Unfinished && standing == Standing::New,
            cancellable: request.cancellable,
            since: now,
        };
        self.requests.arrive(id, waiting);
        self.requests.populations.requested(population);
        self.count_arrival(now, id);
        self.terminate.arrived(stops_as);
        self.asks(now, &request);
        if let Some(lane) = self.lane_of(&request) {
            actions.extend(self.enter_lane(now, id, lane));
            return;
        }
        if self.running < self.slots() && self.requests.may_run(id) {
            // No waiting request can use this slot, because `fill` runs after every event.
            let view = view(now, self.mean_service, self.learning.values(), &self.requests);
            let refused = self.scheduler.reject(&view, id);
            if refused.is_none() {
                self.scheduler.started_at_once(&view, id);
            }
            actions.push(match refused {
                Some(reason) => self.shed(now, id, reason),
                None => self.start(now, id, Reason::SlotFree),
            });
            return;
        }
        self.stop_slow_clients(now, self.requests.may_run(id), actions);
        if self.running < self.slots() {
            // The best waiting request gets the slot, which leaves a place in the queue for this
            // one.
            self.fill(now, actions);
        } else if self.requests.may_run(id)
            && let Some(first) = self.make_room(now, id, actions)
        {
            if first == id {
                let view = view(now, self.mean_service, self.learning.values(), &self.requests);
                self.scheduler.started_at_once(&view, id);
                actions.push(self.start(now, id, Reason::Best));
                self.note_crowd_of_uploads(now);
                return;
            }
            self.fill(now, actions);
        }
        if let Some((out, reason)) = self.enter_queue(now, id) {
            actions.push(self.shed(now, out, reason));
        }
        self.note_crowd_of_uploads(now);
    }

    /// Asks the scheduler whether `id` may wait. Returns the request that is refused or evicted as
    /// a result, and the reason. Returns `None` if `id` waits and no request is evicted.
    fn enter_queue(&mut self, now: Time, id: RequestId) -> Option<(RequestId, Reason)> {
        let view = view(now, self.mean_service, self.learning.values(), &self.requests);
        match self.scheduler.push(&view, id) {
            Push::Queued => {
                self.requests.enter_queue(id);
                None
            }
            Push::Refused(reason) => Some((id, reason)),
            Push::Evicted(out, reason) => {
                self.requests.leave_queue(out);
                self.requests.enter_queue(id);
                Some((out, reason))
            }
        }
    }

    /// Refuses a waiting request that has reached the deadline its client announced.
    fn out_of_time(&mut self, now: Time, id: RequestId, actions: &mut Vec<Action>) {
        if self.requests.state(id) == State::Waiting {
            self.leave_queue(now, id);
            // A short deadline of the client's own says nothing about the load.
            actions.push(self.refuse(now, id, Reason::WaitedTooLong, false));
        }
    }

    fn finished(&mut self, now: Time, id: RequestId, end: End) {
        let State::Running(since) = self.requests.state(id) else {
            return;
        };
        self.ran(now, id, since, end);
        if matches!(end, End::Answered { done: true, .. }) && !self.slow.has(id) {
            self.requests.note_prompt_read(now, id);
        }
        let completion = match end {
            End::Answered { held_up: false, .. } | End::Abandoned { answered: true } => {
                Completion::Answered
            }
            End::TimedOut => Completion::TimedOut,
            End::Abandoned { answered: false } => Completion::Left,
            End::Answered { held_up: true, .. } | End::Failed => Completion::Void,
        };
        self.take_back(now, id, since, completion);
    }

    fn withdrawn(&mut self, now: Time, id: RequestId) {
        match self.requests.state(id) {
            State::Waiting => {
                self.leave_queue(now, id);
                self.requests.set(id, State::Free);
            }
            State::Running(since) => self.take_back(now, id, since, Completion::Void),
            State::Free => {}
        }
    }

    /// Gives every free slot to the best waiting request. Slots that are left go to requests under
    /// throttle rules.
    fn fill(&mut self, now: Time, actions: &mut Vec<Action>) {
        let is_for_lanes = self.lanes.wants_slot(now);
        if self.view(now).length() > 0 || is_for_lanes {
            self.stop_slow_clients(now, is_for_lanes, actions);
        }
        self.requests.set_slots(self.slots(), self.options.slow_share);
        while self.running < self.slots() && self.view(now).length() > 0 {
            if self.lanes.length() > 0 && self.floor.due() {
                actions.extend(self.start_of_lanes(now, Reason::FloorShare));
                continue;
            }
            let view = view(now, self.mean_service, self.learning.values(), &self.requests);
            if let Some((id, reason)) = self.scheduler.discard(&view) {
                self.requests.leave_queue(id);
                actions.push(self.shed(now, id, reason));
                continue;
            }
            let Some((id, reason)) = self.scheduler.pop(&view) else {
                break;
            };
            self.requests.leave_queue(id);
            actions.push(self.start(now, id, reason));
        }
        while self.lanes.length() > 0 && self.running < self.slots() {
            let Some(start) = self.start_of_lanes(now, Reason::AfterOthers) else { break };
            actions.push(start);
        }
    }

    /// Removes `id` from the lane of its rule, or from the scheduler and the queue.
    fn leave_queue(&mut self, now: Time, id: RequestId) {
        if self.leave_lane(id) {
            return;
        }
        let view = view(now, self.mean_service, self.learning.values(), &self.requests);
        self.scheduler.remove(&view, id);
        self.requests.leave_queue(id);
    }

    fn start(&mut self, now: Time, id: RequestId, reason: Reason) -> Action {
        self.running += 1;
        self.requests.run(now, id);
        let Waiting { stops_as, cancellable, population, visitor, target, part, .. } =
            *self.view(now).waiting(id);
        self.requests.populations.started(population);
        if !part {
            self.requests.populations.begin_visit(now, population, visitor, target);
        }
        if cancellable && self.classes[stops_as.index()].stop.is_some() {
            self.requests.mark_stoppable(id);
        }
        self.limit.dispatched(now, self.load(now));
        Action::Dispatch { id, reason }
    }

    fn take_back(&mut self, now: Time, id: RequestId, since: Time, completion: Completion) {
        let Waiting { class, population, .. } = *self.view(now).waiting(id);
        self.requests.populations.worked(population, now.since(since));
        self.limit.ended(now, self.load(now), Ended { class, took: now.since(since), completion });
        self.running -= 1;
        self.requests.mark_unstoppable(id);
        self.lanes.ended(id);
        self.slow.forget(id);
        self.requests.end(id);
    }

    fn load(&self, now: Time) -> Load {
        let is_full = self.requests.wants_slot() || self.lanes.wants_slot(now);
        Load { running: self.running, is_full }
    }

    const fn view(&self, now: Time) -> QueueView<'_> {
        view(now, self.mean_service, self.learning.values(), &self.requests)
    }
}

/// An answer that a session got, with the signals, the revenue and the timeliness of that answer.
#[derive(Clone, Copy, Debug)]
struct Served {
    service: Service,
    signals: Signals,
    revenue: Utility,
    in_time: bool,
}

/// Creates the view that the scheduler gets. Unlike [`Engine::view`], it borrows only the parts of
/// the engine that it needs, so the scheduler can be borrowed mutably at the same time.
const fn view<'a>(
    now: Time,
    mean_service: MeanService,
    values: &'a Values,
    requests: &'a Requests,
) -> QueueView<'a> {
    QueueView { now, mean_service: mean_service.mean(), values, requests }
}

/// Returns whether the requests of some class can be stopped. The engine keeps the result, because
/// it needs it for every request.
fn any_stops(classes: &[Class]) -> bool {
    classes.iter().any(|class| class.stop.is_some())
}

/// Returns the session or address that a request counts against: its session if that session is
/// proven, and otherwise the client's address. Returns `None` if neither is known.
fn charged_principal(standing: Standing, request: &Request) -> Option<Principal> {
    match standing {
        Standing::Transaction => request.session.map(Principal::Checkout),
        Standing::InProgress => request.session.map(Principal::Session),
        Standing::New => request.address.map(Principal::Address),
    }
}
