//! A new configuration while requests run and wait.
//!
//! Nothing that a request holds is taken away: a running one keeps its slot even if the limit is
//! lower now, and a waiting one is refused only if the new order has no place for it. Numbers,
//! sessions and classes mean the same before and after, so whoever holds one need not be told.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bywash_units::Time;

use super::{Engine, Options, any_stops};
use crate::action::Action;
use crate::queue::Order;
use crate::reason::Reason;
use crate::request::{Class, RequestId};
use crate::session::proving;

impl Engine {
    /// From now on these classes, this order and these options hold.
    ///
    /// `order` is `None` if it is to be the one that there is:
    /// [`Settings::changed_order`](crate::catalog::Settings::changed_order) says so. With `None`
    /// and equal options no later decision differs from what it would have been.
    ///
    /// What becomes of
    /// - **slots**: running requests keep theirs; with a lower limit they end, and nobody starts
    ///   until fewer run than may. A limit with the same settings goes on with what it has
    ///   learned; another starts where its settings say. Slots that a higher limit adds are given
    ///   away first, by the old order, so that nobody is refused while one is free;
    /// - **termination**: another policy than before knows nothing yet. Whoever runs can be stopped if its
    ///   class said so when it started and still does;
    /// - **the queue**: it moves to the new order oldest first; a request keeps its arrival, its
    ///   standing and its principal. Those that the new order refuses or pushes out, with a
    ///   smaller queue or a lower cap, are shed as [`Reason::Reconfigured`];
    /// - **what the order knew**: overload detectors, and the floor share that was earned, start
    ///   new with a new order. The age of the queue's head tells at the next look whether it is
    ///   overload; the CPU with the next reading;
    /// - **sessions**: they stay. With less room some are forgotten, fresh ones first. Which are proven is asked
    ///   again if other classes prove it. Whether one is too old is asked with the new `session_ttl`: a longer one can bring back a
    ///   session that was too old before;
    /// - **the pace** of services, and all that was learned of what requests are worth, stay;
    /// - **timers**: [`Engine::next_timer`] and [`Engine::meter`] may answer otherwise
    ///   afterwards. A shorter `max_wait` expires nobody here, but at that timer.
    ///
    /// Takes time in proportion to the queue, and to the sessions if their room or the classes that prove them
    /// change, and allocates.
    ///
    /// # Panics
    /// If there are fewer classes than before, or more and no order for them. A class keeps its
    /// index for as long as the engine lives; one that is no longer wanted stays in the list.
    pub fn reconfigure(
        &mut self,
        now: Time,
        classes: Vec<Class>,
        order: Option<Box<dyn Order>>,
        options: Options,
        actions: &mut Vec<Action>,
    ) {
        let (before, after) = (self.classes.len(), classes.len());
        assert!(after >= before, "{before} classes cannot become {after}");
        assert!(after == before || order.is_some(), "new classes need an order that knows them");
        self.sessions.resize(now, options.sessions, options.session_ttl, proving(&classes));
        self.attempts.reconfigure(options.retry_window);
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
        let pins = |classes: &[Class]| classes.iter().map(|class| class.pinned).collect::<Vec<_>>();
        let pinned_otherwise = pins(&self.classes) != pins(&classes);
        self.any_stops = any_stops(&classes);
        self.classes = classes;
        if pinned_otherwise || self.learning.is_due_at_once() {
            self.learning.publish(now, &self.classes);
        }
        if let Some(order) = order {
            self.move_to(now, order, actions);
        }
    }

    fn move_to(&mut self, now: Time, order: Box<dyn Order>, actions: &mut Vec<Action>) {
        let waiting = self.requests.empty_queue(self.classes.len());
        self.order = order;
        let refused: Vec<RequestId> = waiting
            .into_iter()
            .filter_map(|id| self.enter_queue(now, id))
            .map(|out| out.0)
            .collect();
        // Only now is it known how long the queue is, and so when a retry may find it drained.
        for id in refused {
            actions.push(self.shed(now, id, Reason::Reconfigured));
        }
    }
}
