//! The report of a request: at its end, the facts go to the metrics, the request log, the trace and
//! the stop daemon.

use std::ops::Range;
use std::sync::Arc;

use bywash_engine::{Outcome, Reason, Standing};
use bywash_units::TimeSpan;

use super::{Record, level_metrics};
use crate::identity::agents::Signature;
use crate::identity::populations::RANKS_POPULATIONS;
use crate::process::wall_clock::unix_ms;
use crate::telemetry::orphans::{self, GivenUp};
use crate::telemetry::request_log::{Decided, Entry};
use crate::telemetry::traces::Trace;

impl Record {
    fn level_name(&self) -> Option<Arc<str>> {
        let (levels, level) = self.settings.levels.as_ref().zip(self.facts.level)?;
        Some(Arc::clone(levels.name(level)))
    }

    /// Returns the name of the agent that signed the request, if one has.
    fn agent(&self) -> Option<&str> {
        let agent = self.facts.signature.and_then(Signature::agent);
        let (agents, agent) = self.settings.agents.as_ref().zip(agent)?;
        Some(agents.name(agent))
    }

    /// Returns the number of seconds until the appointment of the agent of a refused request. Makes
    /// an appointment if the agent has none. Returns `None` if the request is not a first request of
    /// an agent, if overload is not the reason, if the policy does not rank agents, or if no quiet
    /// time is known.
    pub(in crate::request) fn appointment(&self, reason: Reason) -> Option<Range<u64>> {
        let is_load = matches!(
            reason,
            Reason::QueueFull | Reason::Evicted | Reason::SetBack | Reason::WaitedTooLong
        );
        let ranks = self.settings.config.scheduler.name() == RANKS_POPULATIONS;
        let is_first = self.standing == Some(Standing::New);
        let agent = self.agent().filter(|_| is_load && ranks && is_first)?;
        let (shared, now) = (&self.worker.shared, unix_ms());
        let seconds = |quiet: Range<u64>| quiet.start / 1000..quiet.end / 1000;
        let next_quiet = || shared.history_recorder.history().next_quiet(now).map(seconds);
        let time = shared.appointments.make(agent, now / 1000, next_quiet)?;
        Some(time.start.saturating_sub(now / 1000)..time.end.saturating_sub(now / 1000))
    }

    /// Tells the stop daemon to stop the application's work for this request, if the request was
    /// sent there and given up.
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
        if let Some(last) = self.last_decision.take().and_then(|last| last.get().copied()) {
            self.verdict = self.verdict_of(last);
        }
        let shared = &self.worker.shared;
        let now = self.completed.unwrap_or_else(|| shared.driver.now());
        let outcome = self.outcome.unwrap_or(Outcome::Orphaned);
        self.tell_given_up(outcome);
        let waited = self.waited(self.started.unwrap_or(now));
        let service = self.started.map(|started| now.since(started));
        let metrics = self.settings.class_metrics(self.class());
        metrics.add_revenue(self.revenue);
        if let Some(status) = self.status {
            metrics.responded(status, self.is_from_upstream);
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
                agent: self.agent().map(Box::from),
                population: self.population,
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
            trace.end(now.since(self.arrived), &entry);
        }
        shared.request_log.note(entry);
    }
}
