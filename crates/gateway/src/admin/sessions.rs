//! What sessions do and what they are worth, as it was learned: `/v1/sessions`.

use bywash_engine::{Class, Learned};
use serde_json::{Value, json};

use crate::shared::Shared;

/// Everything that was learned of every class; `next` has the probabilities of what is asked for
/// next, those below a thousandth left out.
pub(super) fn sessions(shared: &Shared) -> Value {
    let (learning, classes) = shared.driver.learning();
    let learned = learning.learned(&classes);
    json!({
        "orders": learning.orders(),
        "ranked_by_worth": learning.is_known(),
        "classes": learned.iter().map(|of| class(of, &classes)).collect::<Vec<_>>(),
    })
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
        "service_ms": learned.work * 1e3,
        "completes": learned.completes,
    })
}
