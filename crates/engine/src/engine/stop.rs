//! Stops running requests: because they have run for too long, or to save a waiting request.

use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};

use super::{Engine, view};
use crate::action::Action;
use crate::limit::Completion;
use crate::queue::Waiting;
use crate::reason::Reason;
use crate::request::Bounds;
use crate::request::{ClassId, RequestId, Standing};
use crate::terminate::{Ran, RunOutcome};

/// The factor by which the promise of the next request must exceed that of a running request before
/// the running one is preempted. A running request that promises nearly as much has already run for
/// a while, and that work would be lost.
const PREEMPTION_FACTOR: f64 = 2.0;

/// The lower bound of pressure at which requests are stopped for others until [`PRESSURE_HOLD`] has
/// passed since the pressure was last 1 or more. Without this bound the pressure would have to
/// reach 1 again for each stop. All requests would then wait nearly until they are lost, for as
/// long as the load lasts.
const SUSTAINED_PRESSURE: f64 = 2.0 / 7.0;
/// The time after high pressure during which [`SUSTAINED_PRESSURE`] applies. It is short, so that a
/// load that rarely fills the queue causes hardly any needless stop.
const PRESSURE_HOLD: TimeSpan = TimeSpan::from_secs(10);

impl Engine {
    /// Returns whether the queue is so near to losing requests that a running one is to be stopped
    /// for `new` or a waiting one.
    fn is_pressed(&mut self, now: Time, new: RequestId) -> bool {
        let view = self.view(now);
        let max_wait = self.options.max_wait.unwrap_or(TimeSpan::MAX);
        let pressure = self.scheduler.pressure(&view, view.waiting(new), max_wait);
        if pressure >= 1.0 {
            self.pressed = now + PRESSURE_HOLD;
        }
        pressure >= 1.0 || (pressure >= SUSTAINED_PRESSURE && now < self.pressed)
    }

    /// Reports to the termination policy how a request ran. Does nothing if the requests of no
    /// class can be stopped.
    pub(super) fn report_run(&mut self, ran: Ran) {
        if self.any_stops {
            self.terminate.ended(ran);
        }
    }

    /// Reports to the termination policy that the outcome of a request says nothing about the load.
    pub(super) fn report_no_outcome(&mut self, now: Time, id: RequestId) {
        let Waiting { stops_as, since, .. } = *self.view(now).waiting(id);
        self.terminate.left(stops_as, since);
    }

    /// Returns the time at which the first running request will have run for the maximum time.
    pub(super) fn next_overdue(&self) -> Option<Time> {
        if !self.stops || !self.requests.can_stop() {
            return None;
        }
        let overdue = self.longest().filter_map(|(_, since, class, bounds)| {
            let may_run = self.may_run(class, bounds);
            // `TimeSpan::MAX` means that the request may run without a limit.
            (may_run < TimeSpan::MAX).then_some(since + may_run)
        });
        overdue.min()
    }

    /// Stops all requests that have run for the maximum time.
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

    /// Makes room for `new`, which would have to wait because all slots are taken. If requests are
    /// about to be lost, stops a running request that promises less than the request that would run
    /// next. Returns the request that gets the slot; `None` if no slot became free.
    pub(super) fn make_room(
        &mut self,
        now: Time,
        new: RequestId,
        actions: &mut Vec<Action>,
    ) -> Option<RequestId> {
        let Waiting { standing, .. } = *self.view(now).waiting(new);
        // If the limit has fallen, more requests run than may, and stopping one frees no slot.
        let full = self.running == self.slots();
        if !full || !self.stops || !self.requests.can_stop() || !self.is_pressed(now, new) {
            return None;
        }
        let (least, id, since) = self.least_promising_running(now, standing)?;
        let first = self.next_more_promising(now, new, least * PREEMPTION_FACTOR)?;
        actions.push(self.stop(now, id, since, Reason::Preempted));
        (self.running < self.slots()).then_some(first)
    }

    /// Returns the running request that promises least, with its promise and its start. Only
    /// requests that can be stopped and whose standing is `standing` or worse are considered.
    fn least_promising_running(
        &mut self,
        now: Time,
        standing: Standing,
    ) -> Option<(f64, RequestId, Time)> {
        let mut least: Option<(f64, RequestId, Time)> = None;
        for index in 0..self.classes.len() {
            // Most classes have no such request.
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

    /// Returns the request that would get the next slot, `new` or a waiting one. Returns `None` if
    /// a second of service for that request does not promise more than `than`.
    fn next_more_promising(&mut self, now: Time, new: RequestId, than: f64) -> Option<RequestId> {
        let view = view(now, self.mean_service, self.learning.values(), &self.requests);
        let next = self.scheduler.goes_first(&view, new);
        let class = view.waiting(next).class.index();
        let promise = self.promise(now, class, TimeSpan::ZERO)?;
        (promise > than).then_some(next)
    }

    /// Returns the promise of one more second of service for a request of this class and age. It is
    /// the expected number of completed requests, times the utility of the class.
    fn promise(&mut self, now: Time, class: usize, age: TimeSpan) -> Option<f64> {
        let promise = self.terminate.promise(now, ClassId(class as u8), age)?;
        // A class without a configured utility counts 1, because it is not worthless.
        let worth = self.classes[class].utility.get();
        Some(promise * if worth > 0.0 { worth } else { 1.0 })
    }

    fn stop(&mut self, now: Time, id: RequestId, since: Time, reason: Reason) -> Action {
        let Waiting { class, stops_as, .. } = *self.view(now).waiting(id);
        let took = now.since(since);
        self.lost(now, id);
        self.report_run(Ran { class: stops_as, took, outcome: RunOutcome::Stopped });
        self.learning.ran(class, took, false);
        self.take_back(now, id, since, Completion::Void);
        Action::Terminate { id, reason, retry_after: self.retry_after(now, true) }
    }

    /// Returns the time for which a request of a class may run at present; `None` if requests of
    /// the class are never stopped.
    pub fn may_run_of(&self, class: ClassId) -> Option<TimeSpan> {
        let bounds = self.classes[class.index()].stop.filter(|_| self.stops)?;
        Some(self.may_run(class, bounds).min(bounds.max))
    }

    fn may_run(&self, class: ClassId, bounds: Bounds) -> TimeSpan {
        self.terminate.may_run(class, bounds).clamp_to(bounds.min, TimeSpan::MAX)
    }

    /// Returns, for each class, the request that can be stopped and has run longest.
    fn longest(&self) -> impl Iterator<Item = (RequestId, Time, ClassId, Bounds)> + '_ {
        self.classes.iter().enumerate().filter_map(|(index, class)| {
            let (id, since) = self.requests.longest(index, Standing::Transaction)?;
            Some((id, since, ClassId(index as u8), class.stop?))
        })
    }
}
