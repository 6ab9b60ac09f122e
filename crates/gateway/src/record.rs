//! What is known of a request at its end: one line in the log, one count in the metrics.
//!
//! A record is made when a request has been examined and is written when it is dropped, so no
//! request is without one. Its outcome is what [`Record::ends`] or [`Record::refused`] said; a
//! request that was dropped before either has lost its client.

use std::sync::Arc;

use bywash_config::Mode;
use bywash_engine::{ClassId, Outcome, Reason, SessionKey};
use bywash_units::{Span, Time};
use http::StatusCode;
use http::request::Parts;

use crate::driver::{Decision, Refusal, Ticket};
use crate::request::Facts;
use crate::shared::Shared;

pub(crate) struct Record {
    shared: Arc<Shared>,
    name: u64,
    class: ClassId,
    session: Option<SessionKey>,
    /// Method and target, if there is a log to write them to.
    message: Option<Box<(String, String)>>,
    arrived: Time,
    started: Option<Time>,
    verdict: Verdict,
    status: Option<StatusCode>,
    outcome: Option<Outcome>,
}

/// What the engine decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Nothing: it was not asked, or the request ended before.
    None,
    /// A slot, after this wait.
    Run(Reason, Span),
    /// A refusal, after this wait.
    Shed(Reason, Span),
    /// Observed only: it would still have waited when its answer was complete.
    StillWaiting,
}

impl Record {
    pub(crate) fn new(shared: &Arc<Shared>, facts: &Facts, parts: &Parts) -> Self {
        let message = || {
            let target = parts.uri.path_and_query().map_or("*", |target| target.as_str());
            Box::new((parts.method.to_string(), target.to_owned()))
        };
        Self {
            name: shared.request_name(),
            class: facts.request.class,
            session: facts.request.session,
            message: shared.log.is_on().then(message),
            arrived: shared.driver.now(),
            started: None,
            verdict: Verdict::None,
            status: None,
            outcome: None,
            shared: Arc::clone(shared),
        }
    }

    /// Its name, in the log and for the upstream.
    pub(crate) const fn name(&self) -> u64 {
        self.name
    }

    /// The engine has given it a slot.
    pub(crate) fn granted(&mut self, reason: Reason, at: Time) {
        self.verdict = Verdict::Run(reason, at.since(self.arrived));
        self.started = Some(at);
    }

    /// The engine has refused it, and so it is.
    pub(crate) fn refused(&mut self, refusal: &Refusal) {
        self.verdict = Verdict::Shed(refusal.reason, refusal.at.since(self.arrived));
        self.status = Some(StatusCode::SERVICE_UNAVAILABLE);
        self.outcome = Some(match refusal.reason {
            Reason::WaitedTooLong => Outcome::Expired,
            _ => Outcome::Shed,
        });
    }

    /// It goes to the upstream, whatever the engine thinks.
    pub(crate) fn runs(&mut self) {
        if self.started.is_none() {
            self.started = Some(self.shared.driver.now());
        }
    }

    /// Notes at its end what the engine would have done with it, if it was only observed.
    pub(crate) fn decided(&mut self, ticket: &Ticket) {
        if self.mode() == Mode::Enforce {
            return;
        }
        self.verdict = match ticket.decision() {
            Decision::Waits => Verdict::StillWaiting,
            Decision::Granted { reason, at } => Verdict::Run(reason, at.since(self.arrived)),
            Decision::Refused(refusal) => {
                Verdict::Shed(refusal.reason, refusal.at.since(self.arrived))
            }
        };
    }

    /// `Served`, or `Late` if its class has a patience and it took longer.
    pub(crate) fn served_or_late(&self) -> Outcome {
        let patience = self.shared.config.classes[self.class.index()].patience;
        let taken = || self.shared.driver.now().since(self.arrived);
        match patience {
            Some(patience) if taken() > patience => Outcome::Late,
            _ => Outcome::Served,
        }
    }

    /// It has ended so.
    pub(crate) fn ends(&mut self, outcome: Outcome, status: StatusCode) {
        self.outcome = Some(outcome);
        self.status = Some(status);
    }

    /// Whether what the engine decides about it is carried out.
    pub(crate) fn is_enforced(&self) -> bool {
        self.mode() == Mode::Enforce
    }

    fn mode(&self) -> Mode {
        self.shared.config.classes[self.class.index()].mode
    }

    fn line(&self, outcome: Outcome, waited: Span, service: Span) -> Option<String> {
        let (method, target) = self.message.as_deref()?;
        let (decision, reason) = self.verdict.words();
        let line = serde_json::json!({
            "time": crate::access_log::wall_clock_ms(),
            "request": format!("{:016x}", self.name),
            "method": method,
            "target": target,
            "class": self.shared.config.classes[self.class.index()].class.name,
            "session": self.session.map(|SessionKey(key)| format!("{key:016x}")),
            "mode": self.mode().name(),
            "decision": decision,
            "reason": reason,
            "outcome": outcome.name(),
            "status": self.status.map(|status| status.as_u16()),
            "queue_wait_us": waited.as_micros(),
            "service_us": service.as_micros(),
        });
        Some(line.to_string())
    }
}

impl Verdict {
    /// Decision and reason as they stand in the log.
    const fn words(self) -> (Option<&'static str>, Option<&'static str>) {
        match self {
            Self::None => (None, None),
            Self::Run(reason, _) => (Some("run"), Some(reason.name())),
            Self::Shed(reason, _) => (Some("shed"), Some(reason.name())),
            Self::StillWaiting => (Some("wait"), None),
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let now = self.shared.driver.now();
        let outcome = self.outcome.unwrap_or(Outcome::Orphaned);
        let waited = self.started.unwrap_or(now).since(self.arrived);
        let service = self.started.map_or(Span::ZERO, |started| now.since(started));
        let metrics = &self.shared.metrics;
        metrics.ended(self.class, outcome, waited, self.started.map(|_| service));
        metrics.decided(self.class, self.verdict);
        if let Some(line) = self.line(outcome, waited, service) {
            self.shared.log.write(line);
        }
    }
}
