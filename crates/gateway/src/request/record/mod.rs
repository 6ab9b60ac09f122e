//! The record of one request: the facts that go to the metrics and the request log when it ends.
//!
//! A record is made when a request has been examined, and is reported when it is dropped, so every
//! request is reported. One of these methods ends the request and sets its outcome:
//! [`Record::finish`], [`Record::fail`], [`Record::refused`], [`Record::stopped`],
//! [`Record::out_of_time`], [`Record::end`]. A record that is dropped before has lost its client,
//! and is reported as `orphaned`.
//!
//! `finish` and `fail` take the ticket of the request: they ask what the engine decided, and tell
//! the engine how the request ended. For the other methods the caller drops the ticket, because the
//! engine itself has ended the request, or because no client waits any more.

mod report;

use std::rc::Rc;

use bywash_config::{ClassConfig, Level, Mode};
use bywash_engine::{ClassId, Decision, End, Outcome, PopulationKey, Reason, Refusal, Standing};
use bywash_message::Request;
use bywash_units::{Time, TimeSpan, Utility};
use http::StatusCode;

use super::Facts;
use super::answer_kind::may_advance_session;
use crate::context::Worker;
use crate::driver::{LastDecision, Progress, Ticket};
use crate::identity::session_cookie::WatchedCookies;
use crate::settings::Settings;
use crate::shared::{CountedPermit, Shared};
use crate::static_files::FileKey;
use crate::telemetry::metrics::{LevelMetrics, Unread};
use crate::telemetry::request_log::{KEPT_MESSAGE, Verdict, protocol};
use crate::telemetry::traces::Trace;
use crate::upstream::UpstreamError;

pub(crate) struct Record {
    worker: Rc<Worker>,
    settings: Rc<Settings>,
    name: u64,
    facts: Facts,
    /// The request's cookies that earlier responses have set; see [`WatchedCookies`].
    watched_cookies: WatchedCookies,
    protocol: &'static str,
    message: Box<str>,
    arrived: Time,
    started: Option<Time>,
    /// The time at which the response was complete.
    completed: Option<Time>,
    /// The standing that the session had proven when the request was submitted to the engine.
    /// `None` if it was not submitted.
    standing: Option<Standing>,
    /// The client's population and its level when the request was submitted to the engine; `None`
    /// if its session had begun, or if populations are not told apart.
    population: Option<(PopulationKey, usize)>,
    verdict: Verdict,
    /// The engine's last decision, if the request is only observed and its client leaves.
    last_decision: Option<LastDecision>,
    status: Option<StatusCode>,
    outcome: Option<Outcome>,
    /// Whether the answer came from the application, not from the gateway.
    is_from_upstream: bool,
    /// Whether the time limit for the answer has expired: the client's own deadline, or a time
    /// limit of the upstream.
    out_of_time: bool,
    server: Option<usize>,
    /// The number of bytes of the request's body that were sent to the upstream.
    sent: u64,
    /// The number of bytes of the answer's body that have arrived from the upstream.
    received: u64,
    revenue: Utility,
    /// The trace and span of the request, if traces are on.
    trace: Option<Trace>,
    /// The request's entry in a count of requests without a slot; `None` if no such count includes
    /// it.
    permit: Option<CountedPermit>,
    /// The key of the request's target; `None` if the target cannot be a file.
    file: Option<FileKey>,
}

impl Record {
    /// Creates the record of a request that has just arrived. It is boxed, because all phases pass
    /// it on.
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
            watched_cookies: WatchedCookies::default(),
            protocol: protocol(request.version),
            message: message(request),
            arrived: worker.shared.driver.now(),
            started: None,
            completed: None,
            standing: None,
            population: None,
            verdict: Verdict::None,
            last_decision: None,
            status: None,
            outcome: None,
            is_from_upstream: false,
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

    /// Returns the request's name, which stands in the log and in the field for the upstream.
    pub(crate) const fn name(&self) -> u64 {
        self.name
    }

    /// Returns the trace and span of the request. Returns `None` if traces are off.
    pub(crate) const fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Returns the settings that were in force when the request arrived.
    pub(crate) const fn settings(&self) -> &Rc<Settings> {
        &self.settings
    }

    /// Returns the state that all threads share.
    pub(crate) fn shared(&self) -> &Shared {
        &self.worker.shared
    }

    /// Returns the facts from the request's head.
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

    /// Returns the time at which the request arrived.
    pub(crate) const fn arrived(&self) -> Time {
        self.arrived
    }

    /// Returns the time from the request's arrival until `at`.
    pub(crate) fn waited(&self, at: Time) -> TimeSpan {
        at.since(self.arrived)
    }

    /// Returns the time until which the client waits for an answer to begin. Returns `None` if the
    /// client has set no deadline.
    pub(crate) fn client_waits_until(&self) -> Option<Time> {
        self.facts.deadlines.begins.map(|span| self.arrived + span)
    }

    /// Returns the time at which the engine stops the request if it is still running. Returns
    /// `None` if the request does not run yet, or if its class or the termination policy does not
    /// allow that.
    pub(crate) fn may_run_until(&self) -> Option<Time> {
        let stops = !self.settings.config.engine.termination.is_never();
        // A bypassed request has no standing, and the engine cannot stop it.
        let can_be = stops && self.facts.request.cancellable && self.standing.is_some();
        let run_max = self.settings.run_max(&self.facts.request).filter(|_| can_be)?;
        self.started.map(|started| started + run_max)
    }

    /// Returns the level to send to the application. Returns `None` for a request that is only
    /// observed or bypassed, and if no levels are configured.
    pub(crate) fn level_to_tell(&self) -> Option<Level> {
        self.facts.level.filter(|_| self.class_enforces() && self.standing.is_some())
    }

    /// Records that the request was submitted to the engine, and the standing that its session had
    /// proven then.
    pub(crate) fn submitted(&mut self, ticket: &Ticket) {
        self.standing = Some(ticket.standing());
        self.population = ticket.population();
        self.last_decision = ticket.last_decision();
    }

    /// Holds an entry in the count of requests without a slot. The entry ends with the request, or
    /// when another entry replaces it.
    pub(crate) fn hold_permit(&mut self, permit: CountedPermit) {
        self.permit = Some(permit);
    }

    /// Removes the permit of a request for a file from the record and returns it. Returns `None` if
    /// there is none.
    pub(crate) fn take_file_permit(&mut self) -> Option<CountedPermit> {
        self.permit.take_if(|permit| permit.is_for_file())
    }

    /// Records the key of the request's target, if that may be a file.
    pub(crate) const fn set_file(&mut self, file: Option<FileKey>) {
        self.file = file;
    }

    /// Returns the key of the request's target, if that may be a file.
    pub(crate) const fn file(&self) -> Option<FileKey> {
        self.file
    }

    /// Records that the engine granted a slot at the time `at`. The request runs from then on.
    pub(crate) fn granted(&mut self, reason: Reason, at: Time) {
        self.verdict = Verdict::Run(reason, self.waited(at));
        self.start(at);
    }

    /// Ends a request that the engine has refused. Called only where decisions are enforced.
    pub(super) fn refused(&mut self, refusal: &Refusal, status: StatusCode) {
        self.verdict = Verdict::Shed(refusal.reason, self.waited(refusal.at));
        self.end(outcome_of_refusal(refusal.reason), status);
    }

    /// Ends a request that the engine has stopped while it ran.
    pub(super) fn stopped(&mut self, refusal: &Refusal, status: StatusCode) {
        self.verdict = Verdict::Stop(refusal.reason, self.waited(refusal.at));
        self.end(Outcome::Terminated, status);
    }

    /// Records that the request runs from now on, unless it already runs.
    pub(crate) fn ensure_started(&mut self) {
        if self.started.is_none() {
            self.start(self.worker.shared.driver.now());
        }
    }

    fn start(&mut self, at: Time) {
        let before = self.started.replace(at);
        debug_assert!(before.is_none(), "a request starts once");
        if let Some(metrics) = level_metrics(&self.settings, self.facts.level) {
            metrics.started();
        }
    }

    /// Records the index of the server that the request is sent to.
    pub(crate) fn set_server(&mut self, server: usize) {
        self.server = Some(server);
    }

    /// Adds the number of bytes of the request's body that were sent to the upstream.
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(bytes);
    }

    /// Adds the number of bytes of the answer's body that have arrived from the upstream.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
    }

    /// Sets the revenue of the request, in the unit of the configuration.
    pub(crate) fn set_revenue(&mut self, revenue: Utility) {
        self.revenue = revenue;
    }

    /// Counts the request's answer as one whose JSON body could not be examined.
    pub(crate) fn success_unread(&self, why: Unread) {
        self.settings.class_metrics(self.class()).success_unread(why);
    }

    /// Ends a request whose response is complete. `progress` is the progress of the session that
    /// the response has advanced; `None` if it has advanced none. `held_up` says whether the
    /// response was delayed on the client's side.
    pub(super) fn finish(
        &mut self,
        ticket: Option<Ticket>,
        progress: Option<Progress>,
        status: StatusCode,
        held_up: bool,
    ) {
        if let Some(ticket) = ticket {
            self.decided(&ticket);
            let end = End::Answered {
                in_time: self.is_in_time(),
                held_up,
                done: may_advance_session(status),
            };
            ticket.answered(progress, end);
        }
        let failed = status.is_server_error();
        let outcome = if failed { Outcome::UpstreamError } else { self.served_or_late() };
        self.end(outcome, status);
    }

    /// Records the time at which the response was complete.
    pub(super) const fn completed(&mut self, at: Time) {
        self.completed = Some(at);
    }

    /// Ends a request that the upstream has failed, or whose client has failed to send the body.
    /// `end` tells the engine how the run ended. `status` is the status of the response to the
    /// client.
    pub(super) fn fail(
        &mut self,
        ticket: Option<Ticket>,
        error: &UpstreamError,
        end: End,
        status: StatusCode,
    ) {
        let is_clients = matches!(error, UpstreamError::Upload(_));
        self.end(if is_clients { Outcome::Orphaned } else { Outcome::UpstreamError }, status);
        self.out_of_time |= error.is_given_up();
        if let Some(ticket) = ticket {
            self.decided(&ticket);
            ticket.failed(end);
        }
    }

    /// Gives the slot back when a response begins that goes on without a slot, such as a stream.
    /// The request does not end.
    pub(super) fn release_slot(&mut self, ticket: Ticket, progress: Option<Progress>) {
        self.decided(&ticket);
        // `End::Failed` keeps the duration out of the samples of service time, because a stream has
        // only just begun.
        ticket.answered(progress, End::Failed);
    }

    /// Records what the engine would have done with a request that was only observed.
    fn decided(&mut self, ticket: &Ticket) {
        if !self.is_enforced() {
            self.verdict = self.verdict_of(ticket.decision());
        }
    }

    fn verdict_of(&self, decision: Decision) -> Verdict {
        match decision {
            Decision::Waits => Verdict::StillWaiting,
            Decision::Granted { reason, at } => Verdict::Run(reason, self.waited(at)),
            Decision::Refused(refusal) => Verdict::Shed(refusal.reason, self.waited(refusal.at)),
            Decision::Stopped(refusal) => Verdict::Stop(refusal.reason, self.waited(refusal.at)),
        }
    }

    /// Returns the outcome of a complete response: `Late` if the request took longer than the
    /// patience of its class, otherwise `Served`.
    fn served_or_late(&self) -> Outcome {
        if self.is_in_time() { Outcome::Served } else { Outcome::Late }
    }

    /// Returns whether the request has not yet taken longer than the patience of its class. True
    /// for a class without a patience.
    pub(crate) fn is_in_time(&self) -> bool {
        let patience = self.settings.patience(&self.facts.request);
        patience.is_none_or(|patience| self.waited(self.worker.shared.driver.now()) <= patience)
    }

    /// Sets the outcome and the status with which the request is reported when the record is
    /// dropped.
    pub(super) fn end(&mut self, outcome: Outcome, status: StatusCode) {
        self.outcome = Some(outcome);
        self.status = Some(status);
    }

    /// Sets the request's cookies that earlier responses have set.
    pub(crate) fn set_watched_cookies(&mut self, watched_cookies: WatchedCookies) {
        self.watched_cookies = watched_cookies;
    }

    /// Returns the request's cookies that earlier responses have set.
    pub(crate) const fn watched_cookies(&self) -> &WatchedCookies {
        &self.watched_cookies
    }

    /// Records that the client gets the application's answer, not one of the gateway.
    pub(crate) const fn mark_answered_upstream(&mut self) {
        self.is_from_upstream = true;
    }

    /// Ends a request whose client's own deadline has expired.
    pub(super) fn out_of_time(&mut self, status: StatusCode) {
        self.end(Outcome::Orphaned, status);
        self.out_of_time = true;
    }

    /// Returns whether the engine's decisions about the request are enforced, by its class or by an
    /// approved rule.
    pub(crate) fn is_enforced(&self) -> bool {
        self.class_enforces() || self.facts.request.rule.is_some()
    }

    /// Returns whether the request's class enforces decisions for this client. If not, only a rule
    /// can make the request wait.
    pub(crate) const fn class_enforces(&self) -> bool {
        self.facts.enforced
    }

    /// Returns the mode in which the request was treated.
    fn mode(&self) -> Mode {
        if self.is_enforced() { Mode::Enforce } else { Mode::Observe }
    }
}

/// Returns the outcome of a request that was refused for this reason before it ran.
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

/// Returns the method and the target, separated by a space. The text is cut after one byte more
/// than [`KEPT_MESSAGE`]. Cutting is safe because the message layer accepts only ASCII here.
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
