//! The policies of a scenario: a name, and parameters that only the catalogue can check.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::ScenarioError;
use crate::servers::Departures;
use crate::throttle::{self, Throttle};

/// A policy to run, with the parameters that differ from their defaults.
#[derive(Clone, Debug)]
pub struct PolicyChoice {
    /// The name in the catalogue.
    pub name: String,
    /// The name in the result; the policy's own if the file gives none.
    pub label: String,
    /// Parameters as text, by name.
    pub parameters: BTreeMap<String, String>,
    /// The policy of the concurrency limit; `servers.limit` if `None`.
    pub concurrency: Option<PartChoice>,
    /// The policy that limits the running time of cancellable requests; the product's default if
    /// `None`.
    pub termination: Option<PartChoice>,
    /// The principal that is charged for a request without a proven session.
    pub principal: PrincipalKind,
    /// Whether the gateway assumes that the application notices departures. If not, it holds the
    /// slot until the application is done.
    pub departures: Departures,
    /// Classes that are throttled.
    pub throttles: Vec<Throttle>,
    /// The line of the policy in the file, if it comes from one.
    pub line: Option<usize>,
}

impl PolicyChoice {
    /// Returns the policy with these parameters and defaults for everything else.
    pub fn of(name: &str, parameters: BTreeMap<String, String>) -> Self {
        Self {
            name: name.to_owned(),
            label: name.to_owned(),
            parameters,
            concurrency: None,
            termination: None,
            principal: PrincipalKind::default(),
            departures: Departures::default(),
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
    /// No principal: many visitors may share an address.
    #[default]
    Session,
    /// The address. Simulated visitors have one each, which is the best case for this choice.
    Address,
}

/// A limit or termination policy to run, with the parameters that differ from their defaults.
#[derive(Clone, Debug)]
pub struct PartChoice {
    /// The name in the catalogue.
    pub name: String,
    /// Parameters as text, by name.
    pub parameters: BTreeMap<String, String>,
}

/// The form of a policy in the file.
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
    /// Resolves a policy that stands in this line; `find` maps the name of a class to its index.
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
