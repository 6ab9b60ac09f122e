//! The engine's timer: the work that is due at a time, not at an event.

use alloc::vec::Vec;

use bywash_units::Time;

use super::Engine;
use crate::action::Action;
use crate::reason::Reason;

impl Engine {
    /// Returns the time for the next call of [`Engine::on_timer`]; `None` if no call is due before
    /// the next event.
    pub fn next_timer(&self) -> Option<Time> {
        let (expiry, overdue) = (self.next_expiry(), self.next_overdue());
        let timers = [self.limit.next_timer(), expiry, overdue, self.next_in_lanes()];
        timers.into_iter().flatten().min()
    }

    /// Returns the time at which the oldest waiting request will have waited for the maximum wait.
    fn next_expiry(&self) -> Option<Time> {
        let view = self.view(Time::ZERO);
        let oldest = view.oldest()?;
        self.options.max_wait.map(|wait| view.waiting(oldest).since + wait)
    }

    /// Handles the timer that [`Engine::next_timer`] asked for.
    pub fn on_timer(&mut self, now: Time, actions: &mut Vec<Action>) {
        self.limit.on_timer(now);
        self.terminate.tick(now);
        self.stop_overdue(now, actions);
        self.fill(now, actions);
        while self.next_expiry().is_some_and(|due| due <= now) {
            let Some(oldest) = self.view(now).oldest() else {
                break;
            };
            self.leave_queue(now, oldest);
            actions.push(self.shed(now, oldest, Reason::WaitedTooLong));
        }
        self.refuse_overdue_in_lanes(now, actions);
    }
}
