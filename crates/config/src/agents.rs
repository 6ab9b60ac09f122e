//! The resolved configuration of automated agents.

use std::path::PathBuf;

use bywash_agents::PublicKey;

/// An automated agent that signs its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The name of the agent, for operators.
    pub name: String,
    /// The path of the file with the agent's keys.
    pub file: PathBuf,
    /// The agent's public keys.
    pub keys: Vec<PublicKey>,
    /// The level by which the agent's first requests rank; 0 is the best.
    pub level: usize,
}
