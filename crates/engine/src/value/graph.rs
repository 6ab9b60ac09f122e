//! The session graph: how often sessions were served each class, and which class they asked for
//! next.
//!
//! Source: `policies.md` §1, «Learning», and the customer behaviour graph of Menascé. A state of
//! the graph is a class, together with the fact whether the page was the first of its session.
//! First visits are separate states because sessions continue differently after them.
//!
//! The graph counts what a visitor *asked for* after a page that was served in time, once for each
//! such page. So a refused request still counts as asked for, and a page that was served after its
//! client had left does not count. Otherwise overload would lower the worth of browsing by losing
//! requests, and the lower worth would lose more of them. Older counts have less weight
//! (exponential decay with a half-life).

use alloc::vec;
use alloc::vec::Vec;

use super::gittins::Chain;
use crate::request::{ClassId, ClassSet, Signals};

/// A state of the graph: where a session stands after a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The class that the session was served.
    pub class: ClassId,
    /// Whether the page was the first of the session.
    pub first: bool,
}

/// The facts that the session graph learns from one page that a session was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The position of the page in the graph. `None` if the page does not count: for example, if
    /// the session has not requested its class since the last page that counted.
    pub visit: Option<Position>,
    /// Whether the page counts and is the first of its class in the session.
    pub new: bool,
    /// Whether the page counts, brings revenue, and is the first of its class that does so in the
    /// session.
    pub brings_revenue: bool,
    /// The signals that the session showed when it began.
    pub signals: Signals,
    /// The class of the session's first page, if it is known.
    pub entry: Option<ClassId>,
    /// The classes of all pages of the session that count, this one included.
    pub seen: ClassSet,
    /// Whether the session had made an order before this page.
    pub ordered: bool,
}

/// The counts of one class, in the form in which they are kept across a restart. Older observations
/// count less.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// The number of later visits (those that did not begin a session), and the number of times
    /// that each class was requested next, by index.
    pub later: (f64, Vec<f64>),
    /// The number of first visits (those that began a session), and the number of times that each
    /// class was requested next, by index.
    pub first: (f64, Vec<f64>),
    /// The number of successful answers that brought revenue.
    pub orders: f64,
    /// The total revenue of the answers in `orders`.
    pub revenue: f64,
    /// The total revenue of sessions whose first page was of this class.
    pub begun_revenue: f64,
    /// The number of sessions that came to this class, and their total revenue from then on.
    pub reached: (f64, f64),
}

/// The session graph: counts of visits, of the next class asked for, and of revenue. Older
/// observations count less.
#[derive(Clone, Debug)]
pub struct Graph {
    classes: usize,
    /// The number of visits, by state. The later visits of all classes come first, then the first
    /// visits.
    visits: Vec<f64>,
    /// The number of times that a session asked for a class next: a matrix by state and class, row
    /// by row.
    next: Vec<f64>,
    /// The number of successful answers that brought revenue, by class of the answer.
    orders: Vec<f64>,
    /// The total revenue of the answers in `orders`, by class of the answer.
    revenue: Vec<f64>,
    /// The total revenue of sessions, by the class of their first page.
    begun_revenue: Vec<f64>,
    /// The number of sessions that came to a class, by that class. A session counts once in each
    /// class.
    reached: Vec<f64>,
    /// The total revenue of the sessions in `reached` after they came to the class, by that class.
    reached_revenue: Vec<f64>,
}

/// The weight of the graph's prediction, in orders. Measured revenue weighs as much as the
/// prediction when its evidence is this many orders, made or expected.
const PRIOR_ORDERS: f64 = 5.0;
/// The number of visits that are added to those of a state before its probabilities are estimated.
/// The added visits have the probabilities over first and later visits together.
const POOLED_VISITS: f64 = 20.0;
/// The minimum number of visits, first and later ones together, from which on a class counts as
/// known.
const FEW: f64 = 20.0;
/// The upper bound of any restored count.
const MOST_COUNT: f64 = 1e12;
/// The maximum probability that a session continues after a page. A graph that no session leaves
/// has no finite worth.
const MOST_STAY: f64 = 0.999;

impl Graph {
    /// Creates an empty graph for `classes` classes.
    pub fn new(classes: usize) -> Self {
        Self {
            classes,
            visits: vec![0.0; 2 * classes],
            next: vec![0.0; 2 * classes * classes],
            orders: vec![0.0; classes],
            revenue: vec![0.0; classes],
            begun_revenue: vec![0.0; classes],
            reached: vec![0.0; classes],
            reached_revenue: vec![0.0; classes],
        }
    }

    /// Makes room for at least `classes` classes. The counts stay, and the graph never shrinks.
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
        grown.revenue[..self.classes].copy_from_slice(&self.revenue);
        grown.begun_revenue[..self.classes].copy_from_slice(&self.begun_revenue);
        grown.reached[..self.classes].copy_from_slice(&self.reached);
        grown.reached_revenue[..self.classes].copy_from_slice(&self.reached_revenue);
        *self = grown;
    }

    /// Returns the number of classes that the graph has room for.
    pub const fn classes(&self) -> usize {
        self.classes
    }

    const fn state(&self, position: Position) -> usize {
        position.class.index() + if position.first { self.classes } else { 0 }
    }

    /// Notes that a session was served a page at this position in time.
    pub fn visited(&mut self, position: Position) {
        let state = self.state(position);
        self.visits[state] += 1.0;
    }

    /// Notes that a session came to `class` for the first time in the session.
    pub fn reached(&mut self, class: ClassId) {
        self.reached[class.index()] += 1.0;
    }

    /// Notes that a session asked for a page of class `to` after it was served the page at `from`.
    pub fn asked(&mut self, from: Position, to: ClassId) {
        let state = self.state(from);
        self.next[state * self.classes + to.index()] += 1.0;
    }

    /// Notes that an answer of `class` brought revenue `amount` to a session. `entry` is the class
    /// of the session's first page, if it is known. `seen` are the classes that the session has
    /// visited.
    pub fn add_revenue(
        &mut self,
        class: ClassId,
        entry: Option<ClassId>,
        seen: ClassSet,
        amount: f64,
    ) {
        self.orders[class.index()] += 1.0;
        self.revenue[class.index()] += amount;
        if let Some(entry) = entry {
            self.begun_revenue[entry.index()] += amount;
        }
        for class in seen.iter() {
            self.reached_revenue[class.index()] += amount;
        }
    }

    /// Returns the measured revenue of sessions that came to a position, as a multiple of the
    /// graph's prediction `utility`. With little evidence the result is near 1; without any order
    /// or prediction it is 1.
    ///
    /// The graph does not know where a session comes from. So it credits every session that reaches
    /// the checkout with what others buy there, and a robot that never leaves is credited again in
    /// every round. Measured revenue belongs to the session that brought it, and each session
    /// counts once. So sessions that visit many pages and buy nothing are worth little, wherever
    /// they are.
    pub fn outcome(&self, position: Position, utility: f64) -> f64 {
        let orders = self.orders();
        if utility <= 0.0 || orders <= 0.0 {
            return 1.0;
        }
        let order = self.revenue.iter().sum::<f64>() / orders;
        let class = position.class.index();
        let (came, revenue) = if position.first {
            (self.visits[class + self.classes], self.begun_revenue[class])
        } else {
            (self.reached[class], self.reached_revenue[class])
        };
        // The evidence is the larger of two numbers: the orders that were made, and the orders that
        // should have been made.
        let evidence = revenue.max(came * utility) / order;
        let weight = evidence / (evidence + PRIOR_ORDERS);
        1.0 + weight * (revenue / came.max(1.0) / utility - 1.0)
    }

    /// Returns the counts of a class, to be kept across a restart. Counts of the next class are in
    /// the order of class indices.
    pub fn counts(&self, class: ClassId) -> Counts {
        let of = |first| {
            let state = self.state(Position { class, first });
            let next = self.next[state * self.classes..][..self.classes].to_vec();
            (self.visits[state], next)
        };
        Counts {
            later: of(false),
            first: of(true),
            orders: self.orders[class.index()],
            revenue: self.revenue[class.index()],
            begun_revenue: self.begun_revenue[class.index()],
            reached: (self.reached[class.index()], self.reached_revenue[class.index()]),
        }
    }

    /// Restores the counts of a class that [`Graph::counts`] returned. The caller has translated
    /// class indices to the present ones. Invalid counts become zero.
    pub fn restore(&mut self, class: ClassId, counts: &Counts) {
        let count = |value: f64| if value.is_finite() { value.clamp(0.0, MOST_COUNT) } else { 0.0 };
        for (first, (visits, next)) in [(false, &counts.later), (true, &counts.first)] {
            let state = self.state(Position { class, first });
            self.visits[state] = count(*visits);
            let row = &mut self.next[state * self.classes..][..self.classes];
            for (here, there) in row.iter_mut().zip(next) {
                *here = count(*there);
            }
        }
        self.orders[class.index()] = count(counts.orders);
        self.revenue[class.index()] = count(counts.revenue);
        self.begun_revenue[class.index()] = count(counts.begun_revenue);
        self.reached[class.index()] = count(counts.reached.0);
        self.reached_revenue[class.index()] = count(counts.reached.1);
    }

    /// Multiplies all counts by `factor`, so that older observations weigh less.
    pub fn fade(&mut self, factor: f64) {
        for count in self.all().into_iter().flatten() {
            *count *= factor;
        }
    }

    /// Adds the counts of another graph with the same classes, each multiplied by `factor`.
    pub fn add(&mut self, mut other: Self, factor: f64) {
        debug_assert_eq!(self.classes, other.classes, "the counts are those of other classes");
        let theirs = other.all().into_iter().flatten();
        for (count, their) in self.all().into_iter().flatten().zip(theirs) {
            *count += *their * factor;
        }
    }

    fn all(&mut self) -> [&mut Vec<f64>; 7] {
        [
            &mut self.visits,
            &mut self.next,
            &mut self.orders,
            &mut self.revenue,
            &mut self.begun_revenue,
            &mut self.reached,
            &mut self.reached_revenue,
        ]
    }

    /// Returns the number of orders over all classes; older orders count less.
    pub fn orders(&self) -> f64 {
        self.orders.iter().sum()
    }

    /// Returns the number of visits to a position; older visits count less.
    pub fn visits(&self, position: Position) -> f64 {
        self.visits[self.state(position)]
    }

    /// Returns whether the class has enough visits (`FEW`) for a statement about it.
    pub fn knows(&self, class: ClassId) -> bool {
        let both = self.visits[class.index()] + self.visits[class.index() + self.classes];
        both >= FEW
    }

    /// Returns the estimated probability that a session asks for the class `to` next, after a visit
    /// to the position `from`. With few visits to `from`, the result is near the probability over
    /// first and later visits together.
    pub fn probability(&self, from: Position, to: ClassId) -> f64 {
        let n = self.classes;
        let later = from.class.index();
        let row = |state: usize| (self.next[state * n + to.index()], self.visits[state]);
        let ((late, late_visits), (early, early_visits)) = (row(later), row(later + n));
        let shared = (late + early) / (late_visits + early_visits).max(1.0);
        let (seen, visits) = if from.first { (early, early_visits) } else { (late, late_visits) };
        (seen + POOLED_VISITS * shared) / (visits + POOLED_VISITS)
    }

    /// Returns the probability of each class to be requested next after the position `from`, by
    /// class index. Their sum is below one, because the session may end.
    pub fn row(&self, from: Position) -> Vec<f64> {
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

    /// Returns the average revenue of a visit to a class; zero without visits.
    pub fn revenue(&self, class: ClassId) -> f64 {
        let visits = self.visits[class.index()] + self.visits[class.index() + self.classes];
        self.revenue[class.index()] / visits.max(1.0)
    }

    /// Returns the graph as a Markov chain with revenue and work. Its states are the later visits
    /// of all classes, then their first visits. `visit` returns the properties of a visit to a
    /// class. A fixed value replaces the learned revenue of a class and ends the session there.
    pub fn chain(&self, visit: impl Fn(ClassId) -> Visit) -> Chain {
        let mut chain = Chain::new(2 * self.classes);
        for state in 0..2 * self.classes {
            let class = ClassId((state % self.classes) as u8);
            let Visit { fixed_value, work, completes } = visit(class);
            let revenue = fixed_value.unwrap_or_else(|| self.revenue(class));
            chain.visit(state, completes * revenue, work);
            if fixed_value.is_none() {
                let position = Position { class, first: state >= self.classes };
                for (to, probability) in self.row(position).into_iter().enumerate() {
                    chain.leads(state, to, completes * probability);
                }
            }
        }
        chain
    }

    /// Returns the expected revenue of a session from each state on, if everything that it asks for
    /// is served: h = r + P·h. The later visits of all classes come first, then their first visits.
    pub fn utilities(&self, fixed_value: impl Fn(ClassId) -> Option<f64>) -> Vec<f64> {
        let visit = |class| Visit { fixed_value: fixed_value(class), work: 0.0, completes: 1.0 };
        self.chain(visit).totals()
    }
}

/// The properties of a visit to a class that the computation of the index needs.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// The configured revenue of a session from this class on, if there is one.
    pub fixed_value: Option<f64>,
    /// The mean work of a visit, in seconds of a slot.
    pub work: f64,
    /// The probability that a request of the class is answered in time once it runs.
    pub completes: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: ClassId = ClassId(0);
    const BUY: ClassId = ClassId(1);

    fn later(class: ClassId) -> Position {
        Position { class, first: false }
    }

    fn walked() -> Graph {
        let mut graph = Graph::new(2);
        for i in 0..1000 {
            graph.visited(later(MAIN));
            if i % 10 == 0 {
                graph.asked(later(MAIN), BUY);
                graph.visited(later(BUY));
                graph.add_revenue(BUY, Some(MAIN), ClassSet::NONE.with(MAIN), 5.0);
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
        // The expected revenue is 0.1·5 / (1 − 0.4): a visitor who returns to the main page may buy
        // again.
        let utilities = graph.utilities(|_| None);
        assert!((utilities[0] - 0.5 / 0.6).abs() < 1e-6, "{utilities:?}");
    }

    #[test]
    fn a_first_visit_borrows_from_later_ones_until_it_is_known_itself() {
        let mut graph = walked();
        let first = Position { class: MAIN, first: true };
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
        graph.visited(Position { class: BUY, first: true });
        graph.grow(5);
        assert!((graph.probability(later(MAIN), BUY) - 0.1).abs() < 1e-9);
        assert!((graph.visits(Position { class: BUY, first: true }) - 1.0).abs() < 1e-9);
        assert!((graph.revenue(BUY) - 500.0 / 101.0).abs() < 1e-9);
        assert!(!graph.knows(ClassId(4)) && graph.knows(MAIN));
    }

    #[test]
    fn who_walks_far_and_buys_nothing_is_worth_little_at_the_door() {
        let mut graph = walked();
        let robot = Position { class: BUY, first: true };
        for _ in 0..1000 {
            graph.visited(robot);
        }
        let predicted = graph.utilities(|_| None)[2 + BUY.index()];
        assert!(predicted > 0.4, "the graph credits them with what others buy: {predicted}");
        assert!(graph.outcome(Position { class: BUY, first: true }, predicted) < 0.1);
    }

    #[test]
    fn visitors_are_worth_what_they_buy_whoever_shares_a_page_with_them() {
        let mut graph = walked();
        // 1,000 visits belong to 600 sessions, so 400 visits are not the first of their class in a
        // session.
        (0..600).for_each(|_| graph.reached(MAIN));
        let fair = graph.utilities(|_| None)[0];
        assert!((graph.outcome(later(MAIN), fair) - 1.0).abs() < 0.3);
        for _ in 0..100_000 {
            graph.visited(Position { class: BUY, first: true });
            graph.asked(Position { class: BUY, first: true }, BUY);
            graph.visited(later(BUY));
            graph.reached(BUY);
        }
        let predicted = graph.utilities(|_| None)[0];
        assert!(
            predicted < fair / 100.0,
            "the graph divides it among all: {predicted} after {fair}"
        );
        let corrected = predicted * graph.outcome(later(MAIN), predicted);
        assert!((corrected / fair - 1.0).abs() < 0.3, "{corrected} after {fair}");
    }

    #[test]
    fn a_fixed_worth_replaces_what_was_learned() {
        let graph = walked();
        let utilities = graph.utilities(|class| (class == BUY).then_some(50.0));
        assert!((utilities[0] - 0.1 * 50.0 / 0.6).abs() < 1e-4, "{utilities:?}");
    }
}
