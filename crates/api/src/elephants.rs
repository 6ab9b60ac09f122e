//! `/v1/elephants` and `/v1/routes`: which requests cause the load, and operators' decisions about
//! them.

use bywash_control::{Change, Effect, Entry, Gauge, OneClient, ResponseStats, RuleLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The elephants that were found, and the resources that are watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elephants {
    /// The current revision; see `revisions` of `/v1/status`.
    pub revision: u64,
    /// How long requests have been compared with the use of resources, in seconds.
    pub seen_s: f64,
    /// The number of requests that were not counted because there were too many.
    pub missed: u64,
    /// The watched resources.
    pub resources: Vec<Looked>,
    /// Whether lanes of the network device hold back the bytes of responses.
    pub lanes: Lanes,
    /// Whether decisions survive a restart of the process.
    pub kept: bool,
    /// The elephants, by number.
    pub elephants: Vec<Elephant>,
}

/// A watched resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Looked {
    /// The name in the configuration file.
    pub name: String,
    /// How long it was read, in seconds.
    pub seen_s: f64,
    /// The fraction of its capacity that was used; `null` before the first reading. For slots it
    /// may exceed 1: the limit was higher before, or requests that are only observed run beyond it.
    pub used: Option<f64>,
    /// Why it cannot be read.
    pub trouble: Option<String>,
}

/// Lanes of the network device, through which responses leave whose bytes a rule holds back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lanes {
    /// Whether there are lanes.
    pub in_force: bool,
    /// Why there are no lanes. A token bucket in the gateway holds the bytes back instead.
    pub why: Option<String>,
}

/// An elephant, and the state of its rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elephant {
    /// The elephant as it was found, and the decisions about it.
    #[serde(flatten)]
    pub entry: Entry,
    /// The limits of the rule in force, or those that bywash proposes.
    pub proposed: Option<RuleLimits>,
    /// The predicted effect of these limits.
    pub effect: Option<Effect>,
    /// Why no effect is predicted.
    pub unpredicted: Option<String>,
    /// How the rule holds bytes back, if it does.
    pub lanes: Option<Lanes>,
    /// How the site performed under the rule in force: in the last minute, or since the rule began
    /// if that is shorter. Only in responses about a single elephant.
    pub under: Option<Gauge>,
    /// The number of requests that wait under the rule in force.
    pub waiting: Option<u32>,
    /// The number of requests that run under the rule in force.
    pub running: Option<u32>,
    /// Other routes that the pattern matches as well; a rule does not apply to them. Only in
    /// responses about a single elephant.
    pub within: Option<Vec<String>>,
    /// A remark about the decision. Only in the response to a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// How a request evades a rule with this pattern, if the pattern names all parameters, and
    /// which pattern to write instead.
    pub evaded: Option<String>,
}

/// An operator's decision about an elephant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The author. Taken from the operator token when one is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason.
    pub why: String,
    /// How long the decision holds, for example `1h`. For `undo` it is how long bywash applies no
    /// rule of its own to the elephant. If absent: `1h`, except that an approval which changes a
    /// rule keeps the end of that rule.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// The changes to the proposed limits, or to those of the rule in force. Only for `approve` and
    /// `try`.
    #[serde(default)]
    pub change: Change,
    /// The revision of the elephant that the operator has seen. If it has changed since, the
    /// decision is rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// Changes to a rule, to preview their effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Preview {
    /// The changes to the limits.
    #[serde(default)]
    pub change: Change,
}

/// The predicted effect of a rule. A preview changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Previewed {
    /// The limits that the rule would have.
    pub limits: RuleLimits,
    /// The predicted effect of these limits.
    pub effect: Option<Effect>,
    /// Why no effect is predicted.
    pub unpredicted: Option<String>,
}

/// The use of a resource over time, and the part of each elephant: its estimated cost times the
/// requests that were worked on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Use {
    /// The resource's name in the configuration file.
    pub resource: String,
    /// The resource's capacity, in units per second.
    pub capacity: f64,
    /// The length of a window, in seconds.
    pub step_s: f64,
    /// The end of each window, in milliseconds since 1970. Windows in which the resource was not
    /// read are missing.
    pub at_ms: Vec<u64>,
    /// The fraction of the capacity that was used, by window.
    pub used: Vec<f64>,
    /// The same for each elephant of this resource, the largest first.
    pub routes: Vec<RouteUse>,
    /// The remaining use, by window: all other requests, the resource's own use, and use without an
    /// explanation. It may be negative.
    pub residual: Vec<f64>,
}

/// The use of a resource by one elephant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RouteUse {
    /// The elephant's number.
    pub number: u32,
    /// The pattern that its requests match.
    pub pattern: String,
    /// The fraction of the capacity that it used, by window.
    pub used: Vec<f64>,
}

/// The evidence for an elephant's cost: one point per window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The pattern that the elephant's requests match.
    pub pattern: String,
    /// The resource's name.
    pub resource: String,
    /// The length of a window, in seconds.
    pub step_s: f64,
    /// The end of each window, in milliseconds since 1970.
    pub at_ms: Vec<u64>,
    /// The number of requests of this route that were worked on, per second.
    pub requests_per_s: Vec<f64>,
    /// The fraction of the resource's capacity that was used.
    pub used: Vec<f64>,
    /// The same without the cost of the other elephants.
    pub without_others: Vec<f64>,
    /// The slope of the line through the points: how much that fraction rises with one more request
    /// per second.
    pub slope: f64,
}

/// The responses to an elephant's requests and to all others over the last 15 minutes, by window.
/// It covers the last 200,000 requests at most.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// The pattern that the elephant's requests match.
    pub pattern: String,
    /// The length of a window, in seconds.
    pub step_s: f64,
    /// The end of each window, in milliseconds since 1970.
    pub at_ms: Vec<u64>,
    /// The responses to the elephant's requests, by window.
    pub elephants: Vec<ResponseStats>,
    /// The responses to all other requests, by window.
    pub ants: Vec<ResponseStats>,
}

/// Asks for a route by its name, whether or not it was found to use much.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The author. Taken from the operator token when one is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason.
    pub why: String,
    /// The name of the route, as `/v1/routes` shows it.
    pub pattern: String,
}

/// The routes that are distinguished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Routes {
    /// The routes, the heaviest first.
    pub routes: Vec<Route>,
    /// All other requests together.
    pub others: Route,
}

/// The recent load of one route. Older requests count less.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    /// The pattern that its requests match; empty for all other requests.
    pub pattern: String,
    /// The number of requests per second.
    pub requests_per_s: f64,
    /// How long one request holds a slot, on average, in seconds.
    pub lasts_s: f64,
    /// The number of slots that they hold, on average.
    pub slots: f64,
    /// The bytes of their responses, per second.
    pub bytes_per_s: f64,
    /// The fraction of their service time that one client caused, at most.
    pub by_one: f64,
    /// The client that caused the most, if it caused at least a tenth.
    pub one_client: Option<OneClient>,
    /// Whether some of them are transactions.
    pub transacts: bool,
    /// The number of the elephant with this pattern, if there is one.
    pub elephant: Option<u32>,
}

#[cfg(test)]
mod tests {
    use bywash_control::{Act, RuleStore, Timestamp};

    use super::*;

    #[test]
    fn what_is_told_beside_an_entry_has_names_of_its_own() {
        let found: bywash_control::Elephant = serde_json::from_value(serde_json::json!({
            "pattern": "/slow", "twins": [], "resource": "db", "capacity": 1.0, "used": 0.5, "cost": 0.1,
            "interval": [0.1, 0.1], "share": 0.5, "rate": 1.0, "provisional": false, "by_one": 0.1,
            "transacts": false, "correlation": null
        }))
        .expect("an elephant");
        let mut store = RuleStore::default();
        store.found(Timestamp::UNIX_EPOCH, vec![found], Act::Propose);
        let elephant = Elephant {
            remark: None,
            evaded: None,
            entry: store.entries()[0].clone(),
            proposed: None,
            effect: None,
            unpredicted: None,
            lanes: None,
            under: Some(Gauge::default()),
            waiting: Some(1),
            running: Some(1),
            within: None,
        };
        let text = serde_json::to_string(&elephant).expect("it is written");
        assert_eq!(serde_json::from_str::<Elephant>(&text).expect("it is read"), elephant);
    }
}
