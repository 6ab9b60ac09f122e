//! Resolves `[agent.NAME]`. The keys are read from their file immediately, like those of session
//! tokens.

use std::collections::HashMap;
use std::path::Path;

use bywash_agents::{PublicKey, read_keys};

use super::elephants::{some, values_of};
use crate::agents::Agent;
use crate::code;
use crate::document::{Document, Entry};
use crate::identify::Identify;
use crate::keys;
use crate::report::{Finding, Report};
use crate::source::shown;

/// The maximum size of a file of keys in bytes.
const LARGEST: usize = 64 * 1024;

pub(super) fn agents(
    document: &Document<'_>,
    identify: &Identify,
    report: &mut Report,
) -> Vec<Agent> {
    let entries = some(document, &keys::AGENT, (&code::AGENTS, keys::AGENTS), report);
    if let Some(first) = entries.first()
        && !identify.populations
    {
        let message = "agents have no effect: `identify.populations` is false".to_string();
        let help = "write `populations = true` under [identify]".to_string();
        report.add(Finding::new(&code::AGENTS_UNUSED, first.at.clone(), message).help(help));
    }
    let mut holders = HashMap::new();
    entries.iter().filter_map(|entry| agent(entry, &mut holders, report)).collect()
}

/// Returns an agent; `None` if its keys cannot be used. `holders` has the name of the agent for each
/// key that was read so far.
fn agent(
    entry: &Entry<'_, '_>,
    holders: &mut HashMap<String, String>,
    report: &mut Report,
) -> Option<Agent> {
    let values = values_of(entry, &keys::AGENT, report);
    let level = values.of(&keys::AGENT_LEVEL).whole() as usize;
    let name = entry.name.to_string();
    let path = format!("agent.{}.keys", shown(&name));
    let Some((value, at)) = values.given(&keys::AGENT_KEYS) else {
        if !values.refused(&keys::AGENT_KEYS) {
            let help = format!("write {}", keys::AGENT_KEYS.line());
            let message = format!("`{path}` is not set, so no request can be one of this agent");
            let at = entry.at.clone();
            report.add(Finding::new(&code::AGENT_WITHOUT_KEYS, at, message).help(help));
        }
        return None;
    };
    let file = Path::new(value.text());
    let keys = match public_keys(file) {
        Ok(keys) => keys,
        Err(why) => {
            let message = format!("cannot use `{path}`: {}", shown(&why));
            let help = "store the agent's directory in the file, \
                        https://HOST/.well-known/http-message-signatures-directory";
            report.add(Finding::new(&code::AGENT_KEYS, at, message).help(help.to_string()));
            return None;
        }
    };
    for key in &keys {
        let other = holders.insert(key.id().to_string(), name.clone());
        if let Some(other) = other.filter(|other| *other != name) {
            let message = format!(
                "`{path}` has the key {} of agent {}: the gateway could not tell which agent signs",
                key.id(),
                shown(&other)
            );
            let help = "remove the key from one of the files".to_string();
            report.add(Finding::new(&code::SHARED_AGENT_KEY, at.clone(), message).help(help));
        }
    }
    Some(Agent { name, keys, level })
}

fn public_keys(file: &Path) -> Result<Vec<PublicKey>, String> {
    let text = bywash_files::text(file, LARGEST).map_err(|why| why.to_string())?;
    read_keys(&text).map_err(|why| why.to_string())
}
