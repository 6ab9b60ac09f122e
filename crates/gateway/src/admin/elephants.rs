//! Answers `/v1/elephants`: the elephants that were found, the decisions about them, and new
//! decisions.

#[cfg(feature = "fleet")]
use bywash_api::FleetGateway;
use bywash_api::{Ask, Code, Decision, Elephant, Elephants, Preview, Previewed};
use bywash_control::{
    Change, Effect, Entry, Gauge, Refused as Undoable, RuleLimits, RuleStore, State,
};
use bywash_engine::RuleId;
use bywash_engine::classify::Pattern;
use bywash_terminal::text::excerpt;
use bywash_units::TimeSpan;

use super::answer::{Answered, Refused, document};
use super::auth::Caller;
use super::input::meta;
use super::policy::unwritten;
use crate::decisions::elephants as decisions;
use crate::decisions::watch::{MINUTE, before, capacities};
use crate::process::wall_clock;
use crate::shared::Shared;
use crate::state::stored::DecisionError;
use crate::state::writer::Version;

/// Returns all elephants, with the state of the watch that finds them.
pub(super) fn list(shared: &Shared) -> Elephants {
    let throttled = shared.driver.throttled();
    let findings = shared.elephants.findings();
    let entries = findings.store.get().entries().iter();
    Elephants {
        revision: findings.revision,
        seen_s: findings.watch_report.seen().as_secs_f64(),
        missed: findings.watch_report.missed(),
        unread: unread(shared),
        resources: findings.watch_report.resource_reports(),
        lanes: shared.elephants.lanes.status(),
        kept: findings.store.is_saved(),
        elephants: entries.map(|entry| described(shared, entry, &throttled)).collect(),
    }
}

/// Returns the names of the other gateways of the fleet whose requests are missing: those that may
/// run and were not read within the time for which requests can be compared with resources.
#[cfg(feature = "fleet")]
fn unread(shared: &Shared) -> Vec<String> {
    let status = shared.fleet.status();
    let most = bywash_control::OLDEST_SECOND.as_millis();
    let is_read = |gateway: &FleetGateway| gateway.observed_ms.is_some_and(|age| age < most);
    let is_unread = |gateway: &FleetGateway| {
        gateway.name != status.name && !gateway.is_down && !is_read(gateway)
    };
    status.gateways.iter().filter(|one| is_unread(one)).map(|one| one.name.clone()).collect()
}

#[cfg(not(feature = "fleet"))]
const fn unread(_: &Shared) -> Vec<String> {
    Vec::new()
}

/// Returns one elephant (a route that causes much of the load), with the more specific routes that
/// its pattern also matches and that a rule for it does not limit. Returns an error if no elephant
/// has this number.
pub(super) fn show(shared: &Shared, number: &str) -> Answered {
    Ok(document(&shown(shared, number_of(number)?)?))
}

fn shown(shared: &Shared, number: u32) -> Result<Elephant, Refused> {
    let throttled = shared.driver.throttled();
    let findings = shared.elephants.findings();
    let entry = findings.store.get().entry(number).map_err(Refused::not_found)?;
    let mut elephant = described(shared, entry, &throttled);
    elephant.under = measure_under_rule(shared, entry);
    let within = shared.elephants.watched().within(&[&entry.pattern]);
    elephant.within = Some(within.into_iter().flatten().collect());
    Ok(elephant)
}

pub(super) fn number_of(text: &str) -> Result<u32, Refused> {
    text.parse().map_err(|_| {
        Refused::not_found("the path needs the number of an elephant, as in /v1/elephants/3")
    })
}

/// Returns the predicted effect of a rule for this elephant with the limits in `preview`. Puts no
/// rule in force.
pub(super) fn preview(shared: &Shared, number: &str, preview: Preview) -> Answered {
    let number = number_of(number)?;
    let findings = shared.elephants.findings();
    let entry = findings.store.get().entry(number).map_err(Refused::not_found)?;
    let limits = entry.with(preview.change).map_err(Refused::invalid)?;
    let (effect, unpredicted) = effect(entry, &limits);
    Ok(document(&Previewed { limits, effect, unpredicted }))
}

/// A kind of decision that an operator makes about an elephant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verb {
    Approve,
    Try,
    Reject,
    Undo,
}

/// Carries out an operator's decision about the elephant with this number, and returns the elephant
/// as it is afterwards. Returns an error if the decision is not possible.
pub(super) async fn decide(
    shared: &Shared,
    caller: &Caller,
    number: &str,
    verb: Verb,
    decision: Decision,
) -> Answered {
    let id = number_of(number)?;
    let Decision { by, why, lasts, change, revision } = decision;
    let mut meta = meta(caller.author(by)?, why, lasts.as_deref())?;
    if matches!(verb, Verb::Reject | Verb::Undo) && change != Change::default() {
        return Err(Refused::invalid(
            "`change` sets the limits of a rule: only approve and try take it",
        ));
    }
    let now = wall_clock::now();
    let measured = if matches!(verb, Verb::Try) { meta.lasts } else { MINUTE };
    let was = |store: &RuleStore| {
        let entry = store.entry(id).ok()?;
        before(&shared.elephants.watched(), entry, shared.driver.now(), measured)
    };
    let decided = decisions::decide(shared, |store| {
        store.is_seen(id, revision)?;
        let note = match verb {
            Verb::Approve => {
                let before = was(store);
                // If the operator gave no duration, the rule keeps its present end.
                if let Some(end) = store.entry(id)?.ends().filter(|_| lasts.is_none()) {
                    meta = meta.until(now, end);
                }
                let note = store.approve(now, id, change, meta)?;
                store.was_before(now, id, before);
                note
            }
            Verb::Try => {
                let before = was(store);
                store.try_out(now, id, change, meta, before)?
            }
            Verb::Reject => store.reject(now, id, meta)?,
            Verb::Undo => store.undo(now, id, meta)?,
        };
        Ok(vec![note])
    });
    document_of(shared, id, decided).await
}

/// Creates an entry for the route that an operator names, although the watch has not proposed it,
/// and returns the entry. Returns an error if no route has this name.
pub(super) async fn ask(shared: &Shared, caller: &Caller, asked: Ask) -> Answered {
    let Ask { by, why, pattern } = asked;
    let meta = meta(caller.author(by)?, why, None)?;
    let (slots, _) = capacities(shared);
    let Some(found) = shared.elephants.watched().named(&pattern, slots) else {
        let name = excerpt(&pattern, 80);
        return Err(Refused::not_found(format!(
            "no route has the name `{name}`: `/v1/routes` lists them all; the list is empty while \
             the configuration file has no [resource.NAME]"
        )));
    };
    let mut number = 0;
    let decided = decisions::decide(shared, |store| {
        let note;
        (number, note) = store.ask(wall_clock::now(), found, meta)?;
        Ok(note.into_iter().collect())
    });
    document_of(shared, number, decided).await
}

/// Returns the elephant after a decision, with a remark if the decision could not be saved. Returns
/// an error if `decided` is an error.
async fn document_of(
    shared: &Shared,
    number: u32,
    decided: Result<Option<Version>, DecisionError<Undoable>>,
) -> Answered {
    match decided {
        Ok(version) => {
            let remark = unwritten(shared, version).await;
            Ok(document(&Elephant { remark, ..shown(shared, number)? }))
        }
        Err(DecisionError::Refused(why)) => Err(Refused::new(code_of(&why), why)),
        Err(why @ DecisionError::HandedOver) => Err(Refused::new(Code::Unavailable, why)),
    }
}

const fn code_of(why: &Undoable) -> Code {
    match why {
        Undoable::Unknown(_) => Code::NotFound,
        Undoable::Conflict { .. } => Code::Conflict,
        Undoable::DecisionMeta(_)
        | Undoable::Transacts
        | Undoable::Pattern
        | Undoable::RuleLimits(_)
        | Undoable::Trial
        | Undoable::Many
        | Undoable::Full
        | Undoable::InFile
        | Undoable::Nothing(_) => Code::Invalid,
    }
}

/// Describes an entry: its predicted effect, the requests that wait and run under its rule, and the
/// lanes for its bytes. The description must be cheap to compute, because there may be many
/// entries.
fn described(shared: &Shared, entry: &Entry, throttled: &[(RuleId, u32, u32)]) -> Elephant {
    let proposed = entry.with(Change::default()).ok();
    let (effect, unpredicted) = proposed.map_or((None, None), |limits| effect(entry, &limits));
    let holds_bytes = matches!(&entry.state, State::Ruled(rule) if rule.limits.bytes.is_some());
    let counts = throttled.iter().find(|(id, ..)| id.0 == entry.number);
    Elephant {
        entry: entry.clone(),
        proposed,
        effect,
        unpredicted,
        lanes: holds_bytes.then(|| shared.elephants.lanes.status()),
        waiting: counts.map(|(_, waiting, _)| *waiting),
        running: counts.map(|(.., running)| *running),
        within: None,
        evaded: evaded(&entry.pattern),
        under: None,
        remark: None,
    }
}

/// Explains that a request with an additional parameter evades a rule with this pattern. Returns
/// `None` if the pattern already allows other parameters.
fn evaded(pattern: &str) -> Option<String> {
    let wider = pattern.parse::<Pattern>().ok()?.with_others()?;
    Some(format!(
        "a rule for `{pattern}` does not apply to a request with another parameter, such as \
         `&x=1`; to include those, add a [throttle] table with match = \"{wider}\" to the \
         configuration file"
    ))
}

/// Measures how the site performs under this entry's rule, over the last minute or since the rule
/// began. Returns `None` if no rule is in force.
fn measure_under_rule(shared: &Shared, entry: &Entry) -> Option<Gauge> {
    let State::Ruled(rule) = &entry.state else { return None };
    let holds = wall_clock::now().duration_since(rule.since).unsigned_abs();
    let lasted = TimeSpan::from(holds).min(MINUTE);
    let now = shared.driver.now();
    Some(shared.elephants.watched().gauge(entry, now - lasted, now))
}

/// Predicts the effect of a rule with these limits. Returns the effect, or why it is unknown.
/// Returns neither if the entry has no finding.
fn effect(entry: &Entry, limits: &RuleLimits) -> (Option<Effect>, Option<String>) {
    match entry.found.as_ref().map(|found| Effect::of(found, limits)) {
        Some(Ok(effect)) => (Some(effect), None),
        Some(Err(why)) => (None, Some(why.to_string())),
        None => (None, None),
    }
}
