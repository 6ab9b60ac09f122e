//! The facts that the engine learns: how long requests take, what sessions do, and which requests
//! are repeated.

use bywash_units::{Time, Utility};

use super::{Engine, Served};
use crate::event::End;
use crate::queue::{Repeats, Waiting};
use crate::request::{Request, RequestId, SessionKey, Signals, Standing};
use crate::session::Page;
use crate::terminate::{Ran, RunOutcome};
use crate::value::Learning;

impl Engine {
    /// Returns the signals that count for a request: those that its session showed when the session
    /// began. For a new session these are the signals of the request itself.
    pub(super) fn signals_of(&self, standing: Standing, request: &Request) -> Signals {
        let session = request.session.filter(|_| standing != Standing::New);
        session.and_then(|session| self.sessions.signals(session)).unwrap_or(request.signals)
    }

    /// Returns whether a request repeats an earlier one that was refused, stopped or left by its
    /// client, and how that is known.
    pub(super) fn repeats(&self, now: Time, request: &Request) -> Repeats {
        let is_known = |key| self.lost_attempts.get(now, key).is_some();
        match request.attempt {
            _ if request.retry => Repeats::Declared,
            Some(key) if is_known(key) => Repeats::Seen,
            Some(_) | None => Repeats::No,
        }
    }

    /// Notes that a session asks for a class. The request counts as the visitor's next step, even
    /// if it is not served.
    pub(super) fn asks(&mut self, now: Time, request: &Request) {
        let Some(session) = request.session else { return };
        if let Some(from) = self.sessions.asks(now, session, request.class) {
            self.learning.asked(from, request.class);
        }
    }

    /// Notes that a session was served an answer. The engine learns from the answer only if it
    /// begins or advances the session and was sent in time.
    pub(super) fn served(&mut self, now: Time, session: SessionKey, served: Served) {
        let Served { service, signals, revenue, in_time } = served;
        if !self.sessions.served(now, session, service) || !in_time {
            return;
        }
        let class = service.class;
        let brings_revenue = revenue > Utility::default();
        let page = Page { class, signals, brings_revenue };
        let step = self.sessions.steps(session, page);
        if let Some(position) = step.visit {
            self.learning.visited(position, step.new, step.signals);
        }
        // Only the first success of a class counts. A visitor who looks at their receipt again has
        // not ordered again.
        if step.brings_revenue {
            self.learning.add_revenue(class, &step, revenue.get());
            self.sessions.ordered(session);
        }
    }

    /// Learns from a request that has run since the time `since` and has now ended. `end` says how
    /// it ended.
    pub(super) fn ran(&mut self, now: Time, id: RequestId, since: Time, end: End) {
        let took = now.since(since);
        let Waiting { class, stops_as, .. } = *self.view(now).waiting(id);
        let outcome = match end {
            End::Answered { held_up: false, done: true, .. } => Some(RunOutcome::Done),
            // The client delayed the end of the answer. The application was done at an unknown
            // earlier time.
            End::Answered { held_up: true, .. } => None,
            // The request was not done when it ended, and never will be. Omitting it would bias the
            // estimate: of the requests that had run for that long, too large a fraction would
            // appear to be done a little later.
            End::Answered { held_up: false, done: false, .. }
            | End::TimedOut
            | End::Abandoned { .. }
            | End::Failed => Some(RunOutcome::Cut),
        };
        if let Some(outcome) = outcome {
            self.report_run(Ran { class: stops_as, took, outcome });
        }
        match end {
            End::Answered { in_time, .. } => {
                self.mean_service.learn(took);
                self.learning.ran(class, took, in_time);
                self.retry_after.served(now);
            }
            End::TimedOut | End::Abandoned { .. } => self.learning.ran(class, took, false),
            End::Failed => {}
        }
    }

    /// Learns from a request that has run since the time `since` and whose client has now left.
    pub(super) fn learn_abandoned_run(&mut self, now: Time, id: RequestId, since: Time) {
        let Waiting { class, stops_as, .. } = *self.view(now).waiting(id);
        let took = now.since(since);
        self.report_run(Ran { class: stops_as, took, outcome: RunOutcome::Cut });
        self.learning.ran(class, took, false);
    }

    /// Notes that a request was refused, stopped or left by its client, so that its repetition is
    /// recognised.
    pub(super) fn lost(&mut self, now: Time, id: RequestId) {
        let Waiting { attempt, .. } = *self.view(now).waiting(id);
        if let Some(key) = attempt {
            self.lost_attempts.note(now, key, ());
        }
    }

    /// Returns what the engine has learned about the worth of requests.
    pub const fn learning(&self) -> &Learning {
        &self.learning
    }
}
