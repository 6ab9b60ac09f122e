//! Applies a new configuration while requests run and wait.
//!
//! No request loses what it holds. A running request keeps its slot even if the limit is lower now.
//! A waiting request is refused only if the new scheduler has no place for it. Request numbers,
//! sessions and class indices keep their meaning, so the driver needs to translate nothing.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bywash_units::Time;

use super::{Engine, Options, any_stops};
use crate::action::Action;
use crate::queue::Scheduler;
use crate::reason::Reason;
use crate::request::{Class, RequestId};
use crate::session::proving;

impl Engine {
    /// Applies these classes, this scheduler and these options from now on.
    ///
    /// `scheduler` is `None` to keep the present scheduler.
    /// [`Settings::changed_scheduler`](crate::catalog::Settings::changed_scheduler) decides whether
    /// it can be kept. With `None` and equal options, later decisions are the same as without the
    /// call.
    ///
    /// The effects on each part of the state:
    /// - **slots**: running requests keep theirs. With a lower limit no request starts until enough
    ///   of them have ended. A limit with the same settings keeps what it has learned. Another one
    ///   starts at its configured value. If the limit rises, the old scheduler first fills the new
    ///   slots, so that no request is refused while a slot is free.
    /// - **termination**: a different policy starts without knowledge. A running request can be
    ///   stopped if its class allowed that when the request started and still does.
    /// - **the queue**: its requests move to the new scheduler, oldest first. A request keeps its
    ///   arrival time, its standing and its principal. Requests that the new scheduler refuses or
    ///   evicts, because of a smaller queue or a lower limit per principal, are shed as
    ///   [`Reason::Reconfigured`].
    /// - **the scheduler's own state**: overload detectors and the earned floor share start afresh
    ///   with a new scheduler. The age of the oldest request shows at the next check whether there
    ///   is overload. CPU use shows it with the next measurement.
    /// - **sessions**: they stay. If the table is smaller, some are evicted, fresh ones first. If
    ///   the set of classes that prove a session changes, every session is checked again. Ages are
    ///   compared with the new `session_ttl`, so a longer one can bring back a session that was too
    ///   old before.
    /// - **learned values**: the mean service time and the learned worth of requests stay.
    /// - **timers**: [`Engine::next_timer`] and [`Engine::meter`] may return other values
    ///   afterwards. A shorter `max_wait` expires no request in this call, but at the next timer.
    ///
    /// The call allocates. It takes time in proportion to the queue. If the size of the session
    /// table or the classes that prove a session change, it also takes time in proportion to the
    /// sessions.
    ///
    /// # Panics
    /// Panics if there are fewer classes than before. Also panics if there are more classes than
    /// before and `scheduler` is `None`. A class keeps its index for as long as the engine lives,
    /// so a class that is no longer wanted stays in the list.
    pub fn reconfigure(
        &mut self,
        now: Time,
        classes: Vec<Class>,
        scheduler: Option<Box<dyn Scheduler>>,
        options: Options,
        actions: &mut Vec<Action>,
    ) {
        let (before, after) = (self.classes.len(), classes.len());
        assert!(after >= before, "{before} classes cannot become {after}");
        assert!(
            after == before || scheduler.is_some(),
            "new classes need a scheduler that knows them"
        );
        self.sessions.resize(now, options.sessions, options.session_ttl, proving(&classes));
        self.lost_attempts.set_window(options.retry_window);
        if self.learning.kinds() != options.learn.kinds {
            self.sessions.forget_signals();
        }
        self.learning.reconfigure(classes.len(), options.learn);
        if self.options.limit != options.limit {
            self.limit = options.limit.limit();
        }
        if self.options.termination != options.termination {
            self.terminate = options.termination.termination();
        }
        self.options = options;
        self.fill(now, actions);
        let fixed_values =
            |classes: &[Class]| classes.iter().map(|class| class.fixed_value).collect::<Vec<_>>();
        let fixed_values_change = fixed_values(&self.classes) != fixed_values(&classes);
        self.any_stops = any_stops(&classes);
        self.classes = classes;
        if fixed_values_change || self.learning.is_due_at_once() {
            self.learning.publish(now, &self.classes);
        }
        if let Some(scheduler) = scheduler {
            self.move_to(now, scheduler, actions);
        }
    }

    fn move_to(&mut self, now: Time, scheduler: Box<dyn Scheduler>, actions: &mut Vec<Action>) {
        let waiting = self.requests.empty_queue(self.classes.len());
        self.scheduler = scheduler;
        let refused: Vec<RequestId> = waiting
            .into_iter()
            .filter_map(|id| self.enter_queue(now, id))
            .map(|out| out.0)
            .collect();
        // The refusals come last, because `Retry-After` depends on the final length of the queue.
        for id in refused {
            actions.push(self.shed(now, id, Reason::Reconfigured));
        }
    }
}
