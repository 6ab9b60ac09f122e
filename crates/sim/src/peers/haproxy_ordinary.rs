//! HAProxy in ordinary hands: transactions first by path, everything oldest first.
//!
//! Source: HAProxy 2.6.12, its manual and probes: `set-priority-class` 1 for transaction paths and 10
//! for others; browsing is refused from a depth of `queue()` on, everything from a greater one (the
//! arriving request, never one that waits); `timeout queue 20s`; `abortonclose`, which is what the
//! scenario's visible closes are. It believes the path: a transaction is whoever asks for one.

use bywash_engine::catalog::{Domain, Parameter, Policy, Settings};
use bywash_engine::queue::Moment;
use bywash_engine::{Class, RequestId, Tier};
use bywash_units::Span;

use super::tree::{Backend, Rules};
use super::{TOTAL, tiers};

/// HAProxy as most set it up.
pub(super) const POLICY: Policy = Policy {
    name: "haproxy-ordinary",
    source: "HAProxy 2.6",
    about: "Transaction paths first, oldest first, a bound on the queue, a queue timeout.",
    parameters: &[
        Parameter {
            name: "browse",
            domain: Domain::Count { min: 1, max: 1_000_000, default: 100 },
            why: "Waiting requests from which on browsing is refused.",
        },
        TOTAL,
        Parameter {
            name: "timeout",
            domain: Domain::Span {
                min: Span::from_millis(1),
                max: Span::from_secs(3600),
                default: Span::from_secs(20),
            },
            why: "How long a request may wait (`timeout queue`).",
        },
    ],
    build: |settings, classes| {
        Box::new(Backend::new(Ordinary::new(settings, classes), settings.span("timeout")))
    },
};

#[derive(Debug)]
struct Ordinary {
    tiers: Vec<Tier>,
    browse: usize,
    total: usize,
}

impl Ordinary {
    fn new(settings: &Settings, classes: &[Class]) -> Self {
        Self {
            tiers: tiers(classes),
            browse: settings.count("browse") as usize,
            total: settings.count("total") as usize,
        }
    }
}

impl Rules for Ordinary {
    fn queue(&mut self, moment: &Moment<'_>, id: RequestId) -> Option<(u16, i64)> {
        let (class, bound) = match self.tiers[moment.waiting(id).class.index()] {
            Tier::Transact => (1, self.total),
            Tier::Browse => (10, self.browse.min(self.total)),
        };
        (moment.length() < bound).then_some((class, 0))
    }
}
