//! One visitor: the behaviour of a client as a state machine.
//!
//! The plan of a visitor (path, service demands, think times) is drawn at arrival. It does not
//! depend on how the visitor is treated; only the outcome does.

use bywash_units::{Time, TimeSpan};

use crate::client::Client;
use crate::distribution::{Distribution, Stream};
use crate::file::Scenario;
use crate::servers::Servers;
use crate::sets::ClientSet;
use crate::signal;
use crate::source::{Source, Visit};

/// A visitor, with its planned visits and its progress in them.
#[derive(Clone, Debug)]
pub struct Visitor {
    visits: Vec<Visit>,
    at: usize,
    /// The number of attempts already made at the present visit.
    attempts: u32,
    /// The `Retry-After` of the last request's refusal; zero if the refusal had none.
    asked: TimeSpan,
    mood: Stream,
    signals: Vec<usize>,
    /// The patience of the visitor's set; `None` if the scenario's patience applies.
    patience: Option<Distribution>,
}

/// One attempt to get the answer of a visit: one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt {
    /// The index of the request's class.
    pub class: usize,
    /// The service time that the request needs.
    pub demand: TimeSpan,
    /// The time that the client waits for the answer before it closes the connection.
    pub patience: TimeSpan,
    /// Whether an earlier attempt at the same visit failed.
    pub retry: bool,
    /// Whether the request declares in a header that it is a retry.
    pub declared: bool,
    /// Whether an answer to the request is an order.
    pub order: bool,
}

/// The end of one attempt, as its client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The answer arrived while the client waited.
    Completed,
    /// The client lost patience and closed the connection.
    TimedOut,
    /// The server side refused the request.
    Dropped,
    /// The server side stopped the request while it ran.
    Terminated,
    /// The request failed: the connection broke, or the answer was a 5xx that is not a refusal.
    Failed,
}

/// The action of a visitor after the end of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// The visitor continues: the next attempt follows after this pause.
    After(TimeSpan),
    /// The visitor leaves.
    Gone {
        /// The number of planned requests that were never made: paper 1's column «not generated».
        not_generated: u64,
    },
}

impl Scenario {
    /// Returns the `index`-th visitor of a run, which arrives at `now`. The visitor is drawn at
    /// random, or taken from the scenario's recording if it has one.
    pub fn visitor(&self, seed: u64, index: u64, now: Time) -> Visitor {
        match &self.source {
            Source::Drawn => Visitor::starting(self, seed, index, self.start_at(now), now),
            Source::Recorded(recording) => {
                Visitor::recorded(recording.of(index as usize), seed, index)
            }
        }
    }
}

impl Visitor {
    /// Draws the `index`-th visitor of a run. The session starts at time zero, with the class that
    /// the session graph names.
    pub fn new(scenario: &Scenario, seed: u64, index: u64) -> Self {
        Self::starting(scenario, seed, index, scenario.graph.start, Time::ZERO)
    }

    /// Draws the `index`-th visitor of a run. The session starts at `now` with the class of index
    /// `start`.
    pub fn starting(scenario: &Scenario, seed: u64, index: u64, start: usize, now: Time) -> Self {
        let mut wants = Stream::new(seed, 1, index);
        let path = scenario.graph.walk(start, &mut wants);
        let buyer = path.contains(&scenario.graph.order);
        let visits: Vec<Visit> = path
            .into_iter()
            .map(|class| Visit {
                class,
                demand: scenario.classes[class].service_at(now).draw(&mut wants),
                think: scenario.classes[class]
                    .think
                    .unwrap_or(scenario.client.think)
                    .draw(&mut wants),
                order: class == scenario.graph.order,
            })
            .collect();
        let signals = signal::carried(&scenario.signals, buyer, &mut Stream::new(seed, 3, index));
        Self { signals, ..Self::recorded(&visits, seed, index) }
    }

    /// Creates the `index`-th visitor of a recording, with the recorded visits as its plan. The
    /// random decisions of its behaviour are drawn from `seed`.
    pub fn recorded(visits: &[Visit], seed: u64, index: u64) -> Self {
        Self {
            visits: visits.to_vec(),
            at: 0,
            attempts: 0,
            asked: TimeSpan::ZERO,
            mood: Stream::new(seed, 2, index),
            signals: Vec::new(),
            patience: None,
        }
    }

    /// Returns the visitor with the patience of `set`, if the set has its own.
    #[must_use]
    pub fn of_set(self, set: &ClientSet) -> Self {
        Self { patience: set.patience, ..self }
    }

    /// Returns the indices of the signals that the visitor shows in every request, ascending.
    pub fn signals(&self) -> &[usize] {
        &self.signals
    }

    /// Returns the visitor's next request, and counts the attempt.
    pub fn attempt(&mut self, scenario: &Scenario) -> Attempt {
        let visit = self.visits[self.at];
        let of_class = scenario.classes[visit.class].patience;
        let patience = self.patience.or(of_class).unwrap_or(scenario.client.patience);
        self.attempts += 1;
        self.asked = TimeSpan::ZERO;
        let retry = self.attempts > 1;
        Attempt {
            class: visit.class,
            demand: visit.demand,
            patience: patience.draw(&mut self.mood),
            retry,
            declared: retry && scenario.client.declares_retries,
            order: visit.order,
        }
    }

    /// Records that the last request was refused, with `retry_after` as the wait that the server
    /// side asks for.
    pub fn asked_to_wait(&mut self, retry_after: TimeSpan) {
        self.asked = retry_after;
    }

    /// Returns what the visitor does after the last request ended with `ending`.
    pub fn ended(&mut self, scenario: &Scenario, ending: Ending) -> Next {
        match ending {
            Ending::Completed => self.go_on(),
            Ending::TimedOut => {
                let client = &scenario.client;
                self.try_again(client, client.retries, client.pause_after_timeout)
            }
            Ending::Dropped | Ending::Terminated | Ending::Failed => {
                let client = &scenario.client;
                let asked = if client.obeys_retry_after { self.asked } else { TimeSpan::ZERO };
                let pause = asked + client.pause_after_refusal.draw(&mut self.mood);
                self.try_again(client, client.retries_after_refusal.min(client.retries), pause)
            }
        }
    }

    fn go_on(&mut self) -> Next {
        let think = self.visits[self.at].think;
        self.at += 1;
        self.attempts = 0;
        if self.at == self.visits.len() {
            Next::Gone { not_generated: 0 }
        } else {
            Next::After(think)
        }
    }

    fn try_again(&mut self, client: &Client, retries: u32, pause: TimeSpan) -> Next {
        let fed_up = client.abandon > 0.0 && self.mood.unit() < client.abandon;
        if self.attempts > retries || fed_up {
            let left = self.visits.len() - self.at - 1;
            return Next::Gone { not_generated: left as u64 };
        }
        Next::After(pause)
    }

    /// Returns the total service time of the visitor's planned requests, with the servers' demand
    /// factors at `now`.
    pub fn planned_work(&self, servers: &Servers, now: Time) -> TimeSpan {
        let demand = |visit: &Visit| servers.demand(now, visit.class, visit.demand);
        self.visits.iter().map(demand).fold(TimeSpan::ZERO, |sum, demand| sum + demand)
    }

    /// Returns the number of planned requests, without retries.
    pub fn planned_requests(&self) -> u64 {
        self.visits.len() as u64
    }

    /// Returns the number of planned orders.
    pub fn planned_orders(&self) -> u64 {
        self.visits.iter().filter(|visit| visit.order).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::small;

    #[test]
    fn what_a_visitor_wants_does_not_depend_on_how_she_is_treated() {
        let scenario = small();
        let mut lucky = Visitor::new(&scenario, 5, 9);
        let mut unlucky = lucky.clone();
        let first = lucky.attempt(&scenario);
        unlucky.attempt(&scenario);
        unlucky.ended(&scenario, Ending::TimedOut);
        let again = unlucky.attempt(&scenario);
        assert_eq!((first.class, first.demand), (again.class, again.demand));
        assert!(again.retry && !first.retry);
    }

    #[test]
    fn she_thinks_between_pages_and_not_before_a_retry() {
        let scenario = small();
        let mut visitor = (0..1000)
            .map(|index| Visitor::new(&scenario, 1, index))
            .find(|visitor| visitor.visits.len() == 2)
            .expect("a session of two requests is common in this graph");
        let think = visitor.visits[0].think;
        assert!(think > TimeSpan::ZERO);
        visitor.attempt(&scenario);
        assert_eq!(visitor.ended(&scenario, Ending::TimedOut), Next::After(TimeSpan::ZERO));
        visitor.attempt(&scenario);
        assert_eq!(visitor.ended(&scenario, Ending::Completed), Next::After(think));
        visitor.attempt(&scenario);
        let over = Next::Gone { not_generated: 0 };
        assert_eq!(visitor.ended(&scenario, Ending::Completed), over);
    }

    #[test]
    fn after_her_last_retry_she_is_gone_and_the_rest_is_not_generated() {
        let scenario = small();
        let mut visitor = (0..1000)
            .map(|index| Visitor::new(&scenario, 1, index))
            .find(|visitor| visitor.visits.len() == 3)
            .expect("a session of three requests is common in this graph");
        for _ in 0..scenario.client.retries {
            visitor.attempt(&scenario);
            assert!(matches!(visitor.ended(&scenario, Ending::Dropped), Next::After(_)));
        }
        visitor.attempt(&scenario);
        assert_eq!(visitor.ended(&scenario, Ending::Dropped), Next::Gone { not_generated: 2 });
    }
    #[test]
    fn only_who_keeps_it_waits_as_long_as_the_refusal_asked_and_only_for_that_one() {
        let pause = |keeps| {
            let mut scenario = small();
            scenario.client.obeys_retry_after = keeps;
            scenario.client.pause_after_refusal =
                crate::Distribution::Constant(TimeSpan::from_millis(1));
            let mut visitor = Visitor::new(&scenario, 1, 1);
            visitor.attempt(&scenario);
            visitor.asked_to_wait(TimeSpan::from_secs(3));
            let refused = visitor.ended(&scenario, Ending::Dropped);
            visitor.attempt(&scenario);
            [refused, visitor.ended(&scenario, Ending::Failed)]
        };
        let after = |millis| Next::After(TimeSpan::from_millis(millis));
        assert_eq!(pause(true), [after(3001), after(1)]);
        assert_eq!(pause(false), [after(1), after(1)]);
    }

    #[test]
    fn behind_a_class_with_a_pause_of_its_own_comes_that_one() {
        let mut scenario = small();
        let own = TimeSpan::from_millis(50);
        scenario.classes[0].think = Some(crate::Distribution::Constant(own));
        let visits = (0..200).flat_map(|index| Visitor::new(&scenario, 1, index).visits);
        let (of_class, others): (Vec<_>, Vec<_>) = visits.partition(|visit| visit.class == 0);
        assert!(of_class.iter().all(|visit| visit.think == own));
        assert!(!others.is_empty() && others.iter().all(|visit| visit.think != own));
    }
}
