//! The origin of visitors: drawn from a scenario's graph and distributions, or recorded in a log.
//!
//! In both cases a visitor is the same state machine (`Visitor`), and its plan does not depend on
//! how it is treated. A runner of a scenario therefore calls `Scenario::visitor` without knowing
//! the origin. In a recording, only patience, pauses after a refusal and decisions to abandon are
//! random.

use bywash_units::{Time, TimeSpan};

/// The source of the visitors of a run.
#[derive(Clone, Debug)]
pub enum Source {
    /// Each visitor is drawn from the session graph, services and think times of the scenario.
    Drawn,
    /// The visitors are recorded, and arrive in the order of the recording.
    Recorded(Recording),
}

/// One request that a visitor means to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// The index of the request's class in the scenario.
    pub class: usize,
    /// The service time that the request needs.
    pub demand: TimeSpan,
    /// The pause between the answer to this request and the visitor's next request.
    pub think: TimeSpan,
    /// Whether an answer to the request is an order.
    pub order: bool,
}

/// Recorded visitors. All their visits are in one allocation, as there may be millions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    visits: Vec<Visit>,
    /// The arrival time of each visitor, and the index in `visits` after the visitor's last visit.
    visitors: Vec<(Time, usize)>,
}

impl Recording {
    /// Adds a visitor that arrives at `came`. A visitor without visits is ignored.
    pub fn add(&mut self, came: Time, visits: impl IntoIterator<Item = Visit>) {
        let before = self.visits.len();
        self.visits.extend(visits);
        if self.visits.len() > before {
            self.visitors.push((came, self.visits.len()));
        }
    }

    /// Returns the number of recorded visitors.
    pub fn len(&self) -> usize {
        self.visitors.len()
    }

    /// Returns whether there are no recorded visitors.
    pub fn is_empty(&self) -> bool {
        self.visitors.is_empty()
    }

    /// Returns the arrival times of all visitors in the order in which they were added. All times
    /// are divided by `speed`.
    pub fn starts(&self, speed: f64) -> Vec<Time> {
        let sooner = |came: Time| Time::ZERO + came.since(Time::ZERO).scale(1.0 / speed);
        self.visitors.iter().map(|(came, _)| sooner(*came)).collect()
    }

    /// Returns the visits of all visitors. The visits of one visitor are adjacent and in order.
    pub fn visits(&self) -> &[Visit] {
        &self.visits
    }

    /// Returns the visits of the `index`-th visitor; an empty slice if there is no such visitor.
    pub(crate) fn of(&self, index: usize) -> &[Visit] {
        let end = |index: usize| self.visitors.get(index).map(|(_, end)| *end);
        let begin = index.checked_sub(1).map_or(Some(0), end);
        match (begin, end(index)) {
            (Some(begin), Some(end)) => &self.visits[begin..end],
            _ => &[],
        }
    }

    /// Returns the total service time of all visits of all visitors.
    pub fn work(&self) -> TimeSpan {
        self.visits.iter().fold(TimeSpan::ZERO, |sum, visit| sum + visit.demand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::small;
    use crate::visitor::{Ending, Next};

    fn visit(class: usize, millis: u64) -> Visit {
        let (demand, think) = (TimeSpan::from_millis(millis), TimeSpan::from_secs(millis));
        Visit { class, demand, think, order: class == 1 }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_secs(seconds)
    }

    fn two() -> Recording {
        let mut recording = Recording::default();
        recording.add(at(4), [visit(0, 10), visit(1, 20)]);
        recording.add(at(5), []);
        recording.add(at(6), [visit(0, 30)]);
        recording
    }

    #[test]
    fn a_recorded_visitor_walks_what_was_recorded() {
        let scenario = crate::Scenario { source: Source::Recorded(two()), ..small() };
        let mut first = scenario.visitor(1, 0, at(4));
        assert_eq!((first.planned_requests(), first.planned_orders()), (2, 1));
        let attempt = first.attempt(&scenario);
        assert_eq!((attempt.class, attempt.demand), (0, TimeSpan::from_millis(10)));
        let next = first.ended(&scenario, Ending::Completed);
        assert_eq!(next, Next::After(TimeSpan::from_secs(10)));
        assert!(first.attempt(&scenario).order);
        let second = scenario.visitor(1, 1, at(6));
        assert_eq!(second.planned_work(&scenario.servers, at(6)), TimeSpan::from_millis(30));
    }

    #[test]
    fn twice_as_fast_they_come_in_half_the_time_and_think_as_long_as_ever() {
        let recording = two();
        assert_eq!(recording.starts(2.0), [at(2), at(3)]);
        assert_eq!(recording.visits()[0].think, TimeSpan::from_secs(10));
        assert_eq!(recording.work(), TimeSpan::from_millis(60));
    }

    #[test]
    fn a_class_may_have_a_patience_of_its_own() {
        let mut scenario = crate::Scenario { source: Source::Recorded(two()), ..small() };
        assert_eq!(scenario.visitor(1, 0, at(4)).attempt(&scenario).patience, TimeSpan::MAX);
        scenario.classes[0].patience = Some(crate::Distribution::Constant(TimeSpan::from_secs(3)));
        let attempt = scenario.visitor(1, 0, at(4)).attempt(&scenario);
        assert_eq!(attempt.patience, TimeSpan::from_secs(3));
    }
}
