//! How far a session has walked, as far as the graph of sessions learns from it.

use crate::request::{ClassId, ClassSet, Signals};
use crate::value::Place;

/// Where a session is in the graph of sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// The page that it was served last; `None` if that is not known (any more).
    at: Option<Place>,
    /// What it has asked for since.
    wishes: ClassSet,
    /// Pages that were counted.
    pages: u8,
    /// What it showed when it began.
    signals: Signals,
    /// What it began with, if that is known.
    entry: Option<ClassId>,
    /// Where it has been.
    seen: ClassSet,
    /// It has made an order.
    ordered: bool,
}

impl Walk {
    pub(super) const UNKNOWN: Self = Self {
        at: None,
        wishes: ClassSet::NONE,
        pages: 0,
        signals: Signals::NONE,
        entry: None,
        seen: ClassSet::NONE,
        ordered: false,
    };
    /// Of one session so many pages count: what a robot does after that tells nothing about
    /// visitors.
    const PAGES: u8 = 100;
    /// It has begun, but nobody knows where it was.
    pub(super) const SOMEWHERE: Self = Self { pages: 1, ..Self::UNKNOWN };

    /// It asks for `class`: from which page it comes to that, if this is the first thing that it
    /// asks for after it.
    pub(super) fn asks(&mut self, class: ClassId) -> Option<Place> {
        let is_first = self.wishes.is_empty();
        self.wishes = self.wishes.with(class);
        self.at.filter(|_| is_first && self.pages < Self::PAGES)
    }

    /// It is served a page.
    ///
    /// The next page is what it is served first of all that it asked for since the one before: a
    /// wish that was refused, or an answer that nobody waited for, holds nobody up. What it is
    /// served besides, or twice, counts as no page; but an order does, whatever was fetched beside
    /// it.
    pub(super) fn steps(&mut self, page: Page) -> Step {
        let Page { class, signals, earns } = page;
        let first = self.pages == 0;
        if first {
            (self.signals, self.entry) = (signals, Some(class));
        }
        let here = ClassSet::NONE.with(class);
        let orders = earns && !self.seen.meets(here);
        let goes_on = first || orders || self.wishes.meets(here);
        let visit = (goes_on && self.pages < Self::PAGES).then_some(Place { class, first });
        if goes_on {
            self.pages = self.pages.saturating_add(1);
            (self.at, self.wishes) = (Some(Place { class, first }), ClassSet::NONE);
        }
        let new = visit.is_some() && !self.seen.meets(here);
        if new {
            self.seen = self.seen.union(here);
        }
        let Self { signals, entry, seen, ordered, .. } = *self;
        Step { visit, new, signals, entry, seen, ordered }
    }

    /// It has made an order.
    pub(super) const fn orders(&mut self) {
        self.ordered = true;
    }

    /// As if it had shown nothing.
    pub(super) const fn forget_signals(&mut self) {
        self.signals = Signals::NONE;
    }

    /// What it showed when it began, if it was seen to begin.
    pub(super) fn signals(&self) -> Option<Signals> {
        self.entry.map(|_| self.signals)
    }
}

/// What a session is served.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Its class.
    pub class: ClassId,
    /// What the request showed.
    pub signals: Signals,
    /// It brings something.
    pub earns: bool,
}

/// What the graph learns when a session is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The page, if it counts.
    pub visit: Option<Place>,
    /// It counts, and the session has not been there before.
    pub new: bool,
    /// What the session showed when it began.
    pub signals: Signals,
    /// What it began with, if that is known.
    pub entry: Option<ClassId>,
    /// Where it has been with pages that count, here included.
    pub seen: ClassSet,
    /// It has made an order before.
    pub ordered: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: ClassId = ClassId(0);
    const DETAILS: ClassId = ClassId(1);
    const LOGIN: ClassId = ClassId(2);
    const CART: Signals = Signals::NONE.with(0);

    fn page(class: ClassId, signals: Signals) -> Page {
        Page { class, signals, earns: false }
    }

    #[test]
    fn a_page_is_what_was_asked_for_first_and_counts_once() {
        let mut walk = Walk::UNKNOWN;
        assert_eq!(walk.asks(MAIN), None, "it comes from nowhere");
        let first = Some(Place::first(MAIN));
        assert_eq!(walk.steps(page(MAIN, CART)).visit, first);
        assert_eq!(walk.asks(DETAILS), first);
        assert_eq!(walk.asks(MAIN), None, "that is a second wish after the same page");
        assert_eq!(walk.steps(page(DETAILS, CART)).visit, Some(Place::later(DETAILS)));
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
        assert_eq!(walk.asks(DETAILS), Some(Place::first(MAIN)));
        assert_eq!(walk.asks(LOGIN), None, "what she wanted is counted");
        let step = walk.steps(page(LOGIN, CART));
        assert_eq!((step.visit, step.new), (Some(Place::later(LOGIN)), true));
        assert_eq!(walk.asks(MAIN), Some(Place::later(LOGIN)));
    }

    #[test]
    fn an_order_is_a_page_once_whatever_was_fetched_meanwhile() {
        let mut walk = Walk::UNKNOWN;
        walk.steps(page(MAIN, CART));
        walk.asks(LOGIN);
        walk.asks(DETAILS);
        walk.steps(page(DETAILS, CART));
        let order = Page { earns: true, ..page(LOGIN, CART) };
        let step = walk.steps(order);
        assert_eq!((step.visit, step.new), (Some(Place::later(LOGIN)), true));
        assert_eq!(walk.steps(order).visit, None, "the same answer twice is one order");
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
        assert_eq!((step.visit, step.entry), (Some(Place::later(LOGIN)), None));
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
        assert_eq!(counted, u32::from(Walk::PAGES));
    }
}
