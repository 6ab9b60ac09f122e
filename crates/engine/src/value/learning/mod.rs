//! The learned worth of requests: counting, computing and publishing.
//!
//! The published values are *unknown* (version 0) until there are enough orders for a ranking by
//! them to be better than a ranking by standing alone. From then on they are *known*. Every
//! [`Learn::every`], at the next event, the weight of older counts is reduced and the index is
//! computed again. No index and no lift changes between two publications by more than
//! [`Learn::max_change_per_hour`] allows. To distort the index, an attacker has to pay for hours,
//! and operators can see it. The bound also holds across a restart and a reload, because
//! the published values are kept with the counts.
//!
//! Gateways in front of one application publish values from the counts of all of them
//! ([`OtherCounts`]). Each keeps its own counts apart, so that none is counted twice.
//!
//! A fixed value is neither corrected by measured revenue nor bounded. When it is removed from the
//! configuration, the first learned value is not bounded either.

mod others;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan, Utility};

use super::Values;
use super::graph::{Counts, Graph, Position, Step, Visit};
use super::lift::{self, Lift};
use super::work::Works;
use crate::request::{Class, ClassId, Signals, Tier};

pub use others::OtherCounts;

/// The settings by which the worth of requests is learned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learn {
    /// The minimum time between two computations of the index.
    pub every: TimeSpan,
    /// The time after which a count weighs half.
    pub half_life: TimeSpan,
    /// The maximum factor by which a published value grows or shrinks within an hour; at least 1.
    pub max_change_per_hour: f64,
    /// The minimum number of orders before any value is published; at least 1. Older orders count
    /// less.
    pub orders: u32,
    /// The number that identifies the kinds of signals in the configuration. When the number
    /// changes, the counts of signals are forgotten.
    pub kinds: u64,
}

impl Default for Learn {
    fn default() -> Self {
        Self {
            every: TimeSpan::from_secs(10),
            half_life: TimeSpan::from_secs(24 * 3600),
            max_change_per_hour: 2.0,
            orders: 20,
            kinds: 0,
        }
    }
}

/// The counts of sessions, work and signals, and the values published from them.
#[derive(Clone, Debug)]
pub struct Learning {
    learn: Learn,
    graph: Graph,
    lift: Lift,
    others: OtherCounts,
    works: Works,
    values: Values,
    /// The time of the last computation of the index.
    last: Time,
    /// Whether anything was counted since the index was last computed.
    changed: bool,
    /// Whether a change of classes or signals requires a publication before the next event.
    at_once: bool,
    /// Whether the value of each class was fixed when the index was last computed.
    fixed: Vec<bool>,
    /// The utilities at an earlier time, up to an hour ago, and that time. They show operators what
    /// has changed since then.
    reference: (Time, Vec<f64>),
}

/// The values learned about one class, for operators.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// The class that the values are about.
    pub class: ClassId,
    /// The number of visits to this class that began a session. Older visits count less.
    pub first_visits: f64,
    /// The number of visits to this class that did not begin a session. Older visits count less.
    pub later_visits: f64,
    /// The probability that a session asks for each class next, by class index.
    pub next: Vec<f64>,
    /// The expected revenue of a session from this class on.
    pub utility: f64,
    /// The utility at a time up to an hour ago; `None` if it was not known then.
    pub before: Option<f64>,
    /// Whether the configuration fixes the value of the class.
    pub fixed: bool,
    /// The published expected revenue per second of work: first that of sessions that come to this
    /// class later, then that of sessions that begin with it. `None` while the revenue is unknown.
    pub index: [Option<f64>; 2],
    /// The mean work of a request, in seconds of a slot; `None` before any request of the class
    /// ran.
    pub work: Option<f64>,
    /// The probability that a request of the class is answered in time once it runs.
    pub completes: f64,
}

const HOUR: f64 = 3600.0;

impl Learning {
    /// Creates an empty state for `classes` classes.
    pub fn new(classes: usize, learn: Learn) -> Self {
        Self {
            learn,
            graph: Graph::new(classes),
            lift: Lift::NONE,
            others: OtherCounts::new(classes),
            works: Works::new(classes),
            values: Values::default(),
            last: Time::ZERO,
            changed: false,
            at_once: false,
            fixed: Vec::new(),
            reference: (Time::ZERO, Vec::new()),
        }
    }

    /// Applies new settings and makes room for more classes. All counts stay, except those of
    /// signals if their kinds have changed. If the classes or the signals have changed, new values
    /// are published before any request is ranked by them.
    pub fn reconfigure(&mut self, classes: usize, learn: Learn) {
        let same = learn.kinds == self.learn.kinds && classes == self.graph.classes();
        if learn.kinds != self.learn.kinds {
            (self.lift, self.others.lift) = (Lift::NONE, Lift::NONE);
            self.values.lift.clear();
        }
        self.learn = learn;
        self.graph.grow(classes);
        self.others.graph.grow(classes);
        self.works.grow(classes);
        self.values.grow(classes);
        if !same {
            // The reference identifies utilities by position, and positions have changed.
            self.reference.1.clear();
            self.at_once = true;
        }
    }

    /// Returns the number that identifies the kinds of signals.
    pub const fn kinds(&self) -> u64 {
        self.learn.kinds
    }

    /// Returns the published values.
    pub const fn values(&self) -> &Values {
        &self.values
    }

    /// Notes that a session was served the page at `position` in time. `new` says whether the page
    /// is the session's first one of its class. `signals` are those that the session showed when it
    /// began.
    pub fn visited(&mut self, position: Position, new: bool, signals: Signals) {
        self.graph.visited(position);
        if new {
            self.graph.reached(position.class);
        }
        if position.first {
            self.lift.began(signals);
        }
        self.changed = true;
    }

    /// Notes that a session asked for a page of class `to` after it was served the page at `from`.
    pub fn asked(&mut self, from: Position, to: ClassId) {
        self.graph.asked(from, to);
        self.changed = true;
    }

    /// Notes that an answer of `class` brought revenue `amount` to a session that made this step.
    pub fn add_revenue(&mut self, class: ClassId, step: &Step, amount: f64) {
        self.graph.add_revenue(class, step.entry, step.seen, amount);
        if !step.ordered && step.entry.is_some() {
            self.lift.ordered(step.signals);
        }
        self.changed = true;
    }

    /// Notes that a request of `class` has run. `took` is the time for which it held its slot.
    /// `in_time` says whether it was answered in time.
    pub fn ran(&mut self, class: ClassId, took: TimeSpan, in_time: bool) {
        self.works.ran(class, took, in_time);
    }

    /// Returns whether it is time to [publish](Learning::publish): something was counted since the
    /// last publication, which is at least [`Learn::every`] ago.
    pub fn is_due(&self, now: Time) -> bool {
        self.at_once || (self.changed && now.since(self.last) >= self.learn.every)
    }

    /// Returns whether values must be published before the next event.
    pub const fn is_due_at_once(&self) -> bool {
        self.at_once
    }

    /// Reduces the weight of older counts, computes the index again and publishes it.
    pub fn publish(&mut self, now: Time, classes: &[Class]) {
        let seconds = now.since(self.last).as_secs_f64();
        let kept = libm::exp2(-seconds / self.learn.half_life.as_secs_f64());
        for (graph, lift) in
            [(&mut self.graph, &mut self.lift), (&mut self.others.graph, &mut self.others.lift)]
        {
            graph.fade(kept);
            lift.fade(kept);
        }
        let (graph, lift) = self.all();
        self.remember_for_an_hour(now, &graph, classes);
        (self.last, self.changed, self.at_once) = (now, false, false);
        if self.values.version == 0 && graph.orders() < f64::from(self.learn.orders.max(1)) {
            return;
        }
        let factor = libm::pow(self.learn.max_change_per_hour.max(1.0), seconds.max(1.0) / HOUR);
        let mut index = self.index(&graph, classes);
        let mut lift: Vec<f64> =
            (0..Signals::MOST).map(Signals::from_index).map(|s| lift.of(s)).collect();
        let fixed: Vec<bool> = classes.iter().map(|class| class.fixed_value.is_some()).collect();
        let is_bounded = |state: usize| {
            let class = state % classes.len();
            !fixed[class] && !self.fixed.get(class).copied().unwrap_or_default()
        };
        bound(&mut index, &self.values.index, factor, is_bounded);
        bound(&mut lift, &self.values.lift, factor, |_| true);
        self.fixed = fixed;
        // Version zero means that nothing is known, so the counter skips it when it wraps around.
        let version = self.values.version.wrapping_add(1).max(1);
        self.values = Values { version, classes: classes.len(), index, lift };
    }

    /// Returns the own counts and those of other gateways together.
    fn all(&self) -> (Graph, Lift) {
        let (mut graph, mut lift) = (self.others.graph.clone(), self.others.lift.clone());
        graph.add(self.graph.clone(), 1.0);
        lift.add(&self.lift, 1.0);
        (graph, lift)
    }

    /// Replaces the counts of other gateways. They have no effect if there are other classes now.
    pub fn set_others(&mut self, others: OtherCounts) {
        if others.graph.classes() == self.graph.classes() {
            self.others = others;
            self.changed = true;
        }
    }

    /// Returns the index of every state, in revenue per second of work. A class about which too
    /// little is known gets the mean of its tier.
    fn index(&self, graph: &Graph, classes: &[Class]) -> Vec<f64> {
        let visit = |class: ClassId| Visit {
            fixed_value: classes[class.index()].fixed_value.map(Utility::get),
            work: self.works.seconds(class),
            completes: self.works.completes(class),
        };
        let mut index = graph.chain(visit).indices();
        let n = classes.len();
        // Measured revenue does not include fixed values. So the prediction that it is compared
        // with must not include them either.
        let predicted = graph.utilities(|_| None);
        let is_fixed = |state: usize| classes[state % n].fixed_value.is_some();
        for (state, index) in index.iter_mut().enumerate().filter(|(state, _)| !is_fixed(*state)) {
            let position = Position { class: ClassId((state % n) as u8), first: state >= n };
            *index *= graph.outcome(position, predicted[state]);
        }
        let is_known = |state: usize| is_fixed(state) || graph.knows(ClassId((state % n) as u8));
        for tier in [Tier::Transaction, Tier::Browsing] {
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

    fn utilities(graph: &Graph, classes: &[Class]) -> Vec<f64> {
        graph.utilities(|class| classes[class.index()].fixed_value.map(Utility::get))
    }

    fn remember_for_an_hour(&mut self, now: Time, graph: &Graph, classes: &[Class]) {
        let empty = self.reference.1.is_empty();
        if empty || now.since(self.reference.0).as_secs_f64() >= HOUR {
            self.reference = (now, Self::utilities(graph, classes));
        }
    }

    /// Returns what was learned about every class, for operators.
    pub fn learned(&self, classes: &[Class]) -> Vec<Learned> {
        let (graph, _) = self.all();
        let utilities = Self::utilities(&graph, classes);
        let of = |class: usize| {
            let id = ClassId(class as u8);
            Learned {
                class: id,
                first_visits: graph.visits(Position::first(id)),
                later_visits: graph.visits(Position::later(id)),
                next: graph.row(Position::later(id)),
                utility: utilities[class],
                before: self.reference.1.get(class).copied(),
                fixed: classes[class].fixed_value.is_some(),
                index: [Position::later(id), Position::first(id)]
                    .map(|position| self.values.index(position)),
                work: self.works.measured(id),
                completes: self.works.completes(id),
            }
        };
        (0..classes.len()).map(of).collect()
    }

    /// Returns three numbers for the sessions that began with these signals: their number, the
    /// number of them that ordered, and their lift. Older sessions count less. The lift is the
    /// ratio of their probability to order to that of all sessions.
    pub fn signals(&self, signals: Signals) -> (f64, f64, f64) {
        let (_, lift) = self.all();
        let (sessions, ordered) = lift.counts(signals);
        (sessions, ordered, lift.of(signals))
    }

    /// Returns the counts of a class and its published index, to be kept across a restart. The
    /// index is `None` if it is not known.
    pub fn counts(&self, class: ClassId) -> (Counts, Option<[f64; 2]>) {
        let [later, first] = [Position::later(class), Position::first(class)];
        let published = self.values.index(later).zip(self.values.index(first));
        (self.graph.counts(class), published.map(<[f64; 2]>::from))
    }

    /// Restores the counts and the published index of a class that [`Learning::counts`] returned
    /// before a restart.
    pub fn restore(&mut self, class: ClassId, counts: &Counts, published: Option<[f64; 2]>) {
        self.graph.restore(class, counts);
        if let Some(index) = published {
            self.values.restore(class, self.graph.classes(), index);
        }
        self.at_once = true;
    }

    /// Returns the number that identifies the kinds of signals ([`Learn::kinds`]), and three
    /// numbers for each combination of signals ([`Signals::index`]). They are the number of
    /// sessions that began with it, the number of those that ordered, and the published lift. Older
    /// sessions count less.
    pub fn signal_counts(&self) -> (u64, Vec<[f64; 3]>) {
        let of = |signals| {
            let (sessions, ordered) = self.lift.counts(signals);
            [sessions, ordered, self.values.lift(signals)]
        };
        (self.learn.kinds, (0..Signals::MOST).map(Signals::from_index).map(of).collect())
    }

    /// Restores the counts of signals that [`Learning::signal_counts`] returned before a restart.
    /// Does nothing if `kinds` differs from the present [`Learn::kinds`].
    pub fn restore_signals(&mut self, kinds: u64, counts: &[[f64; 3]]) {
        if kinds != self.learn.kinds || counts.len() != Signals::MOST {
            return;
        }
        for (signals, [sessions, ordered, _]) in counts.iter().enumerate() {
            self.lift.restore(Signals::from_index(signals), *sessions, *ordered);
        }
        self.values.lift = counts.iter().map(|[.., lift]| lift::possible(*lift)).collect();
    }

    /// Returns whether values are published, so that requests can be ranked by them.
    pub const fn is_known(&self) -> bool {
        self.values.version() > 0
    }

    /// Returns the number of orders over all classes, at other gateways too; older orders count
    /// less.
    pub fn orders(&self) -> f64 {
        self.graph.orders() + self.others.graph.orders()
    }
}

/// Limits every value to within `factor` of its earlier value, up or down. Exempt are values for
/// which `is_bounded` returns false, and values that were zero before.
fn bound(values: &mut [f64], before: &[f64], factor: f64, is_bounded: impl Fn(usize) -> bool) {
    for (number, (value, before)) in values.iter_mut().zip(before).enumerate() {
        if *before > 0.0 && is_bounded(number) {
            *value = value.clamp(before / factor, before * factor);
        }
    }
}
