//! Running requests that are stopped: because they are overdue, or so that another is not lost.

use alloc::vec::Vec;

use bywash_units::{Span, Time};

use super::Engine;
use crate::action::Action;
use crate::limit::Way;
use crate::queue::Waiting;
use crate::reason::Reason;
use crate::request::{ClassId, RequestId, Standing};
use crate::terminate::{Bounds, Fate, Ran};

/// Whoever is stopped for another must promise less by this factor: who promises nearly as much has run for
/// a while already, which would be lost.
const LESS: f64 = 2.0;

/// The pressure that is enough where requests were about to be lost a while ago. If it had to become as high again, all
/// requests would wait for as long as those, while the load lasts.
const STILL_PRESSED: f64 = 2.0 / 7.0;
/// That while. In a load that rarely fills the queue, hardly any request is stopped that could have been spared.
const WHILE: Span = Span::from_secs(10);

impl Engine {
    /// Whether one is to be stopped before `new` waits too.
    fn is_pressed(&mut self, now: Time, new: RequestId) -> bool {
        let moment = self.moment(now);
        let pressure = self.order.pressure(&moment, moment.waiting(new));
        if pressure >= 1.0 {
            self.pressed = now + WHILE;
        }
        pressure >= 1.0 || (pressure >= STILL_PRESSED && now < self.pressed)
    }

    /// A request has run, as the policy is to know it; where no class can be stopped it need not.
    pub(super) fn tell_ran(&mut self, ran: Ran) {
        if self.any_stops {
            self.terminate.ended(ran);
        }
    }

    /// What became of a request has nothing to do with how much there is to do.
    pub(super) fn did_not_arrive(&mut self, now: Time, id: RequestId) {
        let Waiting { stops_as, since, .. } = *self.moment(now).waiting(id);
        self.terminate.left(stops_as, since);
    }

    /// When the first of those that run will have run for as long as it may.
    pub(super) fn next_overdue(&self) -> Option<Time> {
        if !self.stops || !self.requests.can_stop() {
            return None;
        }
        let overdue = self.longest().filter_map(|(_, since, class, bounds)| {
            let may_run = self.may_run(class, bounds);
            // For ever is no time.
            (may_run < Span::MAX).then_some(since + may_run)
        });
        overdue.min()
    }

    /// Stops all that have run for as long as they may.
    pub(super) fn stop_overdue(&mut self, now: Time, actions: &mut Vec<Action>) {
        if !self.stops {
            return;
        }
        let due = |engine: &Self| {
            let is_due = |(id, since, class, bounds): (RequestId, Time, ClassId, Bounds)| {
                (since + engine.may_run(class, bounds) <= now).then_some((id, since))
            };
            engine.longest().find_map(is_due)
        };
        while let Some((id, since)) = due(self) {
            actions.push(self.stop(now, id, since, Reason::RanTooLong));
        }
    }

    /// All slots are taken and `new` is to wait: if requests are about to be lost, stops a running one that
    /// promises less than any of those that wait. Whether a slot is free now.
    pub(super) fn make_room(
        &mut self,
        now: Time,
        new: RequestId,
        actions: &mut Vec<Action>,
    ) -> bool {
        let Waiting { class, standing, .. } = *self.moment(now).waiting(new);
        // Where the limit has fallen, one that is stopped makes no room.
        let full = self.running == self.limit.slots();
        if !full || !self.stops || !self.requests.can_stop() || !self.is_pressed(now, new) {
            return false;
        }
        let Some((least, id, since)) = self.least_that_runs(now, standing) else { return false };
        if !self.all_promise_more(now, class, least * LESS) {
            return false;
        }
        actions.push(self.stop(now, id, since, Reason::GaveWay));
        self.running < self.limit.slots()
    }

    /// Of those that run, could be stopped and have proven no more, the one that promises least.
    fn least_that_runs(&mut self, now: Time, standing: Standing) -> Option<(f64, RequestId, Time)> {
        let mut least: Option<(f64, RequestId, Time)> = None;
        for index in 0..self.classes.len() {
            // Mostly there is none.
            let Some((id, since)) = self.requests.longest(index, standing) else { continue };
            let age = now.since(since);
            if self.classes[index].stop.is_none_or(|bounds| age < bounds.min) {
                continue;
            }
            let Some(more) = self.promise(now, index, age) else { continue };
            if least.is_none_or(|(least, ..)| more < least) {
                least = Some((more, id, since));
            }
        }
        least
    }

    /// Whether a second of service promises more than this of every class of which somebody waits, and of
    /// `new`: an order may choose any of them.
    fn all_promise_more(&mut self, now: Time, new: ClassId, than: f64) -> bool {
        (0..self.classes.len()).all(|index| {
            let waits = index == new.index() || self.moment(now).length_of(index) > 0;
            !waits || self.promise(now, index, Span::ZERO).is_some_and(|promise| promise > than)
        })
    }

    /// What a second more of a request of this class and age promises: requests, times what one is worth.
    fn promise(&mut self, now: Time, class: usize, age: Span) -> Option<f64> {
        let promise = self.terminate.promise(now, ClassId(class as u8), age)?;
        // Where nobody has said what it is worth, it is not worthless.
        let worth = self.classes[class].utility.get();
        Some(promise * if worth > 0.0 { worth } else { 1.0 })
    }

    fn stop(&mut self, now: Time, id: RequestId, since: Time, reason: Reason) -> Action {
        let Waiting { class, stops_as, .. } = *self.moment(now).waiting(id);
        let took = now.since(since);
        self.lost(now, id);
        self.tell_ran(Ran { class: stops_as, took, fate: Fate::Stopped });
        self.learning.ran(class, took, false);
        self.take_back(now, id, since, Way::Void);
        Action::Terminate { id, reason, retry_after: self.come_again(now, true) }
    }

    /// How long a request of a class may run, as things are; `None`: none of it is ever stopped.
    pub fn may_run_of(&self, class: ClassId) -> Option<Span> {
        let bounds = self.classes[class.index()].stop.filter(|_| self.stops)?;
        Some(self.may_run(class, bounds).min(bounds.max))
    }

    fn may_run(&self, class: ClassId, bounds: Bounds) -> Span {
        self.terminate.may_run(class, bounds).clamp_to(bounds.min, Span::MAX)
    }

    /// Of each class that can be stopped, the one that has run for longest.
    fn longest(&self) -> impl Iterator<Item = (RequestId, Time, ClassId, Bounds)> + '_ {
        self.classes.iter().enumerate().filter_map(|(index, class)| {
            let (id, since) = self.requests.longest(index, Standing::Transaction)?;
            Some((id, since, ClassId(index as u8), class.stop?))
        })
    }
}
