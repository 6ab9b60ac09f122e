//! HAProxy as it is commonly configured. Requests for the paths of transactions go first. Within
//! each group, the oldest request goes first.
//!
//! The rules are based on HAProxy 2.6.12, its manual and tests with it. They are the rules of
//! `lab/peers/haproxy.cfg`, which `lab peers` runs live. `set-priority-class` is 1 for transaction
//! paths and 10 for others. No request is refused on arrival, and `timeout queue` is 20 s.
//! `abortonclose` corresponds to the scenario's visible closes. Every request for a transaction's
//! path counts as a transaction.

use bywash_engine::catalog::{Domain, Parameter, Policy};
use bywash_engine::queue::QueueView;
use bywash_engine::{RequestId, Tier};
use bywash_units::TimeSpan;

use super::tiers;
use super::tree::{Backend, Rules};

/// The priority class of transactions. Lower classes go first.
pub const TRANSACTION: u16 = 1;
/// The priority class of all other requests.
pub const BROWSING: u16 = 10;

/// The policy of HAProxy in a common configuration.
pub(super) const POLICY: Policy = Policy {
    name: "haproxy-ordinary",
    source: "HAProxy 2.6",
    about: "Transaction paths first, oldest first, and a queue timeout.",
    parameters: &[Parameter {
        name: "timeout",
        domain: Domain::TimeSpan {
            min: TimeSpan::from_millis(1),
            max: TimeSpan::from_secs(3600),
            default: TimeSpan::from_secs(20),
        },
        why: "How long a request may wait (`timeout queue`).",
    }],
    build: |settings, classes| {
        Box::new(Backend::new(Ordinary { tiers: tiers(classes) }, settings.span("timeout")))
    },
};

#[derive(Debug)]
struct Ordinary {
    tiers: Vec<Tier>,
}

impl Rules for Ordinary {
    fn queue(&mut self, moment: &QueueView<'_>, id: RequestId) -> Option<(u16, i64)> {
        let class = match self.tiers[moment.waiting(id).class.index()] {
            Tier::Transaction => TRANSACTION,
            Tier::Browsing => BROWSING,
        };
        Some((class, 0))
    }
}
