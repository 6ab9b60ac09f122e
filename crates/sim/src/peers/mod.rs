//! What others do about overload, as orders (and one limit) of the very engine that runs ours.
//!
//! One file is one peer: its rule in our words, where it is from, and what is simplified. They are
//! here and not in the engine because the product does not ship them; the lab finds them by name as
//! it finds the product's own. An order sees of a request what the real program could see: its path's
//! class, its address, whether it *claims* a session (sends a cookie) and whether that session was
//! issued (an answer bore its cookie). It makes no use of what only our engine knows (what a session
//! was served, what is a repetition).
//!
//! Common to all: refusing costs nothing, and a departure is seen at once or never. Whether a refusal
//! says when to come again, [`come_again`] knows.

mod codel_lifo;
mod envoy_adaptive;
pub mod haproxy_expert;
pub mod haproxy_ordinary;
mod partitions;
mod session_admission;
mod tree;

use bywash_engine::catalog::{Domain, LimitPolicy, Parameter, Policy};
use bywash_engine::{Class, Tier};
use bywash_units::Span;

/// Every peer there is, the one to beat first.
pub static POLICIES: [Policy; 6] = [
    haproxy_expert::POLICY,
    haproxy_ordinary::POLICY,
    codel_lifo::POLICY,
    partitions::POLICY,
    session_admission::POLICY,
    envoy_adaptive::POLICY,
];

/// Their limits.
pub static LIMITS: [LimitPolicy; 1] = [envoy_adaptive::LIMIT];

/// The peer of this name.
pub fn find(name: &str) -> Option<&'static Policy> {
    POLICIES.iter().find(|policy| policy.name == name)
}

/// The limit of this name.
pub fn find_limit(name: &str) -> Option<&'static LimitPolicy> {
    LIMITS.iter().find(|policy| policy.name == name)
}

/// When a refused client is told to come again (`Retry-After`).
#[derive(Clone, Copy, Debug)]
pub(crate) enum ComeAgain {
    /// As the engine estimates it: a policy of the product.
    Estimated,
    /// Always after so long.
    After(Span),
    /// That is not said.
    Unsaid,
}

/// What the policy of this name says. Of peers the configurations in `lab/peers` are meant: nobody writes
/// such a line in ordinary hands, and Envoy's filter sends none.
pub(crate) fn come_again(name: &str) -> ComeAgain {
    match find(name) {
        None => ComeAgain::Estimated,
        Some(peer) if peer.name == haproxy_expert::POLICY.name => {
            ComeAgain::After(haproxy_expert::RETRY_AFTER)
        }
        Some(_) => ComeAgain::Unsaid,
    }
}

/// The parameter by which a peer is told the limit of the server behind it.
pub(crate) const SLOTS: &str = "maxconn";

const CAPACITY: Parameter = Parameter {
    name: "capacity",
    domain: Domain::Count { min: 1, max: 1_000_000, default: 100 },
    why: "Places in the queue.",
};

/// What a path says of a request: the tier of its class.
fn tiers(classes: &[Class]) -> Vec<Tier> {
    classes.iter().map(|class| class.tier).collect()
}
