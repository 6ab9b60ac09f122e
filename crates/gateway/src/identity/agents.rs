//! Automated agents that sign their requests (`[agent.NAME]`, Web Bot Auth).
//!
//! All first requests that an agent signed count as those of one client, from one address. So an
//! agent with many addresses gets no more than an agent with one. An operator sets the level by
//! which it ranks. An agent has a population for each [`Arrival`]. A request without a valid
//! signature is treated as if it had none.
//!
//! **Hostile input.** Anyone can send a signature that names the key of a known agent, and verifying
//! it takes time. Therefore only [`MAX_FORGED`] signatures that turn out to be forged are verified in
//! each second for each of [`SHARES`] shares of all addresses. The requests with further signatures
//! from these addresses are treated as unsigned.

use std::borrow::Cow;
use std::collections::HashMap;

use bywash_agents::{KeyId, Message, PublicKey, Refusal, verify};
use bywash_config::{Agent, Config};
use bywash_engine::{AddressKey, MAX_POPULATION_LEVEL, PopulationKey};
use bywash_message::Request;

use super::appointments::Arrival;
use crate::process::secret::Secret;
use crate::process::sync::atomic::{AtomicU64, Ordering};

/// The maximum number of forged signatures that are verified in a second, for each share of all
/// addresses.
const MAX_FORGED: u32 = 2;
/// The number of shares of all addresses.
const SHARES: usize = 256;

/// The agents of a configuration.
pub(crate) struct Agents {
    known: Vec<Agent>,
    /// The index of the agent, and the key, by the name of the key.
    keys: HashMap<KeyId, (AgentIndex, PublicKey)>,
    /// The forged signatures of each share of all addresses.
    forged: Box<[PerSecond]>,
}

/// The index of an agent in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AgentIndex(usize);

/// A request's signature as an agent, after it was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signature {
    /// The agent has signed the request.
    Valid(AgentIndex),
    /// The signature proves nothing.
    Refused(Refusal),
    /// The signature was not verified, because too many others in this second were forged.
    Unchecked,
}

impl Signature {
    /// Returns the result of the verification; `None` if the signature was not verified.
    pub(crate) fn result(self) -> Option<Result<(), Refusal>> {
        match self {
            Self::Valid(_) => Some(Ok(())),
            Self::Refused(refusal) => Some(Err(refusal)),
            Self::Unchecked => None,
        }
    }

    /// Returns the agent that signed the request, if it is proven.
    pub(crate) fn agent(self) -> Option<AgentIndex> {
        match self {
            Self::Valid(agent) => Some(agent),
            Self::Refused(_) | Self::Unchecked => None,
        }
    }
}

impl Agents {
    /// Returns the agents of a configuration; `None` if it has none, or if they have no effect.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        if config.agents.is_empty() || !config.identify.populations {
            return None;
        }
        let keys = config.agents.iter().enumerate().flat_map(|(index, agent)| {
            let keys = agent.keys.iter().cloned();
            keys.map(move |key| (key.id().to_owned(), (AgentIndex(index), key)))
        });
        let (keys, known) = (keys.collect(), config.agents.clone());
        let forged = (0..SHARES).map(|_| PerSecond::default()).collect();
        Some(Self { known, keys, forged })
    }

    /// Verifies the signature of a request from an address. `secure` says whether its client uses
    /// TLS; `now` is in seconds since 1970. Returns `None` if no agent has signed the request.
    pub(crate) fn signature(
        &self,
        request: &Request,
        address: AddressKey,
        secure: bool,
        now: u64,
    ) -> Option<Signature> {
        request.fields.named(b"signature-input").next()?;
        let forged = &self.forged[address.0 as usize % SHARES];
        if forged.count(now) >= MAX_FORGED {
            return Some(Signature::Unchecked);
        }
        let find = |id: &str| self.keys.get(id).map(|(agent, key)| (*agent, key));
        Some(match verify(&Received { request, secure }, now, find)? {
            Ok(agent) => Signature::Valid(agent),
            Err(refusal) => {
                if let Refusal::Forged | Refusal::NotCovered = refusal {
                    forged.add(now);
                }
                Signature::Refused(refusal)
            }
        })
    }

    /// Returns the name of an agent.
    pub(crate) fn name(&self, agent: AgentIndex) -> &str {
        &self.known[agent.0].name
    }

    /// Returns the client that an agent counts as.
    pub(crate) fn address(&self, secret: Secret, agent: AgentIndex) -> AddressKey {
        AddressKey(hash(secret, b"address of an agent", self.name(agent)))
    }

    /// Returns the population of an agent that comes at this time, relative to its appointment.
    pub(crate) fn population(
        &self,
        secret: Secret,
        agent: AgentIndex,
        arrival: Arrival,
    ) -> PopulationKey {
        population(secret, self.name(agent), arrival)
    }

    /// Returns all populations of agents.
    pub(crate) fn populations(&self, secret: Secret) -> impl Iterator<Item = AgentPopulation<'_>> {
        self.known.iter().flat_map(move |agent| {
            Arrival::ALL.map(|arrival| AgentPopulation {
                key: population(secret, &agent.name, arrival),
                agent: &agent.name,
                arrival,
                level: match arrival {
                    Arrival::Free => agent.level,
                    Arrival::Early => MAX_POPULATION_LEVEL,
                    Arrival::Kept => 0,
                },
            })
        })
    }
}

/// A population of an agent: it has one for each [`Arrival`].
pub(crate) struct AgentPopulation<'a> {
    pub(crate) key: PopulationKey,
    /// The name of the agent.
    pub(crate) agent: &'a str,
    pub(crate) arrival: Arrival,
    pub(crate) level: usize,
}

fn population(secret: Secret, name: &str, arrival: Arrival) -> PopulationKey {
    let kind: &[u8] = match arrival {
        Arrival::Free => b"population of an agent",
        Arrival::Early => b"population of an early agent",
        Arrival::Kept => b"population of an agent with an appointment",
    };
    PopulationKey(hash(secret, kind, name))
}

fn hash(secret: Secret, kind: &[u8], name: &str) -> u64 {
    let mut hasher = secret.parts_hasher();
    hasher.part(kind);
    hasher.part(name.as_bytes());
    hasher.finish()
}

/// A request as the gateway has received it.
struct Received<'r> {
    request: &'r Request,
    /// Whether the client uses TLS.
    secure: bool,
}

impl Message for Received<'_> {
    fn derived(&self, name: &str) -> Option<Cow<'_, str>> {
        let target = &self.request.target;
        match name {
            "@method" => Some(self.request.method.as_str().into()),
            "@scheme" => Some(self.scheme().into()),
            "@authority" => Some(self.authority()?.into()),
            "@path" => Some(target.path().into()),
            "@query" => {
                let query = target.path_and_query().split_once('?').map_or("", |(_, query)| query);
                Some(format!("?{query}").into())
            }
            "@target-uri" => {
                let (scheme, authority) = (self.scheme(), self.authority()?);
                Some(format!("{scheme}://{authority}{}", target.path_and_query()).into())
            }
            _ => None,
        }
    }

    fn fields(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.request.fields.named(name.as_bytes())
    }
}

impl Received<'_> {
    fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    /// Returns the host and port in lower case, without the port that the scheme implies.
    fn authority(&self) -> Option<String> {
        let authority = str::from_utf8(&self.request.authority).ok()?.to_ascii_lowercase();
        let port = if self.secure { ":443" } else { ":80" };
        Some(authority.strip_suffix(port).map_or(authority.clone(), str::to_owned))
    }
}

/// The number of events in the present second.
#[derive(Debug, Default)]
struct PerSecond(AtomicU64);

impl PerSecond {
    /// Returns the number of events in the second `now`.
    fn count(&self, now: u64) -> u32 {
        let stored = self.0.load(Ordering::Relaxed);
        if stored >> 32 == now & 0xffff_ffff { stored as u32 } else { 0 }
    }

    /// Counts an event. Two threads at once may count it as one.
    fn add(&self, now: u64) {
        let count = u64::from(self.count(now).saturating_add(1));
        self.0.store(now << 32 | count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use bywash_message::Limits;

    use super::*;

    fn request(head: &str) -> Request {
        let limits = Limits { target: 8192, fields: 100, bytes: 16_384 };
        Request::parse(head.as_bytes(), &limits).unwrap()
    }

    #[test]
    fn components_are_those_of_the_request_as_it_is_forwarded() {
        let request = request("GET /x/../%61?b=c HTTP/1.1\r\nHost: Shop.Example:443\r\n\r\n");
        let derived = |name: &str, secure| {
            let received = Received { request: &request, secure };
            received.derived(name).map(Cow::into_owned)
        };
        for (name, value) in [
            ("@method", "GET"),
            ("@scheme", "https"),
            ("@authority", "shop.example"),
            ("@path", "/a"),
            ("@query", "?b=c"),
            ("@target-uri", "https://shop.example/a?b=c"),
        ] {
            assert_eq!(derived(name, true).as_deref(), Some(value));
        }
        assert_eq!(derived("@authority", false).as_deref(), Some("shop.example:443"));
        assert_eq!(derived("@status", true), None);
    }

    #[test]
    fn events_are_counted_for_each_second() {
        let events = PerSecond::default();
        (0..3).for_each(|_| events.add(7));
        assert_eq!((events.count(7), events.count(8)), (3, 0));
        events.add(8);
        assert_eq!((events.count(7), events.count(8)), (0, 1));
    }
}
