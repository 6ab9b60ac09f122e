//! Overload controls of other programs (peers), as queueing policies, and one concurrency policy,
//! of bywash's engine.
//!
//! Each file is one peer: its rules in this project's terms, its source, and its simplifications.
//! The peers are not in the engine, because bywash does not offer them. The lab finds them by name,
//! as it finds bywash's own policies. A policy sees only the properties of a request that the real
//! program could see. These are the class of its path, its address, whether it *claims* a session
//! (sends a cookie), and whether that session was issued (an answer carried its cookie). A policy
//! does not use what only this engine knows: the classes that a session was served, and whether a
//! request is a retry.
//!
//! In all peers, a refusal costs nothing, and a departure is seen immediately or never. The
//! function `retry_after` defines whether a refusal has the header field `Retry-After`.

mod codel_lifo;
mod envoy_adaptive;
pub mod haproxy_expert;
pub mod haproxy_ordinary;
mod partitions;
mod session_admission;
mod tree;

use bywash_engine::catalog::{Domain, LimitPolicy, Parameter, Policy};
use bywash_engine::{Class, Tier};
use bywash_units::TimeSpan;

/// The queueing policies of all peers. The strongest policy comes first.
pub static POLICIES: [Policy; 6] = [
    haproxy_expert::POLICY,
    haproxy_ordinary::POLICY,
    codel_lifo::POLICY,
    partitions::POLICY,
    session_admission::POLICY,
    envoy_adaptive::POLICY,
];

/// The concurrency policies of all peers.
pub static LIMITS: [LimitPolicy; 1] = [envoy_adaptive::LIMIT];

/// Returns the queueing policy called `name`, if one of the peers has it; otherwise `None`.
pub fn find(name: &str) -> Option<&'static Policy> {
    POLICIES.iter().find(|policy| policy.name == name)
}

/// Returns the concurrency policy called `name`, if one of the peers has it; otherwise `None`.
pub fn find_limit(name: &str) -> Option<&'static LimitPolicy> {
    LIMITS.iter().find(|policy| policy.name == name)
}

/// The value of the header field `Retry-After` in the refusals of a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RetryAfter {
    /// The engine's estimate, for bywash's own policies.
    Estimated,
    /// The given time, the same for every refusal.
    Fixed(TimeSpan),
    /// No `Retry-After` at all.
    Absent,
}

/// Returns the `Retry-After` of the policy called `name`. Peers follow the configurations in
/// `lab/peers`: ordinary HAProxy configurations set none, and Envoy's filter sends none.
pub(crate) fn retry_after(name: &str) -> RetryAfter {
    match find(name) {
        None => RetryAfter::Estimated,
        Some(peer) if peer.name == haproxy_expert::POLICY.name => {
            RetryAfter::Fixed(haproxy_expert::RETRY_AFTER)
        }
        Some(_) => RetryAfter::Absent,
    }
}

/// The name of the parameter that tells a peer's policy the number of slots of the server behind
/// it.
pub(crate) const SLOTS: &str = "maxconn";

const CAPACITY: Parameter = Parameter {
    name: "capacity",
    domain: Domain::Count { min: 1, max: 1_000_000, default: 100 },
    why: "Places in the queue.",
};

/// Returns the tier that the path of each class suggests.
fn tiers(classes: &[Class]) -> Vec<Tier> {
    classes.iter().map(|class| class.tier).collect()
}
