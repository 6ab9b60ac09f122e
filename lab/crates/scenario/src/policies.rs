//! The policies of a scenario. Each has a name and parameters, which only the engine's catalogue of
//! policies can check.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::ScenarioError;
use crate::servers::Departures;
use crate::throttle::{self, Throttle};

/// A policy to run, with the parameters that differ from their defaults.
#[derive(Clone, Debug)]
pub struct PolicyChoice {
    /// The name of the policy in the catalogue.
    pub name: String,
    /// The name of the policy in the result. It is the policy's own name if the file gives no
    /// label.
    pub label: String,
    /// The values of the policy's parameters as text, by name of the parameter.
    pub parameters: BTreeMap<String, String>,
    /// The concurrency policy; `None` for a fixed limit of `servers.limit` slots.
    pub concurrency: Option<PartChoice>,
    /// The policy that limits the running time of cancellable requests; `None` for bywash's
    /// default.
    pub termination: Option<PartChoice>,
    /// The principal that is charged for a request without a proven session.
    pub principal: PrincipalKind,
    /// Whether the gateway assumes that the application notices departures. If not, the gateway
    /// holds the slot of a departed client until the application is done.
    pub departures: Departures,
    /// Whether the decisions of the policy are carried out.
    pub mode: Mode,
    /// The classes that are throttled, with the limits of each.
    pub throttles: Vec<Throttle>,
    /// The line of the policy in the scenario file; `None` if the policy does not come from a file.
    pub line: Option<usize>,
}

impl PolicyChoice {
    /// Returns the policy `name` with these parameters, and with defaults for all other fields.
    pub fn of(name: &str, parameters: BTreeMap<String, String>) -> Self {
        Self {
            name: name.to_owned(),
            label: name.to_owned(),
            parameters,
            concurrency: None,
            termination: None,
            principal: PrincipalKind::default(),
            departures: Departures::default(),
            mode: Mode::default(),
            throttles: Vec::new(),
            line: None,
        }
    }
}

/// The principal that is charged for a request without a proven session: the gateway's
/// `identify.principal`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrincipalKind {
    /// No principal is charged, because many visitors may share an address.
    #[default]
    Session,
    /// The client's address is charged. Simulated visitors have one address each, which is the best
    /// case for this choice.
    Address,
}

/// Whether the decisions of a policy are carried out: the gateway's `mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The decisions are carried out.
    #[default]
    Enforce,
    /// Each request goes to the application at once, and the decisions are only counted. Requests
    /// of throttled classes are enforced, like those under an approved rule in the gateway.
    Observe,
}

/// A concurrency or termination policy to run, with the parameters that differ from their defaults.
#[derive(Clone, Debug)]
pub struct PartChoice {
    /// The name of the policy in the catalogue.
    pub name: String,
    /// The values of the parameters as text, by name of the parameter.
    pub parameters: BTreeMap<String, String>,
}

/// The form of a policy in a scenario file.
#[derive(Deserialize)]
pub(crate) struct RawSpec {
    name: String,
    #[serde(default)]
    label: Option<String>,
    #[serde(default)]
    concurrency: Option<Part>,
    #[serde(default)]
    termination: Option<Part>,
    #[serde(default)]
    principal: PrincipalKind,
    #[serde(default)]
    departures: Departures,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    throttle: Vec<throttle::RawSpec>,
    #[serde(flatten)]
    parameters: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
struct Part {
    name: String,
    #[serde(flatten)]
    parameters: BTreeMap<String, toml::Value>,
}

impl RawSpec {
    /// Converts the file's form into a policy. `line` is its line in the file, and `find` maps the
    /// name of a class to its index. Fails for invalid values.
    pub(crate) fn resolve(
        self,
        line: Option<usize>,
        find: impl Fn(&str) -> Result<usize, ScenarioError>,
    ) -> Result<PolicyChoice, ScenarioError> {
        let part = |part: Part| PartChoice { name: part.name, parameters: texts(part.parameters) };
        let throttles = self.throttle.iter().map(|throttle| throttle.resolve(&find));
        Ok(PolicyChoice {
            throttles: throttles.collect::<Result<_, _>>()?,
            label: self.label.unwrap_or_else(|| self.name.clone()),
            parameters: texts(self.parameters),
            concurrency: self.concurrency.map(part),
            termination: self.termination.map(part),
            principal: self.principal,
            departures: self.departures,
            mode: self.mode,
            name: self.name,
            line,
        })
    }
}

fn texts(parameters: BTreeMap<String, toml::Value>) -> BTreeMap<String, String> {
    let text = |value: toml::Value| match value {
        toml::Value::String(text) => text,
        other => other.to_string(),
    };
    parameters.into_iter().map(|(name, value)| (name, text(value))).collect()
}
