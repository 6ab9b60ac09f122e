//! The walk of one session through the session graph.

use crate::request::{ClassId, ClassSet, Signals};
use crate::value::{Position, Step};

/// The facts that the session graph needs about the walk of one session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// The last page that the session was served; `None` if that is unknown.
    at: Option<Position>,
    /// The classes that the session has asked for since that page.
    requested: ClassSet,
    /// The number of pages of the session that were counted, up to [`MAX_PAGES`].
    pages: u8,
    /// The signals that the session showed when it began.
    signals: Signals,
    /// The class of the session's first page, if it is known.
    entry: Option<ClassId>,
    /// The classes of all counted pages of the session.
    seen: ClassSet,
    /// The classes whose revenue was already counted for the session.
    credited: ClassSet,
    /// Whether the session has made an order.
    ordered: bool,
}

impl Walk {
    pub(super) const UNKNOWN: Self = Self {
        at: None,
        requested: ClassSet::NONE,
        pages: 0,
        signals: Signals::NONE,
        entry: None,
        seen: ClassSet::NONE,
        credited: ClassSet::NONE,
        ordered: false,
    };
    /// The maximum number of pages of one session that count. More pages, as robots request them,
    /// say nothing about visitors.
    const MAX_PAGES: u8 = 100;
    /// The walk of a session whose beginning and position are unknown.
    pub(super) const SOMEWHERE: Self = Self { pages: 1, ..Self::UNKNOWN };

    /// Notes that the session asks for `class`. Returns the session's last page if `class` is the
    /// first request after that page. Returns `None` otherwise, or if the page is unknown.
    pub(super) fn asks(&mut self, class: ClassId) -> Option<Position> {
        let is_first = self.requested.is_empty();
        self.requested = self.requested.with(class);
        self.at.filter(|_| is_first && self.pages < Self::MAX_PAGES)
    }

    /// Notes that the session is served a page, and returns the step that the session graph learns.
    ///
    /// A served page counts as the next page of the walk in three cases:
    /// - it is the session's first page;
    /// - the session has asked for its class since the last counted page;
    /// - it brings revenue, and no page of its class has brought revenue in this session before.
    ///
    /// Other pages, such as a repeated answer, do not move the walk. A request that was refused, or
    /// whose client left before the answer, does not end the walk.
    pub(super) fn steps(&mut self, page: Page) -> Step {
        let Page { class, signals, brings_revenue } = page;
        let first = self.pages == 0;
        if first {
            (self.signals, self.entry) = (signals, Some(class));
        }
        let here = ClassSet::NONE.with(class);
        let orders = brings_revenue && !self.credited.meets(here);
        let goes_on = first || orders || self.requested.meets(here);
        let visit = (goes_on && self.pages < Self::MAX_PAGES).then_some(Position { class, first });
        if goes_on {
            self.pages = self.pages.saturating_add(1);
            (self.at, self.requested) = (Some(Position { class, first }), ClassSet::NONE);
        }
        let new = visit.is_some() && !self.seen.meets(here);
        if new {
            self.seen = self.seen.union(here);
        }
        let brings_revenue = orders && visit.is_some();
        if brings_revenue {
            self.credited = self.credited.union(here);
        }
        let Self { signals, entry, seen, ordered, .. } = *self;
        Step { visit, new, brings_revenue, signals, entry, seen, ordered }
    }

    /// Notes that the session has made an order.
    pub(super) const fn orders(&mut self) {
        self.ordered = true;
    }

    /// Forgets the signals that the session showed when it began.
    pub(super) const fn forget_signals(&mut self) {
        self.signals = Signals::NONE;
    }

    /// Returns the signals that the session showed when it began; `None` if its beginning was not
    /// seen.
    pub(super) fn signals(&self) -> Option<Signals> {
        self.entry.map(|_| self.signals)
    }
}

/// The facts that the walk needs about a page that a session is served.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The page's class.
    pub class: ClassId,
    /// The signals that the request for the page showed.
    pub signals: Signals,
    /// Whether the page brings revenue.
    pub brings_revenue: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: ClassId = ClassId(0);
    const DETAILS: ClassId = ClassId(1);
    const LOGIN: ClassId = ClassId(2);
    const CART: Signals = Signals::NONE.with(0);

    fn page(class: ClassId, signals: Signals) -> Page {
        Page { class, signals, brings_revenue: false }
    }

    #[test]
    fn a_page_is_what_was_asked_for_first_and_counts_once() {
        let mut walk = Walk::UNKNOWN;
        assert_eq!(walk.asks(MAIN), None, "it comes from nowhere");
        let first = Some(Position::first(MAIN));
        assert_eq!(walk.steps(page(MAIN, CART)).visit, first);
        assert_eq!(walk.asks(DETAILS), first);
        assert_eq!(walk.asks(MAIN), None, "that is a second wish after the same page");
        assert_eq!(walk.steps(page(DETAILS, CART)).visit, Some(Position::later(DETAILS)));
        assert_eq!(
            walk.steps(page(DETAILS, CART)).visit,
            None,
            "the same answer twice is one page"
        );
        assert_eq!(
            walk.steps(page(MAIN, CART)).visit,
            None,
            "and what was asked for besides is none"
        );
    }

    #[test]
    fn a_wish_that_is_not_served_holds_nobody_up() {
        let mut walk = Walk::UNKNOWN;
        walk.steps(page(MAIN, CART));
        assert_eq!(walk.asks(DETAILS), Some(Position::first(MAIN)));
        assert_eq!(walk.asks(LOGIN), None, "what she wanted is counted");
        let step = walk.steps(page(LOGIN, CART));
        assert_eq!((step.visit, step.new), (Some(Position::later(LOGIN)), true));
        assert_eq!(walk.asks(MAIN), Some(Position::later(LOGIN)));
    }

    #[test]
    fn an_order_is_a_page_once_whatever_was_fetched_meanwhile() {
        let mut walk = Walk::UNKNOWN;
        walk.steps(page(MAIN, CART));
        walk.asks(LOGIN);
        walk.asks(DETAILS);
        walk.steps(page(DETAILS, CART));
        let order = Page { brings_revenue: true, ..page(LOGIN, CART) };
        let step = walk.steps(order);
        assert_eq!((step.visit, step.new), (Some(Position::later(LOGIN)), true));
        assert!(step.brings_revenue);
        let again = walk.steps(order);
        assert_eq!(
            (again.visit, again.brings_revenue),
            (None, false),
            "the same answer twice is one order"
        );
    }

    #[test]
    fn an_order_that_succeeds_at_the_second_attempt_brings_revenue_once() {
        let mut walk = Walk::UNKNOWN;
        walk.steps(page(MAIN, CART));
        let attempt = |brings_revenue| {
            walk.asks(LOGIN);
            let step = walk.steps(Page { brings_revenue, ..page(LOGIN, CART) });
            (step.new, step.brings_revenue)
        };
        assert_eq!(
            [false, true, true].map(attempt),
            [(true, false), (false, true), (false, false)]
        );
    }

    #[test]
    fn where_no_page_counts_nobody_has_been() {
        let mut walk = Walk::UNKNOWN;
        walk.steps(page(MAIN, CART));
        assert_eq!(walk.steps(page(DETAILS, CART)).seen, ClassSet::NONE.with(MAIN));
        walk.asks(DETAILS);
        assert!(walk.steps(page(DETAILS, CART)).new);
    }

    #[test]
    fn a_session_that_had_begun_elsewhere_does_not_begin_here() {
        let mut walk = Walk::SOMEWHERE;
        let step = walk.steps(page(DETAILS, CART));
        assert_eq!((step.visit, step.entry), (None, None));
        walk.asks(LOGIN);
        let step = walk.steps(page(LOGIN, CART));
        assert_eq!((step.visit, step.entry), (Some(Position::later(LOGIN)), None));
    }

    #[test]
    fn what_counts_is_what_it_showed_when_it_began() {
        let mut walk = Walk::UNKNOWN;
        walk.steps(page(MAIN, CART));
        walk.asks(DETAILS);
        let step = walk.steps(page(DETAILS, Signals::NONE));
        assert_eq!((step.signals, step.entry), (CART, Some(MAIN)));
        assert_eq!(walk.signals(), Some(CART));
    }

    #[test]
    fn of_a_robot_only_the_first_pages_count() {
        let mut walk = Walk::UNKNOWN;
        let mut counted = 0;
        for _ in 0..1000 {
            walk.asks(MAIN);
            counted += u32::from(walk.steps(page(MAIN, CART)).visit.is_some());
        }
        assert_eq!(counted, u32::from(Walk::MAX_PAGES));
        assert!(!walk.steps(Page { brings_revenue: true, ..page(LOGIN, CART) }).brings_revenue);
    }
}
