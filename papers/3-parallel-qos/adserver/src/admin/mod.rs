//! The admin API: changes and reports of concepts, publishers, slots and contracts.
//!
//! A change is checked against the snapshot, committed to the database, and then published.
//! Therefore no reader sees half of a change, and a rejected change has no effect. Changes are made
//! one at a time ([`AppState::lock_changes`]).

mod contracts;
mod slots;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io::Write as _;
use std::ops::Bound;
use std::sync::Arc;

use http::StatusCode;
use serde::Serialize;
use serde_json::json;

use crate::answer::Answer;
use crate::app_state::AppState;
use crate::ids::ConceptId;
use crate::request::ParsedRequest;
use crate::request_error::{RequestError, SUGGESTIONS};
use crate::snapshot::{Concept, Register};
use crate::store::Change;
use crate::values::Keyword;

/// The maximum number of concepts. It is bounded because one answer lists all of them.
const MAX_CONCEPTS: usize = 10_000;
/// The maximum number of publishers.
const MAX_PUBLISHERS: usize = 10_000;
/// The maximum number of ad slots.
const MAX_SLOTS: usize = 100_000;
/// The maximum number of contracts.
const MAX_CONTRACTS: usize = 200_000;

/// The maximum number of entries of a list in one answer.
const LISTED: usize = 100;

const FULL: RequestError = RequestError::Conflict("the ad server cannot have more of these");

/// Serves one request to the admin API, which is any request except those for pages and clicks.
pub(crate) fn serve(state: &AppState, request: ParsedRequest) -> Result<Answer, RequestError> {
    match request {
        ParsedRequest::AddConcept(keyword) => add_concept(state, &keyword),
        ParsedRequest::ListConcepts => Ok(found(&json!({
            "concepts": state.snapshot().register.concepts.keys().collect::<Vec<_>>(),
        }))),
        ParsedRequest::AddPublisher(name) => slots::add_publisher(state, name),
        ParsedRequest::ListPublishers(after) => Ok(slots::list_publishers(state, after)),
        ParsedRequest::ShowPublisher(id) => slots::show_publisher(state, id),
        ParsedRequest::AddSlot(slot) => slots::add(state, &slot),
        ParsedRequest::ListSlots(after) => Ok(slots::list(state, after)),
        ParsedRequest::ResizeSlot(id, per_day) => slots::resize(state, id, per_day),
        ParsedRequest::RemoveSlot(id) => slots::remove(state, id),
        ParsedRequest::Sign(contract) => contracts::sign(state, contract),
        ParsedRequest::ListContracts(after) => Ok(contracts::list(state, after)),
        ParsedRequest::ShowContract(id) => contracts::show(state, id),
        ParsedRequest::Cancel(id) => contracts::cancel(state, id),
        ParsedRequest::Ad(..) | ParsedRequest::Click(_) => Err(RequestError::Unknown("page")),
    }
}

/// Returns the concepts with these names. If a name is unknown, the error suggests similar names.
pub(crate) fn known_concepts(
    register: &Register,
    keywords: &BTreeSet<Keyword>,
) -> Result<Vec<Concept>, RequestError> {
    register.concepts(keywords).map_err(|keyword| {
        let likeness = |other: &Keyword| strsim::jaro_winkler(keyword.as_str(), other.as_str());
        let mut near: Vec<(f64, &Keyword)> =
            register.concepts.keys().map(|other| (likeness(other), other)).collect();
        near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let near = near.into_iter().take(SUGGESTIONS).map(|(_, other)| other.clone()).collect();
        RequestError::UnknownConcept { keyword, near }
    })
}

fn add_concept(state: &AppState, keyword: &Keyword) -> Result<Answer, RequestError> {
    let _lock = state.lock_changes();
    let mut register = state.snapshot().register.clone();
    if register.concepts.contains_key(keyword) {
        return Ok(found(&json!({ "concept": keyword })));
    }
    if register.concepts.len() >= MAX_CONCEPTS {
        return Err(FULL);
    }
    let id = ConceptId::after(register.concepts.values().max().copied()).ok_or(FULL)?;
    register.concepts.insert(keyword.clone(), id);
    change(state, Change::Concept(Concept { id, keyword: keyword.clone() }), register)?;
    Ok(made(&json!({ "concept": keyword })))
}

/// Commits a change to the database, then publishes the register that results from it. If the
/// commit fails, nothing is published.
fn change(state: &AppState, change: Change, register: Register) -> Result<(), RequestError> {
    match state.write_queue.commit(change) {
        Some(Ok(())) => {
            state.publish(register);
            Ok(())
        }
        Some(Err(error)) => {
            // A failed write to stderr must not stop the server.
            let _unread = writeln!(std::io::stderr(), "adserver: changing: {error}");
            Err(RequestError::Database)
        }
        None => Err(RequestError::Closing),
    }
}

/// Returns one answer with at most [`LISTED`] entries of the list `all`, beginning after the entry
/// `after`. If more entries follow, the answer has the address of the next part.
fn list<I: Ord + Copy + Display, T>(
    name: &str,
    all: &BTreeMap<I, Arc<T>>,
    after: Option<I>,
    report: impl Fn(I, &T) -> serde_json::Value,
) -> Answer {
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut rest = all.range((from, Bound::Unbounded)).peekable();
    let (mut some, mut last) = (Vec::new(), None);
    for (id, one) in rest.by_ref().take(LISTED) {
        some.push(report(*id, one));
        last = Some(id);
    }
    let next = rest.peek().and(last).map(|last| format!("/{name}?after={last}"));
    found(&json!({ name: some, "next": next }))
}

fn found(value: &impl Serialize) -> Answer {
    Answer::json(StatusCode::OK, value)
}

fn made(value: &impl Serialize) -> Answer {
    Answer::json(StatusCode::CREATED, value)
}
