//! The facts about a request while it lives; at its end they go to the metrics and the request log.
//!
//! A record is made when a request has been examined and is written when it is dropped, so every
//! request has one. Its outcome is set by one of the methods that end it ([`Record::finish`],
//! [`Record::fail`], [`Record::refused`], [`Record::stopped`], [`Record::out_of_time`],
//! [`Record::ends`]). A request that is dropped before has lost its client.
//!
//! `finish` and `fail` take the ticket of the request: they ask what the engine decided and tell it
//! how the request ended. With the other methods the caller drops the ticket, because the engine
//! has decided itself or no client waits any more.

use std::rc::Rc;
use std::sync::Arc;

use bywash_config::{ClassConfig, Level, Mode};
use bywash_engine::{ClassId, Decision, End, Outcome, Reason, Refusal, Standing};
use bywash_message::Request;
use bywash_units::{Time, TimeSpan, Utility};
use http::{StatusCode, Version};

use super::Facts;
use super::answer_kind::gets_on;
use crate::context::Worker;
use crate::driver::{Progress, Ticket};
use crate::identity::session_cookie::Brought;
use crate::settings::Settings;
use crate::shared::{CountedPermit, Shared};
use crate::static_files::FileKey;
use crate::telemetry::metrics::{LevelMetrics, Unread};
use crate::telemetry::orphans;
use crate::telemetry::orphans::GivenUp;
use crate::telemetry::request_log::{Decided, Entry, KEPT_MESSAGE, Verdict};
use crate::telemetry::traces::Trace;
use crate::upstream::UpstreamError;

pub(crate) struct Record {
    worker: Rc<Worker>,
    settings: Rc<Settings>,
    name: u64,
    facts: Facts,
    /// The request's cookies, as far as they are watched.
    brought: Brought,
    protocol: &'static str,
    message: Box<str>,
    arrived: Time,
    started: Option<Time>,
    /// The standing that its session had proven, if the request was submitted to the engine.
    standing: Option<Standing>,
    verdict: Verdict,
    status: Option<StatusCode>,
    outcome: Option<Outcome>,
    /// Whether the status is the application's.
    is_upstreams: bool,
    /// Whether its time was over before its answer was complete.
    out_of_time: bool,
    server: Option<usize>,
    /// Bytes of bodies, up and down.
    sent: u64,
    received: u64,
    revenue: Utility,
    /// The trace, if traces are on.
    trace: Option<Trace>,
    /// The entry in a separate count, if it is not counted against the limit.
    permit: Option<CountedPermit>,
    /// The target, if that may be a file.
    file: Option<FileKey>,
}

impl Record {
    /// Returns a new record, boxed because it moves through all phases.
    pub(crate) fn new(
        worker: &Rc<Worker>,
        settings: &Rc<Settings>,
        facts: &Facts,
        request: &Request,
    ) -> Box<Self> {
        let name = worker.shared.request_name();
        if let Some(metrics) = level_metrics(settings, facts.level) {
            metrics.arrived();
        }
        let begin = |tracer| Trace::begin(tracer, &request.fields, name);
        Box::new(Self {
            name,
            trace: settings.tracer.as_ref().map(begin),
            facts: *facts,
            brought: Brought::default(),
            protocol: protocol(request.version),
            message: message(request),
            arrived: worker.shared.driver.now(),
            started: None,
            standing: None,
            verdict: Verdict::None,
            status: None,
            outcome: None,
            is_upstreams: false,
            permit: None,
            file: None,
            out_of_time: false,
            server: None,
            sent: 0,
            received: 0,
            revenue: Utility::default(),
            worker: Rc::clone(worker),
            settings: Rc::clone(settings),
        })
    }

    /// The request's name, in the log and for the upstream.
    pub(crate) const fn name(&self) -> u64 {
        self.name
    }

    /// The span of the request.
    pub(crate) const fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// The settings in force when the request arrived.
    pub(crate) const fn settings(&self) -> &Rc<Settings> {
        &self.settings
    }

    /// The state that all threads share.
    pub(crate) fn shared(&self) -> &Shared {
        &self.worker.shared
    }

    /// The facts from the request's head.
    pub(crate) const fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(crate) fn class_config(&self) -> &ClassConfig {
        self.settings.class(self.class())
    }

    pub(crate) fn class_name(&self) -> &str {
        self.settings.class_name(self.class())
    }

    pub(super) const fn class(&self) -> ClassId {
        self.facts.request.class
    }

    /// Returns how long the request had waited at this time.
    pub(crate) fn waited(&self, at: Time) -> TimeSpan {
        at.since(self.arrived)
    }

    /// Returns until when the client waits for an answer to begin, if it has said so.
    pub(crate) fn client_waits_until(&self) -> Option<Time> {
        self.facts.deadlines.begins.map(|span| self.arrived + span)
    }

    /// Returns when the request is stopped if it has not been answered, provided that its class and
    /// the policy allow stopping.
    pub(crate) fn may_run_until(&self) -> Option<Time> {
        let stops = !self.settings.config.engine.termination.is_never();
        // A bypassed request has no standing.
        let can_be = stops && self.facts.request.cancellable && self.standing.is_some();
        let run_max = self.settings.run_max(&self.facts.request).filter(|_| can_be)?;
        self.started.map(|started| started + run_max)
    }

    /// Returns the level to send to the application: none for a request that is only observed or
    /// bypassed.
    pub(crate) fn level_to_tell(&self) -> Option<Level> {
        self.facts.level.filter(|_| self.class_enforces() && self.standing.is_some())
    }

    /// Sets the standing that the session had proven when the request was submitted to the engine.
    pub(crate) const fn stands(&mut self, standing: Standing) {
        self.standing = Some(standing);
    }

    /// Holds an entry in a separate count for a request without a slot, until its end or until
    /// another entry replaces it.
    pub(crate) fn holds(&mut self, permit: CountedPermit) {
        self.permit = Some(permit);
    }

    /// Takes the permit of a request for a file, which then lasts as long as its new holder.
    pub(crate) fn takes_permit(&mut self) -> Option<CountedPermit> {
        self.permit.take_if(|permit| permit.is_for_file())
    }

    /// Notes the target, if that may be a file.
    pub(crate) const fn may_ask_for(&mut self, file: Option<FileKey>) {
        self.file = file;
    }

    /// The target, if that may be a file.
    pub(crate) const fn file(&self) -> Option<FileKey> {
        self.file
    }

    /// Notes that the engine has granted a slot.
    pub(crate) fn granted(&mut self, reason: Reason, at: Time) {
        self.verdict = Verdict::Run(reason, self.waited(at));
        self.starts(at);
    }

    /// Ends a request that the engine has refused, where the refusal is carried out.
    pub(super) fn refused(&mut self, refusal: &Refusal, status: StatusCode) {
        self.verdict = Verdict::Shed(refusal.reason, self.waited(refusal.at));
        self.ends(outcome_of_refusal(refusal.reason), status);
    }

    /// Ends a request that the engine has stopped while it ran.
    pub(super) fn stopped(&mut self, refusal: &Refusal, status: StatusCode) {
        self.verdict = Verdict::Stop(refusal.reason, self.waited(refusal.at));
        self.ends(Outcome::Terminated, status);
    }

    /// Notes that the request goes to the upstream, whatever the engine decides.
    pub(crate) fn runs(&mut self) {
        if self.started.is_none() {
            self.starts(self.worker.shared.driver.now());
        }
    }

    fn starts(&mut self, at: Time) {
        let before = self.started.replace(at);
        debug_assert!(before.is_none(), "a request starts once");
        if let Some(metrics) = level_metrics(&self.settings, self.facts.level) {
            metrics.started();
        }
    }

    /// Notes the server that the request goes to.
    pub(crate) fn goes_to(&mut self, server: usize) {
        self.server = Some(server);
    }

    /// Adds bytes of the request's body that went to the upstream.
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(bytes);
    }

    /// Adds bytes of the answer's body that have arrived.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
    }

    /// Sets the revenue of the answer.
    pub(crate) fn set_revenue(&mut self, revenue: Utility) {
        self.revenue = revenue;
    }

    /// Counts its answer as one whose JSON could not be read.
    pub(crate) fn success_unread(&self, why: Unread) {
        self.settings.class_metrics(self.class()).success_unread(why);
    }

    /// Ends a request whose response is complete. `progress` is that of the session which the
    /// response has advanced. `held_up`: the client was slow to take the response.
    pub(super) fn finish(
        &mut self,
        ticket: Option<Ticket>,
        progress: Option<Progress>,
        status: StatusCode,
        held_up: bool,
    ) {
        if let Some(ticket) = ticket {
            self.decided(&ticket);
            let end = End::Answered { in_time: self.is_in_time(), held_up, done: gets_on(status) };
            ticket.answered(progress, end);
        }
        let failed = status.is_server_error();
        let outcome = if failed { Outcome::UpstreamError } else { self.served_or_late() };
        self.ends(outcome, status);
    }

    /// Ends a request that the upstream has failed, or whose client has failed to send its body.
    /// `end` says how the run ended for the engine. `status` is that of the client's response.
    pub(super) fn fail(
        &mut self,
        ticket: Option<Ticket>,
        error: &UpstreamError,
        end: End,
        status: StatusCode,
    ) {
        let is_clients = matches!(error, UpstreamError::Upload(_));
        self.ends(if is_clients { Outcome::Orphaned } else { Outcome::UpstreamError }, status);
        self.out_of_time |= error.is_given_up();
        if let Some(ticket) = ticket {
            self.decided(&ticket);
            ticket.failed(end);
        }
    }

    /// Gives the slot back when a response begins that goes on without one. The request does not
    /// end.
    pub(super) fn gives_slot_back(&mut self, ticket: Ticket, progress: Option<Progress>) {
        self.decided(&ticket);
        // The time to the first byte of a stream is not a sample of how long requests take.
        ticket.answered(progress, End::Failed);
    }

    /// Notes what the engine would have done with the request, if it was only observed.
    fn decided(&mut self, ticket: &Ticket) {
        if self.is_enforced() {
            return;
        }
        self.verdict = match ticket.decision() {
            Decision::Waits => Verdict::StillWaiting,
            Decision::Granted { reason, at } => Verdict::Run(reason, self.waited(at)),
            Decision::Refused(refusal) => Verdict::Shed(refusal.reason, self.waited(refusal.at)),
            Decision::Stopped(refusal) => Verdict::Stop(refusal.reason, self.waited(refusal.at)),
        };
    }

    /// Returns `Served`, or `Late` if its class has a patience and it took longer.
    fn served_or_late(&self) -> Outcome {
        if self.is_in_time() { Outcome::Served } else { Outcome::Late }
    }

    /// Returns whether it has not taken longer than the patience of its class.
    pub(crate) fn is_in_time(&self) -> bool {
        let patience = self.settings.patience(&self.facts.request);
        patience.is_none_or(|patience| self.waited(self.worker.shared.driver.now()) <= patience)
    }

    /// Sets the outcome and the status that the request counts with when it is dropped.
    pub(super) fn ends(&mut self, outcome: Outcome, status: StatusCode) {
        self.outcome = Some(outcome);
        self.status = Some(status);
    }

    /// Sets the cookies of the request.
    pub(crate) fn brings(&mut self, brought: Brought) {
        self.brought = brought;
    }

    /// The request's cookies, as far as they are watched.
    pub(crate) const fn brought(&self) -> &Brought {
        &self.brought
    }

    /// Notes that the client gets the application's answer, and not one of the gateway.
    pub(crate) const fn is_answered_upstream(&mut self) {
        self.is_upstreams = true;
    }

    /// Ends a request whose client's own deadline has expired, so that no client waits for it any
    /// longer.
    pub(super) fn out_of_time(&mut self, status: StatusCode) {
        self.ends(Outcome::Orphaned, status);
        self.out_of_time = true;
    }

    /// Returns whether the engine's decisions about it are carried out, because of its class or
    /// because of an approved rule.
    pub(crate) fn is_enforced(&self) -> bool {
        self.class_enforces() || self.facts.request.rule.is_some()
    }

    /// Returns whether its class enforces decisions for this client. If not, a rule may make the
    /// request wait; nothing else changes.
    pub(crate) const fn class_enforces(&self) -> bool {
        self.facts.enforced
    }

    /// The mode under which it was treated.
    fn mode(&self) -> Mode {
        if self.is_enforced() { Mode::Enforce } else { Mode::Observe }
    }
}

/// Returns the outcome of a request that was refused before it ran.
const fn outcome_of_refusal(reason: Reason) -> Outcome {
    match reason {
        Reason::WaitedTooLong => Outcome::Expired,
        Reason::Throttled => Outcome::Throttled,
        // The engine gives some of these reasons only for requests that run.
        Reason::QueueFull
        | Reason::Evicted
        | Reason::SetBack
        | Reason::PrincipalCap
        | Reason::Reconfigured
        | Reason::MemoryFull
        | Reason::SlotFree
        | Reason::Best
        | Reason::FloorShare
        | Reason::AfterOthers
        | Reason::ClientLeft
        | Reason::RanTooLong
        | Reason::Preempted
        | Reason::SlowClient => Outcome::Shed,
    }
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        // `Version` is an opaque struct, not an enum. The message layer accepts no other than 1.1.
        _ => "HTTP/1.1",
    }
}

/// Returns method and target, cut to the length that is kept. Both are ASCII: the message layer
/// ensures that.
fn message(request: &Request) -> Box<str> {
    let (method, target) = (request.method.as_str(), request.target.path_and_query());
    let most = KEPT_MESSAGE + 1;
    let mut message = String::with_capacity((method.len() + 1 + target.len()).min(most));
    message.push_str(method);
    message.push(' ');
    message.push_str(target.get(..most.saturating_sub(message.len())).unwrap_or(target));
    message.into()
}

fn level_metrics(settings: &Settings, level: Option<Level>) -> Option<&LevelMetrics> {
    settings.levels.as_ref().zip(level).map(|(levels, level)| levels.metrics(level))
}

impl Record {
    fn level_name(&self) -> Option<Arc<str>> {
        let (levels, level) = self.settings.levels.as_ref().zip(self.facts.level)?;
        Some(Arc::clone(levels.name(level)))
    }

    /// Tells the stop daemon to end the work behind the application, if the request was sent there
    /// and given up.
    fn tell_given_up(&self, outcome: Outcome) {
        let Some(notifier) = self.settings.notifier.as_ref().filter(|_| self.server.is_some())
        else {
            return;
        };
        let over = self.out_of_time.then_some(bywash_lease::Reason::Deadline);
        if let Some(reason) = over.or(orphans::reason(outcome))
            && !self.worker.shared.is_bypassed()
        {
            let traceparent = self.trace.as_ref().map(Trace::traceparent);
            notifier.notify(GivenUp { name: self.name, reason, traceparent });
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let shared = &self.worker.shared;
        let now = shared.driver.now();
        let outcome = self.outcome.unwrap_or(Outcome::Orphaned);
        self.tell_given_up(outcome);
        let waited = self.waited(self.started.unwrap_or(now));
        let service = self.started.map(|started| now.since(started));
        let metrics = self.settings.class_metrics(self.class());
        metrics.add_revenue(self.revenue);
        if let Some(status) = self.status {
            metrics.responded(status, self.is_upstreams);
        }
        metrics.ended(outcome, waited, service);
        metrics.decided(self.mode(), self.verdict);
        metrics.stood(self.standing);
        if !self.is_enforced() {
            metrics.observed(self.verdict);
        }
        if let Some(metrics) = level_metrics(&self.settings, self.facts.level) {
            metrics.ended(outcome, self.started.is_some(), self.waited(now));
        }
        let entry = Arc::new(Entry {
            name: self.name,
            client: self.facts.client,
            protocol: self.protocol,
            message: std::mem::take(&mut self.message),
            status: self.status,
            decided: Some(Decided {
                class: Arc::clone(self.settings.class_name(self.class())),
                class_id: self.class(),
                runs_at: self.started,
                ended: now,
                level: self.level_name(),
                session: self.facts.request.session,
                standing: self.standing,
                mode: self.mode(),
                rule: self.facts.request.rule,
                verdict: self.verdict,
                outcome,
                waited,
                service: service.unwrap_or(TimeSpan::ZERO),
                server: self.server,
                sent: self.sent,
                received: self.received,
            }),
            ..Entry::now()
        });
        if let Some(trace) = self.trace.take() {
            trace.ends(now.since(self.arrived), &entry);
        }
        shared.request_log.note(entry);
    }
}
