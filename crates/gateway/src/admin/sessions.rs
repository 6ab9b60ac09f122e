//! What sessions do and what they are worth, as it was learned: `/v1/sessions`.

use bywash_config::Signal;
use bywash_engine::{Class, Learned, Learning, Signals};
use serde_json::{Value, json};

use crate::shared::Shared;

/// Everything that was learned of every class; `next` has the probabilities of what is asked for
/// next, those below a thousandth left out.
pub(super) fn sessions(shared: &Shared) -> Value {
    let (learning, classes) = shared.driver.learning();
    let learned = learning.learned(&classes);
    let kinds = &shared.settings().config.identify.signals;
    json!({
        "orders": learning.orders(),
        "ranked_by_worth": learning.is_known(),
        "classes": learned.iter().map(|of| class(of, &classes)).collect::<Vec<_>>(),
        "signals": signals(kinds, &learning),
    })
}

/// Every combination that a session has begun with.
fn signals(kinds: &[Signal], learning: &Learning) -> Vec<Value> {
    if kinds.is_empty() {
        return Vec::new();
    }
    let seen = (0..1 << kinds.len()).map(Signals::from_index).filter_map(|shown| {
        let (sessions, ordered, times_as_likely) = learning.signals(shown);
        let names = kinds.iter().enumerate().filter(|(kind, _)| shown.has(*kind));
        (sessions > 0.0).then(|| {
            json!({
                "shown": names.map(|(_, signal)| signal.to_string()).collect::<Vec<_>>(),
                "sessions": sessions,
                "ordered": ordered,
                "times_as_likely": times_as_likely,
            })
        })
    });
    seen.collect()
}

fn class(learned: &Learned, classes: &[Class]) -> Value {
    let next: serde_json::Map<String, Value> = classes
        .iter()
        .zip(&learned.next)
        .filter(|(_, probability)| **probability >= 0.001)
        .map(|(class, probability)| (class.name.clone(), json!(probability)))
        .collect();
    let [index, first_index] = learned.index;
    json!({
        "name": classes[learned.class.index()].name,
        "first_visits": learned.first_visits,
        "later_visits": learned.later_visits,
        "next": next,
        "worth": learned.utility,
        "worth_before": learned.before,
        "pinned": learned.pinned,
        "index_per_s": index,
        "first_index_per_s": first_index,
        "service_ms": learned.work.map(|seconds| seconds * 1e3),
        "completes": learned.completes,
    })
}
