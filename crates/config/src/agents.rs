//! The resolved configuration of automated agents.

use bywash_agents::PublicKey;

/// An automated agent that signs its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The name of the agent, for operators.
    pub name: String,
    /// The agent's public keys.
    pub keys: Vec<PublicKey>,
    /// The level by which the agent's first requests rank; 0 is the best.
    pub level: usize,
}
