//! The admin API for publishers and their slots. A change that would take away promised capacity is
//! rejected.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};

use super::{FULL, MAX_PUBLISHERS, MAX_SLOTS, change, found, known_concepts, made};
use crate::answer::Answer;
use crate::app_state::AppState;
use crate::capacity::{check_supply, demands, supplies};
use crate::ids::{PublisherId, SlotId};
use crate::request::NewSlot;
use crate::request_error::RequestError;
use crate::snapshot::{Publisher, Slot, SlotCounts};
use crate::store::Change;
use crate::values::{Keyword, Name, Timestamp};

pub(super) fn add_publisher(state: &AppState, name: Name) -> Result<Answer, RequestError> {
    let _lock = state.lock_changes();
    let mut register = state.snapshot().register.clone();
    if register.publishers.len() >= MAX_PUBLISHERS {
        return Err(FULL);
    }
    let last = register.publishers.last_key_value().map(|(id, _)| *id);
    let id = PublisherId::after(last).ok_or(FULL)?;
    register.publishers.insert(id, Arc::new(Publisher { name: name.clone() }));
    change(state, Change::Publisher(id, name), register)?;
    Ok(made(&json!({ "publisher": id })))
}

pub(super) fn list_publishers(state: &AppState, after: Option<PublisherId>) -> Answer {
    let report = |id, publisher: &Publisher| json!({ "publisher": id, "name": publisher.name });
    super::list("publishers", &state.snapshot().register.publishers, after, report)
}

/// Returns a publisher with the placements and clicks of each of its slots.
pub(super) fn show_publisher(state: &AppState, id: PublisherId) -> Result<Answer, RequestError> {
    let snapshot = state.snapshot();
    let publisher =
        snapshot.register.publishers.get(&id).ok_or(RequestError::Unknown("publisher"))?;
    let own = snapshot.register.slots.values().filter(|slot| slot.publisher == id);
    let slots: Vec<_> = own.map(|slot| report(slot)).collect();
    Ok(found(&json!({ "publisher": id, "name": publisher.name, "slots": slots })))
}

pub(super) fn list(state: &AppState, after: Option<SlotId>) -> Answer {
    super::list("slots", &state.snapshot().register.slots, after, |_, slot| report(slot))
}

fn report(slot: &Slot) -> Value {
    let concepts: Vec<&Keyword> = slot.concepts.iter().map(|concept| &concept.keyword).collect();
    json!({
        "slot": slot.id,
        "publisher": slot.publisher,
        "size": slot.size,
        "concepts": concepts,
        "impressions_per_day": slot.per_day,
        "removed": slot.is_removed,
        "placements": slot.counts.placements.load(Relaxed),
        "clicks": slot.counts.clicks.load(Relaxed),
    })
}

pub(super) fn add(state: &AppState, new: &NewSlot) -> Result<Answer, RequestError> {
    let _lock = state.lock_changes();
    let mut register = state.snapshot().register.clone();
    if register.slots.len() >= MAX_SLOTS {
        return Err(FULL);
    }
    if !register.publishers.contains_key(&new.publisher) {
        return Err(RequestError::Unknown("publisher"));
    }
    let last = register.slots.last_key_value().map(|(id, _)| *id);
    let slot = Slot {
        id: SlotId::after(last).ok_or(FULL)?,
        publisher: new.publisher,
        size: new.size,
        concepts: known_concepts(&register, &new.concepts)?,
        per_day: new.per_day,
        is_removed: false,
        counts: Arc::new(SlotCounts::default()),
    };
    let id = slot.id;
    register.slots.insert(id, Arc::new(slot.clone()));
    change(state, Change::Slot(slot), register)?;
    Ok(made(&json!({ "slot": id })))
}

pub(super) fn resize(state: &AppState, id: SlotId, per_day: u64) -> Result<Answer, RequestError> {
    replace(state, id, |slot| Slot { per_day, ..slot }, Change::Resize(id, per_day))?;
    Ok(found(&json!({ "slot": id, "impressions_per_day": per_day })))
}

pub(super) fn remove(state: &AppState, id: SlotId) -> Result<Answer, RequestError> {
    replace(state, id, |slot| Slot { is_removed: true, ..slot }, Change::RemoveSlot(id))?;
    Ok(found(&json!({ "slot": id, "removed": true })))
}

/// Replaces a slot with the result of `other`. Rejects the change if all slots together would then
/// carry fewer of the promised impressions than before.
fn replace(
    state: &AppState,
    id: SlotId,
    other: impl FnOnce(Slot) -> Slot,
    as_sql: Change,
) -> Result<(), RequestError> {
    let _lock = state.lock_changes();
    let mut register = state.snapshot().register.clone();
    let slot = register.slots.get(&id).filter(|slot| !slot.is_removed);
    let slot = Slot::clone(slot.ok_or(RequestError::Unknown("slot"))?);
    let before = supplies(&register);
    register.slots.insert(id, Arc::new(other(slot)));
    let promised = demands(&register, Timestamp::now());
    check_supply(&before, &supplies(&register), &promised).map_err(RequestError::Promised)?;
    change(state, as_sql, register)
}
