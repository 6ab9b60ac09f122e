//! Learning, and publishing what was learned.
//!
//! States of the published values: *unknown* (version 0) until enough orders were seen that a
//! ranking by them is better than one by standing alone; then *known*, for good. Every
//! [`Learn::every`], at the next event, counts fade and the index is computed anew; from one publication to the next no
//! index and no lift changes by more than [`Learn::drift`] per hour allows, so that whoever wants
//! to bend it has to keep paying for hours, in the open.

use alloc::vec::Vec;

use bywash_units::{Span, Time, Utility};

use super::Values;
use super::graph::{Counts, Graph, Place, Visit};
use super::lift::Lift;
use super::work::Works;
use crate::request::{Class, ClassId, Signals, Tier};
use crate::session::Step;

/// How learning goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learn {
    /// How often the index is computed.
    pub every: Span,
    /// After so long what was seen counts half.
    pub half_life: Span,
    /// A published worth at most grows or shrinks by this factor in an hour. At least 1.
    pub drift: f64,
    /// Orders that must have been seen before anything is published; at least one.
    pub orders: u32,
}

impl Default for Learn {
    fn default() -> Self {
        Self {
            every: Span::from_secs(10),
            half_life: Span::from_secs(24 * 3600),
            drift: 2.0,
            orders: 20,
        }
    }
}

/// What is learned, and what of it is published.
#[derive(Clone, Debug)]
pub struct Learning {
    learn: Learn,
    graph: Graph,
    lift: Lift,
    works: Works,
    values: Values,
    /// When the index was last computed.
    last: Time,
    /// Something was counted since.
    news: bool,
    /// Utilities an hour ago, to say what has changed.
    reference: (Time, Vec<f64>),
}

/// What is known of one class, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// Which.
    pub class: ClassId,
    /// Visits that began a session, faded.
    pub first_visits: f64,
    /// Other visits, faded.
    pub later_visits: f64,
    /// Probability of what is asked for next, by class.
    pub next: Vec<f64>,
    /// Expected revenue of a session from here on.
    pub utility: f64,
    /// The same an hour or less ago; `None` if it was not known then.
    pub before: Option<f64>,
    /// Somebody has set it.
    pub pinned: bool,
    /// Expected revenue per second of work, as published: of sessions that come here, and of those
    /// that begin here. `None` while it is not known.
    pub index: [Option<f64>; 2],
    /// Seconds of a slot.
    pub work: f64,
    /// Probability of being answered in time once it runs.
    pub completes: f64,
}

const HOUR: f64 = 3600.0;

impl Learning {
    /// Nothing is known of so many classes.
    pub fn new(classes: usize, learn: Learn) -> Self {
        Self {
            learn,
            graph: Graph::new(classes),
            lift: Lift::NONE,
            works: Works::new(classes),
            values: Values::default(),
            last: Time::ZERO,
            news: false,
            reference: (Time::ZERO, Vec::new()),
        }
    }

    /// Other settings, and perhaps more classes; what was learned stays.
    pub fn reconfigure(&mut self, classes: usize, learn: Learn) {
        self.learn = learn;
        self.graph.grow(classes);
        self.works.grow(classes);
    }

    /// What is published.
    pub const fn values(&self) -> &Values {
        &self.values
    }

    /// A session was served `place` in time, for the first time there if it is `new` to it;
    /// `signals` are those that it began with.
    pub fn visited(&mut self, place: Place, new: bool, signals: Signals) {
        self.graph.visited(place);
        if new {
            self.graph.reached(place.class);
        }
        if place.first {
            self.lift.began(signals);
        }
        self.news = true;
    }

    /// After `from` a session asked for `to`.
    pub fn asked(&mut self, from: Place, to: ClassId) {
        self.graph.asked(from, to);
        self.news = true;
    }

    /// A visit to `class` brought `amount` to a session that has come so far.
    pub fn earned(&mut self, class: ClassId, step: &Step, amount: f64) {
        self.graph.earned(class, step.entry, step.seen, amount);
        if !step.ordered {
            self.lift.ordered(step.signals);
        }
        self.news = true;
    }

    /// A request of `class` held a slot for so long.
    pub fn took(&mut self, class: ClassId, span: Span) {
        self.works.took(class, span);
    }

    /// A request of `class` that ran was answered in time, or not.
    pub fn ended(&mut self, class: ClassId, in_time: bool) {
        self.works.ended(class, in_time);
    }

    /// Whether it is time to [publish](Learning::publish): there is something new, and the last
    /// time is long enough ago.
    pub fn is_due(&self, now: Time) -> bool {
        self.news && now.since(self.last) >= self.learn.every
    }

    /// Computes the index anew.
    pub fn publish(&mut self, now: Time, classes: &[Class]) {
        let seconds = now.since(self.last).as_secs_f64();
        self.graph.fade(libm::exp2(-seconds / self.learn.half_life.as_secs_f64()));
        self.lift.fade(libm::exp2(-seconds / self.learn.half_life.as_secs_f64()));
        self.remember_for_an_hour(now, classes);
        (self.last, self.news) = (now, false);
        if self.values.version == 0 && self.graph.orders() < f64::from(self.learn.orders.max(1)) {
            return;
        }
        let factor = libm::pow(self.learn.drift.max(1.0), seconds.max(1.0) / HOUR);
        let mut index = self.index(classes);
        let mut lift: Vec<f64> =
            (0..Signals::MOST).map(Signals::from_index).map(|s| self.lift.of(s)).collect();
        if self.values.classes == classes.len() {
            bound(&mut index, &self.values.index, factor);
            bound(&mut lift, &self.values.lift, factor);
        }
        // Zero means that nothing is known, so the count leaves it out when it comes round.
        let version = self.values.version.wrapping_add(1).max(1);
        self.values = Values { version, classes: classes.len(), index, lift };
    }

    /// The index of every state. A class of which too little is known takes the mean of its tier.
    fn index(&self, classes: &[Class]) -> Vec<f64> {
        let visit = |class: ClassId| Visit {
            pinned: classes[class.index()].pinned.map(Utility::get),
            work: self.works.seconds(class),
            completes: self.works.completes(class),
        };
        let mut index = self.graph.chain(visit).indices();
        let n = classes.len();
        let utilities = self.utilities(classes);
        for (state, index) in index.iter_mut().enumerate() {
            let place = Place { class: ClassId((state % n) as u8), first: state >= n };
            *index *= self.graph.outcome(place, utilities[state]);
        }
        let is_known = |state: usize| {
            let class = &classes[state % n];
            class.pinned.is_some() || self.graph.knows(ClassId((state % n) as u8))
        };
        for tier in [Tier::Transact, Tier::Browse] {
            let of_tier = |state: &usize| classes[state % n].tier == tier;
            let known = || (0..2 * n).filter(of_tier).filter(|state| is_known(*state));
            let count = known().count().max(1);
            let mean = known().map(|state| index[state]).sum::<f64>() / count as f64;
            for state in (0..2 * n).filter(of_tier).filter(|state| !is_known(*state)) {
                index[state] = mean;
            }
        }
        index
    }

    fn utilities(&self, classes: &[Class]) -> Vec<f64> {
        self.graph.utilities(|class| classes[class.index()].pinned.map(Utility::get))
    }

    fn remember_for_an_hour(&mut self, now: Time, classes: &[Class]) {
        let empty = self.reference.1.is_empty();
        if empty || now.since(self.reference.0).as_secs_f64() >= HOUR {
            self.reference = (now, self.utilities(classes));
        }
    }

    /// Everything that was learned, by class.
    pub fn learned(&self, classes: &[Class]) -> Vec<Learned> {
        let utilities = self.utilities(classes);
        let of = |class: usize| {
            let id = ClassId(class as u8);
            Learned {
                class: id,
                first_visits: self.graph.visits(Place::first(id)),
                later_visits: self.graph.visits(Place::later(id)),
                next: self.graph.row(Place::later(id)),
                utility: utilities[class],
                before: self.reference.1.get(class).copied(),
                pinned: classes[class].pinned.is_some(),
                index: [Place::later(id), Place::first(id)].map(|place| self.values.index(place)),
                work: self.works.seconds(id),
                completes: self.works.completes(id),
            }
        };
        (0..classes.len()).map(of).collect()
    }

    /// What was counted of sessions that began with these signals: how many, how many of them
    /// ordered (both faded), and how many times likelier than all that is.
    pub fn signals(&self, signals: Signals) -> (f64, f64, f64) {
        let (sessions, ordered) = self.lift.counts(signals);
        (sessions, ordered, self.lift.of(signals))
    }

    /// What was counted, by class, to be kept over a restart.
    pub const fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Counts a class as it was counted before a restart.
    pub fn restore(&mut self, class: ClassId, counts: &Counts) {
        self.graph.restore(class, counts);
        self.news = true;
    }

    /// Counts sessions that began with these signals as they were counted before a restart.
    pub fn restore_signals(&mut self, signals: Signals, sessions: f64, ordered: f64) {
        self.lift.restore(signals, sessions, ordered);
    }

    /// Whether enough is known to rank by it.
    pub const fn is_known(&self) -> bool {
        self.values.version() > 0
    }

    /// Orders that were seen, faded.
    pub fn orders(&self) -> f64 {
        self.graph.orders()
    }
}

/// Keeps every value within `factor` of what it was. What was nothing may become anything.
fn bound(values: &mut [f64], before: &[f64], factor: f64) {
    for (value, before) in values.iter_mut().zip(before).filter(|(_, before)| **before > 0.0) {
        *value = value.clamp(before / factor, before * factor);
    }
}
