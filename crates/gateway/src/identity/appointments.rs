//! Appointments of automated agents: when a refused agent should come again.
//!
//! Soon after a refusal, an agent meets the same load. So the gateway tells it to come at the next
//! quiet time of the site ([`bywash_history::History::next_quiet`]). If it comes then, it ranks with
//! readers. Until then it ranks behind all others. An agent that has no appointment ranks as the
//! configuration says.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether an agent keeps its appointment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The agent has no appointment.
    Free,
    /// The agent comes before its appointment.
    Early,
    /// The agent comes at the time of its appointment.
    Kept,
}

impl Arrival {
    pub(crate) const ALL: [Self; 3] = [Self::Free, Self::Early, Self::Kept];
}

/// The number of seconds after a failed search in which the gateway does not search again.
const RETRY: u64 = 60;

/// The appointments of agents. Times are in seconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct Appointments(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The time of the appointment of each agent, by the agent's name.
    times: HashMap<Box<str>, Range<u64>>,
    /// The time until which the gateway does not search for a quiet time.
    searched_until: u64,
}

impl Appointments {
    /// Returns whether an agent that comes at `now` keeps its appointment.
    pub(crate) fn arrival(&self, agent: &str, now: u64) -> Arrival {
        match self.lock().times.get(agent) {
            Some(time) if now < time.start => Arrival::Early,
            Some(time) if now < time.end => Arrival::Kept,
            Some(_) | None => Arrival::Free,
        }
    }

    /// Returns the time of the appointment of an agent that was refused at `now`. Makes one if the
    /// agent has none; `next_quiet` returns the next quiet time. Returns `None` if no quiet time is
    /// known, or if this is the time of the appointment.
    pub(crate) fn make(
        &self,
        agent: &str,
        now: u64,
        next_quiet: impl FnOnce() -> Option<Range<u64>>,
    ) -> Option<Range<u64>> {
        let mut state = self.lock();
        state.times.retain(|_, time| now < time.end);
        if let Some(time) = state.times.get(agent) {
            return Some(time.clone()).filter(|time| now < time.start);
        }
        if now < state.searched_until {
            return None;
        }
        state.searched_until = now + RETRY;
        // The search waits for the history, and no other request should wait for the search.
        drop(state);
        let time = next_quiet().filter(|time| now < time.start)?;
        let mut state = self.lock();
        state.searched_until = 0;
        state.times.insert(agent.into(), time.clone());
        Some(time)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_early_until_its_appointment_and_free_after_it() {
        let all = Appointments::default();
        assert_eq!(all.arrival("a", 10), Arrival::Free);
        assert_eq!(all.make("a", 10, || Some(100..200)), Some(100..200));
        assert_eq!(all.make("a", 20, || Some(300..400)), Some(100..200), "the appointment stays");
        let arrivals = [20, 99, 100, 199, 200].map(|now| all.arrival("a", now));
        let (early, kept) = (Arrival::Early, Arrival::Kept);
        assert_eq!(arrivals, [early, early, kept, kept, Arrival::Free]);
        assert_eq!(all.arrival("b", 20), Arrival::Free);
        assert_eq!(all.make("a", 150, || Some(300..400)), None, "this is its time");
        assert_eq!(all.make("a", 200, || Some(300..400)), Some(300..400));
        assert_eq!(all.make("b", 201, || Some(300..400)), Some(300..400));
    }

    #[test]
    fn without_a_known_quiet_time_there_is_no_appointment() {
        let all = Appointments::default();
        assert_eq!(all.make("a", 10, || None), None);
        assert_eq!(all.make("a", 69, || Some(100..200)), None, "it searches once a minute");
        assert_eq!(all.make("a", 70, || Some(60..90)), None, "it has begun");
        assert_eq!(all.arrival("a", 70), Arrival::Free);
        assert_eq!(all.make("a", 130, || Some(200..300)), Some(200..300));
    }
}
