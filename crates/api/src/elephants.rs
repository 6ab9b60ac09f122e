//! `/v1/elephants` and `/v1/routes`: which requests cause the load, and operators' decisions about
//! them.

use bywash_control::{Change, Effect, Entry, Gauge, OneClient, ResponseStats, RuleLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The elephants that were found, and the resources whose use is watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elephants {
    /// The current revision of the elephants; see `revisions` of `/v1/status`.
    pub revision: u64,
    /// The time in seconds over which the gateway has compared requests with the use of resources.
    pub seen_s: f64,
    /// The number of requests that were left out of the comparison, because they came faster than
    /// the gateway could count them.
    pub missed: u64,
    /// The names of the other gateways of the fleet whose last requests this gateway could not read.
    /// The comparison lacks these requests.
    #[serde(default)]
    pub unread: Vec<String>,
    /// The resources whose use is watched.
    pub resources: Vec<WatchedResource>,
    /// The state of the lanes of the network device, through which responses under a rule are sent.
    pub lanes: Lanes,
    /// Whether decisions survive a restart of the process.
    pub kept: bool,
    /// The elephants, by number.
    pub elephants: Vec<Elephant>,
}

/// A watched resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedResource {
    /// The resource's name in the configuration file.
    pub name: String,
    /// The total time in seconds over which the resource was read.
    pub seen_s: f64,
    /// The fraction of the resource's capacity that is used; `null` before the first reading. For
    /// slots the fraction may exceed 1: the limit was higher before, or requests that are only
    /// observed run beyond the limit.
    pub used: Option<f64>,
    /// Why the resource cannot be read; `null` if it can.
    pub trouble: Option<String>,
}

/// The lanes of the network device. A lane is a traffic class that limits the rate of the responses
/// under a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lanes {
    /// Whether lanes are in use.
    pub in_force: bool,
    /// Why no lanes are in use; `null` if they are. A token bucket in the gateway then limits the
    /// rate.
    pub why: Option<String>,
}

/// An elephant, and the state of its rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elephant {
    /// The elephant as it was found, and the operators' decisions about it.
    #[serde(flatten)]
    pub entry: Entry,
    /// The limits of the rule in force. If no rule is in force, the limits that bywash proposes.
    pub proposed: Option<RuleLimits>,
    /// The predicted effect of the limits in `proposed`.
    pub effect: Option<Effect>,
    /// Why no effect is predicted; `null` if one is.
    pub unpredicted: Option<String>,
    /// The state of the lanes for this rule; `null` if the rule does not limit bytes.
    pub lanes: Option<Lanes>,
    /// The performance of the site under the rule in force, over the last minute. If the rule began
    /// later, the performance since its beginning. Present only in responses about a single
    /// elephant.
    pub under: Option<Gauge>,
    /// The number of requests that now wait under the rule in force.
    pub waiting: Option<u32>,
    /// The number of requests that now run under the rule in force.
    pub running: Option<u32>,
    /// The patterns of other routes whose requests the elephant's pattern matches as well. A rule
    /// does not apply to these requests. Present only in responses about a single elephant.
    pub within: Option<Vec<String>>,
    /// A remark for the operator about the decision. Present only in the response to a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// How a request can evade a rule with this pattern, and which pattern to write instead. `null`
    /// unless the pattern names all query parameters of its requests.
    pub evaded: Option<String>,
}

/// An operator's decision about an elephant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The name of the decision's author. If the request has an operator token, the gateway takes
    /// the name from the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason for the decision.
    pub why: String,
    /// How long the decision holds, for example `1h`. For `undo`, it is the time during which
    /// bywash applies no automatic rule to the elephant. The default is `1h`. An approval that
    /// changes a rule in force keeps the end of that rule by default.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// Changes to the proposed limits, or to the limits of the rule in force. Only for `approve`
    /// and `try`.
    #[serde(default)]
    pub change: Change,
    /// The revision of the elephant that the operator has seen. If the elephant's revision has
    /// changed since, the decision is rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// Changes to the limits of a rule, to preview their effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Preview {
    /// The changes to the limits.
    #[serde(default)]
    pub change: Change,
}

/// The predicted effect of changed limits. A preview changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Previewed {
    /// The limits that the rule would have.
    pub limits: RuleLimits,
    /// The predicted effect of `limits`.
    pub effect: Option<Effect>,
    /// Why no effect is predicted; `null` if one is.
    pub unpredicted: Option<String>,
}

/// The use of a resource over time, in total and by each elephant. An elephant's use is its
/// estimated cost per request, multiplied by the number of its requests that were worked on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Use {
    /// The resource's name in the configuration file.
    pub resource: String,
    /// The resource's capacity, in units of the resource per second.
    pub capacity: f64,
    /// The length of a window, in seconds.
    pub step_s: f64,
    /// The end of each window, in milliseconds since 1970. Windows in which the resource was not
    /// read are missing.
    pub at_ms: Vec<u64>,
    /// The fraction of the capacity that was used in total, one value per window.
    pub used: Vec<f64>,
    /// The use by each elephant of this resource, the largest first.
    pub routes: Vec<RouteUse>,
    /// The fraction of the capacity that no elephant explains, one value per window: the use by
    /// other requests, the use without requests, and errors of the estimate. The fraction may be
    /// negative.
    pub residual: Vec<f64>,
}

/// The use of a resource by one elephant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RouteUse {
    /// The elephant's number.
    pub number: u32,
    /// The pattern that its requests match.
    pub pattern: String,
    /// The fraction of the capacity that the elephant used, one value per window.
    pub used: Vec<f64>,
}

/// The measurements from which an elephant's cost is estimated: one point per window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The pattern that the elephant's requests match.
    pub pattern: String,
    /// The name of the resource in the configuration file.
    pub resource: String,
    /// The length of a window, in seconds.
    pub step_s: f64,
    /// The end of each window, in milliseconds since 1970.
    pub at_ms: Vec<u64>,
    /// The number of the elephant's requests that were worked on, per second, one value per window.
    pub requests_per_s: Vec<f64>,
    /// The fraction of the resource's capacity that was used in total, one value per window.
    pub used: Vec<f64>,
    /// The fraction of the capacity that was used, less the estimated use by other elephants, one
    /// value per window.
    pub without_others: Vec<f64>,
    /// The slope of the regression line through the points: the increase in the used fraction of
    /// the capacity for each additional request per second.
    pub slope: f64,
}

/// The responses to an elephant's requests and to all other requests over the last 15 minutes, by
/// window. At most the last 200,000 requests are covered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// The pattern that the elephant's requests match.
    pub pattern: String,
    /// The length of a window, in seconds.
    pub step_s: f64,
    /// The end of each window, in milliseconds since 1970.
    pub at_ms: Vec<u64>,
    /// The responses to the elephant's requests, one value per window.
    pub elephants: Vec<ResponseStats>,
    /// The responses to all other requests, one value per window.
    pub ants: Vec<ResponseStats>,
}

/// A request to list a route as an elephant, even if bywash has not found that the route uses much
/// of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The name of the operator who asks. If the request has an operator token, the gateway takes
    /// the name from the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason for listing the route.
    pub why: String,
    /// The name of the route: its `pattern` in `/v1/routes`.
    pub pattern: String,
}

/// The routes that the gateway counts separately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Routes {
    /// The routes, sorted by the mean number of slots that their requests hold, the largest first.
    pub routes: Vec<Route>,
    /// All requests of other routes together.
    pub others: Route,
}

/// The recent load of one route, as weighted means: older requests count less.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    /// The pattern that the route's requests match; empty for the requests of all other routes
    /// together.
    pub pattern: String,
    /// The number of the route's requests per second.
    pub requests_per_s: f64,
    /// The mean time that one request holds a slot, in seconds.
    pub lasts_s: f64,
    /// The mean number of slots that the route's requests hold.
    pub slots: f64,
    /// The number of bytes per second of the responses.
    pub bytes_per_s: f64,
    /// The upper bound of the fraction of the route's service time that a single client caused.
    pub by_one: f64,
    /// The client that caused most of the route's service time. `null` if no client certainly
    /// caused at least a tenth of that time.
    pub one_client: Option<OneClient>,
    /// Whether transactions cause more than a hundredth of the work for the route's requests.
    pub transacts: bool,
    /// The number of the elephant with this pattern; `null` if there is none.
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
