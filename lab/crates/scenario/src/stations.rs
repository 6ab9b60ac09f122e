//! The TOML form of a scenario's stations: servers in addition to the application's workers, for
//! classes that name them.

use serde::Deserialize;

use crate::error::ScenarioError;
use crate::lines::Lines;
use crate::problems::Problems;
use crate::servers::Station;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSpec {
    name: String,
    workers: u32,
}

pub(crate) fn resolve(raw: &[RawSpec], lines: &Lines<'_>, problems: &mut Problems) -> Vec<Station> {
    const STATION: &str = "servers.station";
    let mut stations: Vec<Station> = Vec::new();
    for (i, RawSpec { name, workers }) in raw.iter().enumerate() {
        let line = lines.nth(STATION, i);
        let is_new = stations.iter().all(|other| other.name != *name);
        problems.at(line).require(is_new, format!("station `{name}` is defined twice"));
        let many = (1..=100_000).contains(workers);
        problems.at(line).require(many, format!("workers of station `{name}` must be 1 to 100000"));
        stations.push(Station { name: name.clone(), workers: *workers });
    }
    stations
}

/// Returns the index of the station called `name`, which serves the class `class`; `None` if `name`
/// is `None`. Fails if there is no such station.
pub(crate) fn of_class(
    stations: &[Station],
    name: Option<&str>,
    class: &str,
) -> Result<Option<usize>, ScenarioError> {
    let Some(name) = name else { return Ok(None) };
    let found = stations.iter().position(|station| station.name == name);
    let no = || format!("class `{class}` names station `{name}`, which does not exist");
    found.map(Some).ok_or_else(|| ScenarioError::Invalid(no()))
}
