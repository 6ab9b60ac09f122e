//! What the engine learns from what happens: how long requests take, what sessions do, what is
//! repeated.

use bywash_units::{Time, Utility};

use super::{Engine, Served};
use crate::event::End;
use crate::queue::{Repeats, Waiting};
use crate::request::{Request, RequestId, SessionKey, Signals, Standing};
use crate::session::Page;
use crate::terminate::{Fate, Ran};
use crate::value::Learning;

impl Engine {
    /// The signals that count for a request: those that its session began with.
    pub(super) fn signals_of(&self, standing: Standing, request: &Request) -> Signals {
        let session = request.session.filter(|_| standing != Standing::New);
        session.and_then(|session| self.sessions.signals(session)).unwrap_or(request.signals)
    }

    /// Whether a request repeats one that was lost.
    pub(super) fn repeats(&self, now: Time, request: &Request) -> Repeats {
        let is_known = |key| self.attempts.repeats(now, key);
        match request.attempt {
            _ if request.retry => Repeats::Declared,
            Some(key) if is_known(key) => Repeats::Seen,
            Some(_) | None => Repeats::No,
        }
    }

    /// A session asks for something: whether it gets it or not, that is what it wants.
    pub(super) fn asks(&mut self, now: Time, request: &Request) {
        let Some(session) = request.session else { return };
        if let Some(from) = self.sessions.asks(now, session, request.class) {
            self.learning.asked(from, request.class);
        }
    }

    /// A session was served.
    pub(super) fn served(&mut self, now: Time, session: SessionKey, served: Served) {
        let Served { service, signals, earned, in_time } = served;
        if !self.sessions.served(now, session, service) || !in_time {
            return;
        }
        let class = service.class;
        let page = Page { class, signals, earns: earned > Utility::default() };
        let step = self.sessions.steps(session, page);
        if let Some(place) = step.visit {
            self.learning.visited(place, step.new, step.signals);
        }
        // The first time: who looks at her receipt again has not ordered again.
        if step.new && page.earns {
            self.learning.earned(class, &step, earned.get());
            self.sessions.ordered(session);
        }
    }

    /// A request has run, and came to this end.
    pub(super) fn ran(&mut self, now: Time, id: RequestId, since: Time, end: End) {
        let took = now.since(since);
        let Waiting { class, stops_as, .. } = *self.moment(now).waiting(id);
        let fate = match end {
            End::Answered { held_up: false, done: true, .. } => Some(Fate::Done),
            // Its client held it up: the application was done at some time before.
            End::Answered { held_up: true, .. } => None,
            // It was not done by then, and never will be. Not to tell would be wrong: of those that had
            // run for so long, the part that was done a little later would be too large.
            End::Answered { held_up: false, done: false, .. }
            | End::TimedOut
            | End::Abandoned
            | End::Failed => Some(Fate::Cut),
        };
        if let Some(fate) = fate {
            self.tell_ran(Ran { class: stops_as, took, fate });
        }
        match end {
            End::Answered { in_time, .. } => {
                self.pace.learn(took);
                self.learning.ran(class, took, in_time);
                self.retry_after.served(now);
            }
            End::TimedOut | End::Abandoned => self.learning.ran(class, took, false),
            End::Failed => {}
        }
    }

    /// A request has run, and its client is gone.
    pub(super) fn ran_for_nobody(&mut self, now: Time, id: RequestId, since: Time) {
        let Waiting { class, stops_as, .. } = *self.moment(now).waiting(id);
        let took = now.since(since);
        self.tell_ran(Ran { class: stops_as, took, fate: Fate::Cut });
        self.learning.ran(class, took, false);
    }

    /// An attempt was in vain.
    pub(super) fn lost(&mut self, now: Time, id: RequestId) {
        let Waiting { attempt, .. } = *self.moment(now).waiting(id);
        if let Some(key) = attempt {
            self.attempts.lost(now, key);
        }
    }

    /// What was learned of what requests are worth.
    pub const fn learning(&self) -> &Learning {
        &self.learning
    }
}
