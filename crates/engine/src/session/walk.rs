//! How far a session has walked, as far as the graph of sessions learns from it.

use crate::request::{ClassId, ClassSet, Signals};
use crate::value::Place;

/// Where a session is in the graph of sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// The page that it was served last; `None` if that is not known (any more).
    at: Option<Place>,
    /// What it has asked for since.
    asked: Option<ClassId>,
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
        asked: None,
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
        if self.asked.is_some() {
            return None;
        }
        self.asked = Some(class);
        self.at.filter(|_| self.pages < Self::PAGES)
    }

    /// It is served `class`, with a request that showed these signals.
    ///
    /// A page counts when it is what the session asked for first after the one before. What it
    /// asks for besides, or is served twice, is no page.
    pub(super) fn steps(&mut self, class: ClassId, signals: Signals) -> Step {
        let first = self.pages == 0;
        if first {
            (self.signals, self.entry) = (signals, Some(class));
        }
        let goes_on = first || self.asked == Some(class);
        let visit = (goes_on && self.pages < Self::PAGES).then_some(Place { class, first });
        if goes_on {
            self.pages = self.pages.saturating_add(1);
            (self.at, self.asked) = (Some(Place { class, first }), None);
        }
        let here = ClassSet::NONE.with(class);
        let new = visit.is_some() && !self.seen.meets(here);
        self.seen = self.seen.union(here);
        let Self { signals, entry, seen, ordered, .. } = *self;
        Step { visit, new, signals, entry, seen, ordered }
    }

    /// It has made an order.
    pub(super) const fn orders(&mut self) {
        self.ordered = true;
    }

    /// What it showed when it began, if it was seen to begin.
    pub(super) fn signals(&self) -> Option<Signals> {
        self.entry.map(|_| self.signals)
    }
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
    /// Where it has been, here included.
    pub seen: ClassSet,
    /// It has made an order before.
    pub ordered: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: ClassId = ClassId(0);
    const DETAILS: ClassId = ClassId(1);
    const CART: Signals = Signals::NONE.with(0);

    #[test]
    fn a_page_is_what_was_asked_for_first_and_counts_once() {
        let mut walk = Walk::UNKNOWN;
        assert_eq!(walk.asks(MAIN), None, "it comes from nowhere");
        let first = Some(Place::first(MAIN));
        assert_eq!(walk.steps(MAIN, CART).visit, first);
        assert_eq!(walk.asks(DETAILS), first);
        assert_eq!(walk.asks(MAIN), None, "that is a second wish after the same page");
        assert_eq!(walk.steps(MAIN, CART).visit, None, "and no page");
        assert_eq!(walk.steps(DETAILS, CART).visit, Some(Place::later(DETAILS)));
        assert_eq!(walk.steps(DETAILS, CART).visit, None, "the same answer twice is one page");
    }

    #[test]
    fn what_counts_is_what_it_showed_when_it_began() {
        let mut walk = Walk::UNKNOWN;
        walk.steps(MAIN, CART);
        walk.asks(DETAILS);
        let step = walk.steps(DETAILS, Signals::NONE);
        assert_eq!((step.signals, step.entry), (CART, Some(MAIN)));
        assert_eq!(walk.signals(), Some(CART));
    }

    #[test]
    fn of_a_robot_only_the_first_pages_count() {
        let mut walk = Walk::UNKNOWN;
        let mut counted = 0;
        for _ in 0..1000 {
            walk.asks(MAIN);
            counted += u32::from(walk.steps(MAIN, CART).visit.is_some());
        }
        assert_eq!(counted, u32::from(Walk::PAGES));
    }
}
