//! `/v1/elephants` and `/v1/kinds`: which requests cause the load, and an operator's word about them.

use bywash_control::{Change, Effect, Entry, Gauge, Grants, Lot, OneClient};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elephants {
    /// See `revisions` of `/v1/status`.
    pub revision: u64,
    /// For how long requests were held against resources.
    pub seen_s: f64,
    /// Requests that were too many to be counted.
    pub missed: u64,
    /// What is looked at.
    pub resources: Vec<Looked>,
    /// Whether bytes are held back by lanes of the network device.
    pub lanes: Lanes,
    /// What is decided outlives the process.
    pub kept: bool,
    /// By number.
    pub elephants: Vec<Elephant>,
}

/// A resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Looked {
    /// What the file calls it.
    pub name: String,
    /// For how long it was read.
    pub seen_s: f64,
    /// Share of its capacity that was used; `null` before it was read. Of slots it may be more than 1: the limit was higher
    /// before, or requests that are only observed run beyond it.
    pub used: Option<f64>,
    /// Why it cannot be read.
    pub trouble: Option<String>,
}

/// Ways out for answers whose bytes are held back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lanes {
    /// There are lanes.
    pub in_force: bool,
    /// Why there are none; a bucket holds back then.
    pub why: Option<String>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Elephant {
    /// What was found, and what was decided.
    #[serde(flatten)]
    pub entry: Entry,
    /// What a rule would grant if nobody says otherwise, or what it grants.
    pub proposed: Option<Grants>,
    /// What that will do.
    pub effect: Option<Effect>,
    /// Why that is not known.
    pub unpredicted: Option<String>,
    /// How bytes are held back, where the rule does so.
    pub lanes: Option<Lanes>,
    /// How the site was under the rule in force: in the last minute, or since it holds. Only of one by itself.
    pub under: Option<Gauge>,
    /// Requests that wait under the rule in force.
    pub waiting: Option<u32>,
    /// Requests that run under it.
    pub running: Option<u32>,
    /// Kinds of their own that the pattern matches too, which a rule leaves alone. Only of one by itself.
    pub within: Option<Vec<String>>,
    /// In the answer to a decision: what is to be said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// How a request gets around a rule with this pattern, if the pattern names all parameters; and what to write instead.
    pub evaded: Option<String>,
}

/// An operator's word about one of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Who. Whoever comes with a token is who that says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    pub why: String,
    /// For how long it holds, `1h` if nothing is said; of what is undone, how long nobody does it again without asking.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// What of the rule is to be otherwise.
    #[serde(default)]
    pub change: Change,
    /// Of the elephant, as whoever decides has seen it. If it is another by now, nothing is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// What of a rule is to be otherwise, to see what it would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Preview {
    /// What.
    #[serde(default)]
    pub change: Change,
}

/// What a rule would do. Nothing is changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Previewed {
    /// What it would grant.
    pub grants: Grants,
    /// What that would do.
    pub effect: Option<Effect>,
    /// Why that is not known.
    pub unpredicted: Option<String>,
}

/// What was used of a resource over time, and by which kinds: the costs that were found times what was worked on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Use {
    /// What the file calls it.
    pub resource: String,
    /// Units of it that there are in a second.
    pub capacity: f64,
    /// Seconds of a window.
    pub step_s: f64,
    /// The end of each, in milliseconds since 1970. Those that were not read are missing.
    pub at_ms: Vec<u64>,
    /// Share of the capacity that was used.
    pub used: Vec<f64>,
    /// The same by kind, for each elephant of this resource; the largest first.
    pub kinds: Vec<KindUse>,
    /// What is left: of all other requests, of the resource itself, and what is not understood. It may be below nothing.
    pub residual: Vec<f64>,
}

/// What one kind used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KindUse {
    /// Number of the elephant.
    pub number: u32,
    /// Which requests.
    pub pattern: String,
    /// Share of the capacity, by window.
    pub used: Vec<f64>,
}

/// What an elephant's cost was read from: a point for each window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Which requests.
    pub pattern: String,
    /// Of which resource.
    pub resource: String,
    /// Seconds of a window.
    pub step_s: f64,
    /// The end of each, in milliseconds since 1970.
    pub at_ms: Vec<u64>,
    /// Requests a second of this kind that were worked on.
    pub requests_per_s: Vec<f64>,
    /// Share of the resource's capacity that was used.
    pub used: Vec<f64>,
    /// The same, without what the other elephants cost.
    pub without_others: Vec<f64>,
    /// By how much that rises with one request a second more: the line through the points.
    pub slope: f64,
}

/// What an elephant's requests and all others got over the last quarter of an hour, window by window, as far back as it is
/// remembered: the last 200,000 requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// Which requests.
    pub pattern: String,
    /// Seconds of a window.
    pub step_s: f64,
    /// The end of each, in milliseconds since 1970.
    pub at_ms: Vec<u64>,
    /// Of these requests.
    pub elephants: Vec<Lot>,
    /// Of all others.
    pub ants: Vec<Lot>,
}

/// An operator asks for a kind by its name, whether it was found to use much or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Who. Whoever comes with a token is who that says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    pub why: String,
    /// Its name, as `/v1/kinds` has it.
    pub pattern: String,
}

/// Which requests there are: as many kinds as are told apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kinds {
    /// The heaviest first.
    pub kinds: Vec<Kind>,
    /// All others together.
    pub others: Kind,
}

/// A kind of request, as of late: older requests count less.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kind {
    /// Which requests; nothing for all others.
    pub pattern: String,
    /// How many came in a second.
    pub requests_per_s: f64,
    /// Seconds for which one holds a slot.
    pub lasts_s: f64,
    /// Slots that they hold, on average.
    pub slots: f64,
    /// Bytes of their answers in a second.
    pub bytes_per_s: f64,
    /// Of the time that they took, the part of one client at most.
    pub by_one: f64,
    /// Who that is, if it is much.
    pub one_client: Option<OneClient>,
    /// Some of them are transactions.
    pub transacts: bool,
    /// The elephant that they are, if they are one.
    pub elephant: Option<u32>,
}

#[cfg(test)]
mod tests {
    use bywash_control::{Act, Book, Timestamp};

    use super::*;

    #[test]
    fn what_is_told_beside_an_entry_has_names_of_its_own() {
        let found: bywash_control::Elephant = serde_json::from_value(serde_json::json!({
            "pattern": "/slow", "twins": [], "resource": "db", "capacity": 1.0, "used": 0.5, "cost": 0.1,
            "interval": [0.1, 0.1], "share": 0.5, "rate": 1.0, "provisional": false, "by_one": 0.1,
            "transacts": false, "correlation": null
        }))
        .expect("an elephant");
        let mut book = Book::default();
        book.found(Timestamp::UNIX_EPOCH, vec![found], Act::Propose);
        let elephant = Elephant {
            remark: None,
            evaded: None,
            entry: book.entries()[0].clone(),
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
