//! The keys of `[agent.NAME]`: an automated agent that signs its requests.

use bywash_engine::MAX_POPULATION_LEVEL;

use crate::key::{Key, Section};
use crate::kind::ValueKind;

pub(crate) static AGENT: Section = Section {
    name: "agent",
    about: "An automated agent that signs its requests (Web Bot Auth, RFC 9421), one table each: \
            [agent.NAME]. The gateway treats all first requests that it signed as those of one \
            client, whatever their addresses.",
    keys: &[AGENT_KEYS, AGENT_LEVEL],
};

/// The maximum number of agents.
pub(crate) const AGENTS: usize = 64;

pub(crate) const AGENT_KEYS: Key = Key::optional(
    "keys",
    ValueKind::Path,
    "/etc/bywash/archive.json",
    "The file with the public keys of the agent: its directory, \
     https://HOST/.well-known/http-message-signatures-directory, at most 64 KiB. Only Ed25519 keys \
     count. The gateway reads the file at the start and at each reload.",
);
pub(crate) const AGENT_LEVEL: Key = Key::new(
    "level",
    ValueKind::Whole { min: 0, max: MAX_POPULATION_LEVEL as u64 },
    "1",
    "The level of the agent among first requests of sessions: 0 is that of readers in known \
     populations, 1 the best one of unknown populations, 7 the last. It has effect while requests \
     wait, with the policy session-first.",
);
