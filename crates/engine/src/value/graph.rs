//! The session graph, as sessions have walked it: who is served what, and what they ask for next.
//!
//! Source: POLICIES §1, «Learning»; the customer behaviour graph of Menascé. A state is a class, and
//! whether it is what a session begins with: a first visit to a page has a future of its own.
//!
//! Counted is what a visitor *asked for* after a page that she was served in time, once for each
//! such page. So a wish that we refuse still counts as a wish, and a page that nobody waited for
//! any more counts as no page: overload cannot lower the worth of browsing by losing it, which
//! would feed itself. Counts fade with a half-life.

use alloc::vec;
use alloc::vec::Vec;

use super::gittins::Chain;
use crate::request::{ClassId, ClassSet};

/// A place of a session in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The class that it was served.
    pub class: ClassId,
    /// Whether that was the first of the session.
    pub first: bool,
}

/// What was counted of one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Later visits, and what was asked for after them.
    pub later: (f64, Vec<f64>),
    /// The same of first visits.
    pub first: (f64, Vec<f64>),
    /// Successes that earned.
    pub orders: f64,
    /// What they earned.
    pub earned: f64,
    /// What sessions earned that began here.
    pub begun_earned: f64,
    /// Sessions that came here, and what they earned from then on.
    pub reached: (f64, f64),
}

/// Fading counts of visits, of what followed them and of what they earned.
#[derive(Clone, Debug)]
pub struct Graph {
    classes: usize,
    /// By state: later visits first, then first visits.
    visits: Vec<f64>,
    /// By state and class: how often it was asked for next.
    next: Vec<f64>,
    /// By class: successes that earned, and what they earned.
    orders: Vec<f64>,
    earned: Vec<f64>,
    /// By class that a session began with: what it earned later.
    begun_earned: Vec<f64>,
    /// By class: sessions that came there, however often, and what they earned from then on.
    reached: Vec<f64>,
    reached_earned: Vec<f64>,
}

/// A session that comes to a class is believed to earn what the graph says; so many orders, made or
/// missing, weigh as much.
const BELIEF: f64 = 5.0;
/// A first visit is taken to lead where later visits to the class lead, until so many tell.
const BORROWED: f64 = 20.0;
/// With fewer visits than this nothing is said about a state.
const FEW: f64 = 20.0;
/// No count that was kept is believed to be more.
const MOST_COUNT: f64 = 1e12;
/// No state is left less often than this: a graph without an exit has no finite worth.
const MOST_STAY: f64 = 0.999;

impl Graph {
    /// Nothing has been seen of so many classes.
    pub fn new(classes: usize) -> Self {
        Self {
            classes,
            visits: vec![0.0; 2 * classes],
            next: vec![0.0; 2 * classes * classes],
            orders: vec![0.0; classes],
            earned: vec![0.0; classes],
            begun_earned: vec![0.0; classes],
            reached: vec![0.0; classes],
            reached_earned: vec![0.0; classes],
        }
    }

    /// Room for more classes; what was counted stays.
    pub fn grow(&mut self, classes: usize) {
        let mut grown = Self::new(classes.max(self.classes));
        for state in 0..2 * self.classes {
            let (class, first) = (state % self.classes, state >= self.classes);
            let moved = class + if first { grown.classes } else { 0 };
            grown.visits[moved] = self.visits[state];
            for to in 0..self.classes {
                grown.next[moved * grown.classes + to] = self.next[state * self.classes + to];
            }
        }
        grown.orders[..self.classes].copy_from_slice(&self.orders);
        grown.earned[..self.classes].copy_from_slice(&self.earned);
        grown.begun_earned[..self.classes].copy_from_slice(&self.begun_earned);
        grown.reached[..self.classes].copy_from_slice(&self.reached);
        grown.reached_earned[..self.classes].copy_from_slice(&self.reached_earned);
        *self = grown;
    }

    /// How many classes there are.
    pub const fn classes(&self) -> usize {
        self.classes
    }

    const fn state(&self, place: Place) -> usize {
        place.class.index() + if place.first { self.classes } else { 0 }
    }

    /// A session was served there in time.
    pub fn visited(&mut self, place: Place) {
        let state = self.state(place);
        self.visits[state] += 1.0;
    }

    /// A session came to `class` for the first time.
    pub fn reached(&mut self, class: ClassId) {
        self.reached[class.index()] += 1.0;
    }

    /// After `from` it asked for `to`.
    pub fn asked(&mut self, from: Place, to: ClassId) {
        let state = self.state(from);
        self.next[state * self.classes + to.index()] += 1.0;
    }

    /// A visit to `class` brought so much to a session that had begun with `entry`, if that is
    /// known, and had been to the classes `seen`.
    pub fn earned(&mut self, class: ClassId, entry: Option<ClassId>, seen: ClassSet, amount: f64) {
        self.orders[class.index()] += 1.0;
        self.earned[class.index()] += amount;
        if let Some(entry) = entry {
            self.begun_earned[entry.index()] += amount;
        }
        for class in seen.iter() {
            self.reached_earned[class.index()] += amount;
        }
    }

    /// How many times what the graph says (`utility`) sessions have earned that came to a place.
    ///
    /// The graph forgets where a session comes from, so it credits whoever walks to the till with
    /// what others buy there, again with every round of a robot that never leaves. What sessions
    /// have earned in the end cannot be borrowed, and a session counts once: a crowd that walks far
    /// and buys nothing is worth little, wherever it stands.
    pub fn outcome(&self, place: Place, utility: f64) -> f64 {
        let orders = self.orders();
        if utility <= 0.0 || orders <= 0.0 {
            return 1.0;
        }
        let order = self.earned.iter().sum::<f64>() / orders;
        let class = place.class.index();
        let (came, earned) = if place.first {
            (self.visits[class + self.classes], self.begun_earned[class])
        } else {
            (self.reached[class], self.reached_earned[class])
        };
        // Orders that there were, or that there should have been: each of them is evidence.
        let evidence = earned.max(came * utility) / order;
        let weight = evidence / (evidence + BELIEF);
        1.0 + weight * (earned / came.max(1.0) / utility - 1.0)
    }

    /// What was counted of a class, to be kept over a restart; `next` is by class.
    pub fn counts(&self, class: ClassId) -> Counts {
        let of = |first| {
            let state = self.state(Place { class, first });
            let next = self.next[state * self.classes..][..self.classes].to_vec();
            (self.visits[state], next)
        };
        Counts {
            later: of(false),
            first: of(true),
            orders: self.orders[class.index()],
            earned: self.earned[class.index()],
            begun_earned: self.begun_earned[class.index()],
            reached: (self.reached[class.index()], self.reached_earned[class.index()]),
        }
    }

    /// Counts a class as [`Graph::counts`] gave it, with `next` in the numbers that classes have
    /// now. What is no count counts nothing.
    pub fn restore(&mut self, class: ClassId, counts: &Counts) {
        let count = |value: f64| if value.is_finite() { value.clamp(0.0, MOST_COUNT) } else { 0.0 };
        for (first, (visits, next)) in [(false, &counts.later), (true, &counts.first)] {
            let state = self.state(Place { class, first });
            self.visits[state] = count(*visits);
            let row = &mut self.next[state * self.classes..][..self.classes];
            for (here, there) in row.iter_mut().zip(next) {
                *here = count(*there);
            }
        }
        self.orders[class.index()] = count(counts.orders);
        self.earned[class.index()] = count(counts.earned);
        self.begun_earned[class.index()] = count(counts.begun_earned);
        self.reached[class.index()] = count(counts.reached.0);
        self.reached_earned[class.index()] = count(counts.reached.1);
    }

    /// Everything counts only so much any more.
    pub fn fade(&mut self, factor: f64) {
        let counts = [
            &mut self.visits,
            &mut self.next,
            &mut self.orders,
            &mut self.earned,
            &mut self.begun_earned,
            &mut self.reached,
            &mut self.reached_earned,
        ];
        for count in counts.into_iter().flatten() {
            *count *= factor;
        }
    }

    /// Orders seen, faded.
    pub fn orders(&self) -> f64 {
        self.orders.iter().sum()
    }

    /// Visits to a state, faded.
    pub fn visits(&self, place: Place) -> f64 {
        self.visits[self.state(place)]
    }

    /// Whether enough was seen to say something about a class that a session has come to.
    pub fn knows(&self, class: ClassId) -> bool {
        let both = self.visits[class.index()] + self.visits[class.index() + self.classes];
        both >= FEW
    }

    /// Probability that `to` is asked for after a visit to `from`.
    pub fn probability(&self, from: Place, to: ClassId) -> f64 {
        let n = self.classes;
        let later = from.class.index();
        let row = |state: usize| (self.next[state * n + to.index()], self.visits[state]);
        let ((late, late_visits), (early, early_visits)) = (row(later), row(later + n));
        let shared = (late + early) / (late_visits + early_visits).max(1.0);
        let (seen, visits) = if from.first { (early, early_visits) } else { (late, late_visits) };
        (seen + BORROWED * shared) / (visits + BORROWED)
    }

    /// Probabilities of everything that may follow `from`; their sum is below one.
    pub fn row(&self, from: Place) -> Vec<f64> {
        let to = |class: usize| self.probability(from, ClassId(class as u8));
        let mut row: Vec<f64> = (0..self.classes).map(to).collect();
        let sum: f64 = row.iter().sum();
        if sum > MOST_STAY {
            for probability in &mut row {
                *probability *= MOST_STAY / sum;
            }
        }
        row
    }

    /// What a visit to a class brings on average, all in all.
    pub fn revenue(&self, class: ClassId) -> f64 {
        let visits = self.visits[class.index()] + self.visits[class.index() + self.classes];
        self.earned[class.index()] / visits.max(1.0)
    }

    /// The graph as a chain of states: later visits first, then first visits. `visit` says what a
    /// visit to a class brings beyond what was earned (`Some`: pinned, it ends there), what
    /// it costs in seconds, and how likely it comes to its end.
    pub fn chain(&self, visit: impl Fn(ClassId) -> Visit) -> Chain {
        let mut chain = Chain::new(2 * self.classes);
        for state in 0..2 * self.classes {
            let class = ClassId((state % self.classes) as u8);
            let Visit { pinned, work, completes } = visit(class);
            let revenue = pinned.unwrap_or_else(|| self.revenue(class));
            chain.visit(state, completes * revenue, work);
            if pinned.is_none() {
                let place = Place { class, first: state >= self.classes };
                for (to, probability) in self.row(place).into_iter().enumerate() {
                    chain.leads(state, to, completes * probability);
                }
            }
        }
        chain
    }

    /// Expected revenue of a session from each class on, if everything it asks for is served:
    /// h = r + P·h. Later visits first, then first visits.
    pub fn utilities(&self, pinned: impl Fn(ClassId) -> Option<f64>) -> Vec<f64> {
        let visit = |class| Visit { pinned: pinned(class), work: 0.0, completes: 1.0 };
        self.chain(visit).totals()
    }
}

/// What a visit to a class is for the index.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// What it is worth because somebody said so.
    pub pinned: Option<f64>,
    /// Seconds of a slot.
    pub work: f64,
    /// Probability that it is answered in time once it runs.
    pub completes: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: ClassId = ClassId(0);
    const BUY: ClassId = ClassId(1);

    fn later(class: ClassId) -> Place {
        Place { class, first: false }
    }

    fn walked() -> Graph {
        let mut graph = Graph::new(2);
        for i in 0..1000 {
            graph.visited(later(MAIN));
            if i % 10 == 0 {
                graph.asked(later(MAIN), BUY);
                graph.visited(later(BUY));
                graph.earned(BUY, Some(MAIN), ClassSet::NONE.with(MAIN), 5.0);
            } else if i % 2 == 0 {
                graph.asked(later(MAIN), MAIN);
            }
        }
        graph
    }

    #[test]
    fn probabilities_are_shares_of_visits() {
        let graph = walked();
        assert!((graph.probability(later(MAIN), BUY) - 0.1).abs() < 1e-9);
        assert!((graph.probability(later(MAIN), MAIN) - 0.4).abs() < 1e-9);
        assert!((graph.revenue(BUY) - 5.0).abs() < 1e-9);
        // 0.1·5 / (1 − 0.4): as often as she comes back she may buy again.
        let utilities = graph.utilities(|_| None);
        assert!((utilities[0] - 0.5 / 0.6).abs() < 1e-6, "{utilities:?}");
    }

    #[test]
    fn a_first_visit_borrows_from_later_ones_until_it_is_known_itself() {
        let mut graph = walked();
        let first = Place { class: MAIN, first: true };
        assert!((graph.probability(first, BUY) - 0.1).abs() < 1e-9);
        for _ in 0..10_000 {
            graph.visited(first);
            graph.asked(first, BUY);
        }
        assert!(graph.probability(first, BUY) > 0.99);
        assert!(graph.probability(later(MAIN), BUY) < 0.2);
    }

    #[test]
    fn counts_fade_and_probabilities_do_not() {
        let mut graph = walked();
        let before = graph.orders();
        graph.fade(0.5);
        assert!((graph.orders() - before / 2.0).abs() < 1e-9);
        assert!((graph.probability(later(MAIN), BUY) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn a_graph_with_more_classes_has_counted_the_same() {
        let mut graph = walked();
        graph.visited(Place { class: BUY, first: true });
        graph.grow(5);
        assert!((graph.probability(later(MAIN), BUY) - 0.1).abs() < 1e-9);
        assert!((graph.visits(Place { class: BUY, first: true }) - 1.0).abs() < 1e-9);
        assert!((graph.revenue(BUY) - 500.0 / 101.0).abs() < 1e-9);
        assert!(!graph.knows(ClassId(4)) && graph.knows(MAIN));
    }

    #[test]
    fn who_walks_far_and_buys_nothing_is_worth_little_at_the_door() {
        let mut graph = walked();
        let robot = Place { class: BUY, first: true };
        for _ in 0..1000 {
            graph.visited(robot);
        }
        let said = graph.utilities(|_| None)[2 + BUY.index()];
        assert!(said > 0.4, "the graph credits them with what others buy: {said}");
        assert!(graph.outcome(Place { class: BUY, first: true }, said) < 0.1);
    }

    #[test]
    fn visitors_are_worth_what_they_buy_whoever_shares_a_page_with_them() {
        let mut graph = walked();
        // Two visits in five follow another of the same session.
        (0..600).for_each(|_| graph.reached(MAIN));
        let fair = graph.utilities(|_| None)[0];
        assert!((graph.outcome(later(MAIN), fair) - 1.0).abs() < 0.3);
        for _ in 0..100_000 {
            graph.visited(Place { class: BUY, first: true });
            graph.asked(Place { class: BUY, first: true }, BUY);
            graph.visited(later(BUY));
            graph.reached(BUY);
        }
        let said = graph.utilities(|_| None)[0];
        assert!(said < fair / 100.0, "the graph divides it among all: {said} after {fair}");
        let corrected = said * graph.outcome(later(MAIN), said);
        assert!((corrected / fair - 1.0).abs() < 0.3, "{corrected} after {fair}");
    }

    #[test]
    fn a_pinned_worth_replaces_what_was_learned() {
        let graph = walked();
        let utilities = graph.utilities(|class| (class == BUY).then_some(50.0));
        assert!((utilities[0] - 0.1 * 50.0 / 0.6).abs() < 1e-4, "{utilities:?}");
    }
}
