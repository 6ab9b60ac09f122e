//! Answers `/v1/populations`: the populations of clients, and what they were given.

use bywash_api::{Population, Populations};
use bywash_engine::{self as engine, PopulationKey};

use crate::identity::agents::AgentPopulation;
use crate::identity::appointments::Arrival;
use crate::identity::populations::{Appearance, RANKS_POPULATIONS};
use crate::shared::Shared;

/// The maximum number of populations in an answer.
const LISTED: usize = 100;

/// Returns the populations with the most first requests, and all others together.
pub(super) fn populations(shared: &Shared) -> Populations {
    let settings = shared.settings();
    let config = &settings.config;
    let ranked: Vec<_> = shared.overrides().get().populations().collect();
    let agents = settings.agents.iter().flat_map(|agents| agents.populations(shared.secret));
    let agents: Vec<_> = agents.collect();
    let population = |of: &engine::Population| population(shared, &agents, of, &ranked);
    let mut all = shared.driver.populations();
    let others = population(&all.remove(0));
    let count = all.len();
    all.sort_by(|one, other| other.requested.total_cmp(&one.requested));
    let ranks = config.identify.populations && config.scheduler.name() == RANKS_POPULATIONS;
    let populations = all.iter().take(LISTED).map(population).collect();
    Populations { ranks, count, populations, others }
}

/// `ranked` has the populations whose levels are overridden: the name as a number, the level, and
/// the number of the override.
fn population(
    shared: &Shared,
    agents: &[AgentPopulation<'_>],
    population: &engine::Population,
    ranked: &[(u64, u8, u32)],
) -> Population {
    let key = population.key;
    let ranked = ranked.iter().find(|(name, ..)| key == Some(PopulationKey(*name)));
    let appearance = key.and_then(|key| shared.appearances.of(key));
    let agent = agents.iter().find(|agent| Some(agent.key) == key);
    let level = agent.map_or_else(|| population.level(), |agent| agent.level);
    let shown = |of: fn(&Appearance) -> &str| appearance.as_ref().map(of).map(str::to_owned);
    Population {
        name: key.map_or(String::new(), |PopulationKey(key)| format!("{key:016x}")),
        agent: agent.map(|agent| agent.agent.to_owned()),
        appointment: agent.and_then(|agent| match agent.arrival {
            Arrival::Free => None,
            Arrival::Early => Some("early".to_owned()),
            Arrival::Kept => Some("kept".to_owned()),
        }),
        user_agent: shown(|appearance| &appearance.user_agent),
        language: shown(|appearance| &appearance.language).filter(|text| !text.is_empty()),
        protocol: shown(|appearance| appearance.protocol),
        fields: shown(|appearance| &appearance.fields),
        known: population.is_known(),
        sessions: population.sessions,
        read_on: population.read_on,
        lift: population.lift,
        level: ranked.map_or(level, |(_, level, _)| usize::from(*level)),
        overridden: ranked.map(|(.., number)| *number),
        requests: population.requested,
        started: population.started,
        refused: population.refused,
        service_s: population.seconds,
    }
}
