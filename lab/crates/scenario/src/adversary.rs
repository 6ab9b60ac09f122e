//! Adversaries: hostile populations that arrive in addition to the visitors, and whose requests are
//! of no use to the site.
//!
//! In a scenario file, each population is an `[[adversary]]`:
//!
//! ```toml
//! [[adversary]]
//! name = "spoofers"
//! rho = 2.0               # work that they ask for, as a fraction of the servers' capacity
//! path = ["confirm"]      # classes that each of them requests, one after the other
//! session = "forged"      # session that their requests claim: "none", "own" or "forged"
//! addresses = 4           # number of client addresses
//! patience = { shape = "none" }
//! burst = 10              # arrivals at the same time
//! holds = "5m"            # time that a client keeps a slot beyond the service, by slowness
//! rate = 700              # bytes per second that it sends or reads meanwhile
//! shapes = 1              # populations of their own that a gateway can tell apart (`client.shapes`)
//! mimics = 0.5            # part of them that are in visitors' populations instead
//! mimics_evenly = true    # whether each of these is as likely, or as likely as for a visitor
//! from = "10m"
//! until = "20m"
//! ```
//!
//! The arrivals are a Poisson process (of bursts). Each adversary requests the classes of `path` in
//! order, each as soon as the previous request is answered. An adversary that is refused or loses
//! patience does not retry, because the next one arrives anyway. The results of adversaries are
//! counted separately ([`Hostile`]) and never among the visitors.

use std::collections::HashMap;

use bywash_units::{Rate, TimeSpan};
use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::distribution::Distribution;
use crate::error::ScenarioError;
use crate::lines::Lines;
use crate::problems::Problems;
use crate::text;

/// A population of hostile clients.
#[derive(Clone, Debug)]
pub struct Adversary {
    /// The name of the population.
    pub name: String,
    /// The work that the population asks for while it attacks, as a multiple of the servers'
    /// capacity.
    pub rho: f64,
    /// The indices of the classes that each member requests, in order.
    pub path: Vec<usize>,
    /// The session that the members' requests claim.
    pub session: Claims,
    /// The number of client addresses that the members share.
    pub addresses: u32,
    /// The time that a member waits for each answer.
    pub patience: Distribution,
    /// The number of members that arrive at the same time.
    pub burst: u32,
    /// The time for which a member keeps its slot in addition to the service time, because it sends
    /// or reads slowly.
    pub holds: TimeSpan,
    /// The rate at which a member sends or reads during `holds`, in bytes per second.
    pub rate: u64,
    /// The number of populations that the members are in, besides those of visitors.
    pub shapes: u32,
    /// The probability that a member is in a visitors' population instead.
    pub mimics: f64,
    /// Whether each visitors' population is equally likely for such a member. Otherwise it is as
    /// likely as for a visitor.
    pub mimics_evenly: bool,
    /// Whether the targets of such a member's first requests are those of visitors. Otherwise each
    /// target is equally likely.
    pub mimics_targets: bool,
    /// The time from which members arrive, counted from the start of the run.
    pub from: TimeSpan,
    /// The time after which no member arrives, counted from the start of the run.
    pub until: TimeSpan,
}

/// The session that a hostile request claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Claims {
    /// No session.
    #[default]
    None,
    /// The session that the client received with its first answer, as for visitors.
    Own,
    /// A session that the site never issued. Each request claims another one.
    Forged,
}

/// The results of all adversaries of a result row together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hostile {
    /// The service time spent on adversaries until arrivals ended, as a fraction of the servers'
    /// capacity.
    pub hostile_work: f64,
    /// The total number of requests made by adversaries.
    pub generated: u64,
    /// The number of adversaries' requests that were answered while the client waited.
    pub served: u64,
    /// The number of adversaries' requests that were refused.
    pub refused: u64,
}

impl Adversary {
    /// Returns the rate of bursts at which the population asks for [`Self::rho`] times the work
    /// that `workers` workers can do.
    pub fn bursts(&self, classes: &[Class], workers: u32) -> Rate {
        let work: f64 = self.path.iter().map(|i| classes[*i].service.mean().as_secs_f64()).sum();
        Rate::per_second(self.rho * f64::from(workers) / (work * f64::from(self.burst)))
    }
}

/// The form of an adversary in a scenario file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSpec {
    name: String,
    rho: f64,
    path: Vec<String>,
    #[serde(default)]
    session: Claims,
    #[serde(default = "one")]
    addresses: u32,
    #[serde(default = "for_ever")]
    patience: Distribution,
    #[serde(default = "one")]
    burst: u32,
    #[serde(default)]
    holds: Option<String>,
    #[serde(default)]
    rate: u64,
    #[serde(default = "one")]
    shapes: u32,
    #[serde(default)]
    mimics: f64,
    #[serde(default)]
    mimics_evenly: bool,
    #[serde(default)]
    mimics_targets: bool,
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    until: Option<String>,
}

const fn one() -> u32 {
    1
}

const fn for_ever() -> Distribution {
    Distribution::Never
}

/// The maximum number of populations. More could not be distinguished apart in a report.
const MOST: usize = 16;
/// The maximum number of classes in a path: several times the length of any site's checkout.
const LONGEST: usize = 64;

/// The properties by which the gateway of a scenario tells requests apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Distinguished {
    /// Whether it tells the populations of visitors apart.
    pub(crate) shapes: bool,
    /// Whether it tells the targets of requests apart.
    pub(crate) targets: bool,
}

/// Converts the adversaries of a scenario file.
pub(crate) fn resolve(
    raw: Vec<RawSpec>,
    index: &HashMap<String, usize>,
    distinguished: Distinguished,
    lines: &Lines<'_>,
    problems: &mut Problems,
) -> Vec<Adversary> {
    let few = raw.len() <= MOST;
    problems.at(None).require(few, format!("a scenario has at most {MOST} adversaries"));
    let mut all = Vec::new();
    for (i, raw) in raw.into_iter().take(MOST).enumerate() {
        all.extend(problems.at(lines.nth("adversary", i)).part(one_of(raw, index, distinguished)));
    }
    all
}

fn one_of(
    raw: RawSpec,
    index: &HashMap<String, usize>,
    distinguished: Distinguished,
) -> Result<Adversary, ScenarioError> {
    let RawSpec { name, rho, path, session, addresses, patience, burst, .. } = raw;
    let mut problems = Problems::default();
    problems.require(rho > 0.0 && rho <= 1000.0, "rho must be above 0 and at most 1000");
    let long = (1..=LONGEST).contains(&path.len());
    problems.require(long, format!("path must name 1 to {LONGEST} classes"));
    let some = (1..=1_000_000).contains(&addresses) && (1..=10_000).contains(&burst);
    problems.require(some, "addresses must be 1 to 1000000, and burst 1 to 10000");
    let class = |class: &String| {
        let found = index.get(class).copied();
        let why = || format!("path names class `{class}`, which does not exist");
        found.ok_or_else(|| ScenarioError::Invalid(why()))
    };
    let shapes = (1..=1_000_000).contains(&raw.shapes) && (0.0..=1.0).contains(&raw.mimics);
    problems.require(shapes, "shapes must be 1 to 1000000, and mimics a probability");
    let is_apart = raw.shapes > 1 || raw.mimics > 0.0;
    problems.require(
        distinguished.shapes || !is_apart,
        "shapes and mimics have no effect without `client.shapes`",
    );
    let evenly = raw.mimics > 0.0 || !raw.mimics_evenly;
    problems.require(evenly, "mimics_evenly has no effect without `mimics`");
    let targets = distinguished.targets || !raw.mimics_targets;
    problems.require(targets, "mimics_targets has no effect without `client.targets`");
    let path = problems.parts(path.iter().map(class));
    let mut span = |text: Option<String>, or| {
        let read = text.as_deref().map(text::span).transpose();
        problems.part(read).map(|span| span.unwrap_or(or))
    };
    let times = span(raw.from, TimeSpan::ZERO).zip(span(raw.until, TimeSpan::MAX));
    let holds = span(raw.holds, TimeSpan::ZERO);
    let ends = times.is_none_or(|(from, until)| from < until);
    problems.require(ends, "`until` must be after `from`");
    let about = |error| ScenarioError::Invalid(format!("adversary `{name}`: {error}"));
    let ((from, until), holds) = problems.whole(times.zip(holds)).map_err(about)?;
    let RawSpec { rate, shapes, mimics, mimics_evenly, mimics_targets, .. } = raw;
    Ok(Adversary {
        name,
        rho,
        path,
        session,
        addresses,
        patience,
        burst,
        holds,
        rate,
        shapes,
        mimics,
        mimics_evenly,
        mimics_targets,
        from,
        until,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Scenario;
    use crate::file::tests::SMALL;

    fn with(adversary: &str) -> Result<Scenario, String> {
        let text = format!("{SMALL}\n[[adversary]]\n{adversary}");
        Scenario::parse(&text, Path::new(".")).map_err(|error| error.to_string())
    }

    const SOUND: &str = "name = \"x\"\nrho = 2\npath = [\"main\", \"buy\"]\nburst = 4";

    #[test]
    fn rho_is_the_work_of_whole_paths() {
        let scenario = with(SOUND).unwrap();
        let adversary = &scenario.adversaries[0];
        // The population asks for twice the capacity of two workers, in bursts of four paths of 150
        // ms.
        let bursts = adversary.bursts(&scenario.classes, scenario.workers).get();
        assert!((bursts - 4.0 / (4.0 * 0.150)).abs() < 1e-9, "{bursts}");
        assert_eq!((adversary.session, adversary.patience), (Claims::None, Distribution::Never));
        assert_eq!((adversary.from, adversary.until), (TimeSpan::ZERO, TimeSpan::MAX));
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |from: &str, to: &str, says: &str| {
            assert!(SOUND.contains(from), "{from:?} is not in the adversary");
            let error = with(&SOUND.replace(from, to)).expect_err("this makes no sense");
            assert!(error.contains(says), "{says:?} is not in {error:?}");
        };
        refused("\"buy\"", "\"sell\"", "adversary `x`: path names class `sell`");
        refused("rho = 2", "rho = nan", "rho must be above 0");
        refused("rho = 2", "rho = 0", "rho must be above 0");
        refused("[\"main\", \"buy\"]", "[]", "1 to 64 classes");
        refused("burst = 4", "burst = 0", "burst 1 to 10000");
        refused("burst = 4", "addresses = 0", "addresses must be 1");
        refused("burst = 4", "shapes = 0", "shapes must be 1");
        refused("burst = 4", "mimics = 1.5", "mimics a probability");
        refused("burst = 4", "mimics = 0.5", "without `client.shapes`");
        refused("burst = 4", "shapes = 7", "without `client.shapes`");
        refused("burst = 4", "mimics_evenly = true", "without `mimics`");
        refused("burst = 4", "mimics_targets = true", "without `client.targets`");
        refused("burst = 4", "from = \"2m\"\nuntil = \"1m\"", "must be after `from`");
        refused("burst = 4", "from = \"soon\"", "adversary `x`");
        refused("burst = 4", "session = \"stolen\"", "stolen");
        refused("burst = 4", "holds = \"long\"", "adversary `x`");
        refused("burst = 4", "brust = 4", "brust");
    }
}
