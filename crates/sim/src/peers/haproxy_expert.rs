//! HAProxy in expert hands: by path and session cookie, new visitors refused first, newest first.
//!
//! Source: HAProxy 2.6.12, its manual and probes, and made as strong as its language allows. Class 1
//! is a transaction path with a session cookie, class 5 any other request with one, class 10 whoever
//! has none (a transaction without a session is nobody's). From a depth of `queue()` on those without
//! a cookie are refused, from a greater one browsing with it, from a greater one yet everything: the
//! arriving request each time, as HAProxy cannot push out one that waits. Once the queue is deeper
//! than `lifo_from`, all but the first class get an offset that puts the newest first inside their
//! class. That is decided when a request is queued: those that came while the queue was short stay in
//! their order, behind all that came later. `abortonclose` is what the scenario's visible closes are.
//!
//! It believes a cookie. Whoever sends one, ever served or not, is a session in progress.

use bywash_engine::catalog::{Domain, Parameter, Policy, Settings};
use bywash_engine::queue::Moment;
use bywash_engine::{Class, RequestId, Tier};
use bywash_units::Span;

use super::tree::{Backend, Rules, newest_first};
use super::{TOTAL, tiers};

/// HAProxy as somebody sets it up who knows all of it.
pub(super) const POLICY: Policy = Policy {
    name: "haproxy-expert",
    source: "HAProxy 2.6",
    about: "Classes by path and cookie, new visitors refused first, newest first when deep.",
    parameters: &[
        Parameter {
            name: "new",
            domain: Domain::Count { min: 0, max: 1_000_000, default: 50 },
            why: "Waiting requests from which on those without a session cookie are refused.",
        },
        Parameter {
            name: "browse",
            domain: Domain::Count { min: 0, max: 1_000_000, default: 100 },
            why: "Waiting requests from which on browsing with a cookie is refused.",
        },
        TOTAL,
        Parameter {
            name: "lifo_from",
            domain: Domain::Count { min: 0, max: 1_000_000, default: 5 },
            why: "Waiting requests from which on the newest of a class goes first.",
        },
        Parameter {
            name: "timeout",
            domain: Domain::Span {
                min: Span::from_millis(1),
                max: Span::from_secs(3600),
                default: Span::from_secs(10),
            },
            why: "How long a request may wait: short, as the newest go first anyway.",
        },
    ],
    build: |settings, classes| {
        Box::new(Backend::new(Expert::new(settings, classes), settings.span("timeout")))
    },
};

/// The class of transactions with a cookie: they stay oldest first.
const BUYING: u16 = 1;

#[derive(Debug)]
struct Expert {
    tiers: Vec<Tier>,
    new: usize,
    browse: usize,
    total: usize,
    lifo_from: usize,
    /// Whether the queue was deep when a request was last queued.
    deep: bool,
}

impl Expert {
    fn new(settings: &Settings, classes: &[Class]) -> Self {
        let total = settings.count("total") as usize;
        Self {
            tiers: tiers(classes),
            new: total.min(settings.count("new") as usize),
            browse: total.min(settings.count("browse") as usize),
            total,
            lifo_from: settings.count("lifo_from") as usize,
            deep: false,
        }
    }

    /// Its priority class, and the depth from which on it is refused.
    fn class_and_bound(&self, moment: &Moment<'_>, id: RequestId) -> (u16, usize) {
        let waiting = moment.waiting(id);
        match (waiting.claims_session, self.tiers[waiting.class.index()]) {
            (true, Tier::Transact) => (BUYING, self.total),
            (true, Tier::Browse) => (5, self.browse),
            (false, Tier::Transact | Tier::Browse) => (10, self.new),
        }
    }
}

impl Rules for Expert {
    fn queue(&mut self, moment: &Moment<'_>, id: RequestId) -> Option<(u16, i64)> {
        let depth = moment.length();
        let (class, bound) = self.class_and_bound(moment, id);
        if depth >= bound {
            return None;
        }
        self.deep = depth >= self.lifo_from;
        let newest = self.deep && class != BUYING;
        Some((class, if newest { newest_first(moment.now) } else { 0 }))
    }

    fn newest_first(&self) -> bool {
        self.deep
    }
}
