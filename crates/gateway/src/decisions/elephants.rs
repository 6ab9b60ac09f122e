//! Puts decisions about elephants in force. Each change of the rule store takes effect and submits
//! the store's text to be saved, under one lock. No request takes that lock, and no thread holds it
//! while waiting for a disk.

use std::path::Path;

use bywash_control::{FileRule, Gauge, Note, Refused, RuleStore, Subject, What};
use bywash_terminal::stderr::say;
use bywash_units::TimeSpan;

use super::watch::{MINUTE, before};
use crate::process::wall_clock;
use crate::shared::Shared;
use crate::state::stored::DecisionError;
use crate::state::writer::Version;

/// Reads the rules that an earlier process had in force, and puts them in force together with those
/// of the configuration file. If the earlier rules cannot be read, that is logged and counted, and
/// only the rules of the configuration file are in force.
pub(super) fn open(shared: &Shared, directory: Option<&Path>) {
    let mut findings = shared.elephants.findings();
    let (must_save, unreadable) = findings.store.open(directory);
    if let Some(why) = unreadable {
        shared.metrics.gauges().state_unreadable.inc();
        say(format_args!("earlier rules for elephants cannot be read: {why}"));
    }
    let now = wall_clock::now();
    let store = findings.store.get_mut();
    store.began_by(now);
    // Rules whose time ended while no process ran must not be in force even for a moment. Their
    // trials were not measured.
    let notes = store.tick(now, |_, _, _| Gauge::default());
    let must_save = must_save || !notes.is_empty();
    let version = must_save.then(|| findings.store.save(&shared.state_writer)).flatten();
    shared.audit.note(&shared.state_writer, notes, version);
    shared.elephants.put_in_force(findings.store.get(), &shared.driver);
    drop(findings);
    configured(shared);
}

/// Puts the rules of the configuration file in force. If that is not possible, it is logged.
pub(crate) fn configured(shared: &Shared) {
    let settings = shared.settings();
    let rules: Vec<FileRule> = settings.config.elephants.throttles.iter().map(written).collect();
    let decided = decide(shared, |store| store.file_says(wall_clock::now(), &rules));
    if let Err(why) = decided {
        say(format_args!("the [throttle] rules of the configuration file are not in force: {why}"));
    }
    catch_up(shared);
}

/// Changes the rule store and puts its rules in force at once, even if the store cannot be saved.
/// Returns the version to be saved; `None` if nothing needs to be saved now.
///
/// # Errors
/// Returns an error if the change is not possible, or if another process takes over. Then nothing
/// has changed.
pub(crate) fn decide(
    shared: &Shared,
    decision: impl FnOnce(&mut RuleStore) -> Result<Vec<Note>, Refused>,
) -> Result<Option<Version>, DecisionError<Refused>> {
    let mut findings = shared.elephants.findings();
    if findings.store.is_handed_over() {
        return Err(DecisionError::HandedOver);
    }
    let mut store = findings.store.get().clone();
    let notes = decision(&mut store)?;
    let has_other_exempt = store.exempt(&shared.elephants.watched());
    findings.store.set(store);
    findings.revision += 1;
    let has_notes = !notes.is_empty();
    if !has_notes && !has_other_exempt {
        // Only evidence can have changed. It is saved with the next decision.
        return Ok(None);
    }
    shared.elephants.put_in_force(findings.store.get(), &shared.driver);
    let version = findings.store.save(&shared.state_writer);
    shared.audit.note(&shared.state_writer, notes, version);
    Ok(version.filter(|_| has_notes))
}

/// Puts a decision of another gateway in force, unless a newer one about its subject is known.
///
/// # Errors
/// Returns an error if the decision cannot be put in force. Then no decision has changed.
#[cfg(feature = "fleet")]
pub(super) fn follow(shared: &Shared, decision: &Note) -> Result<(), DecisionError<Refused>> {
    let now = wall_clock::now();
    if !shared.audit.notes().fleet.is_news(now, decision) {
        return Ok(());
    }
    decide(shared, |store| {
        // Another decision may have come first.
        if !shared.audit.notes().fleet.is_news(now, decision) {
            return Ok(Vec::new());
        }
        let note = follow_in(shared, store, decision)?;
        if note.is_none() {
            shared.audit.notes().fleet.learn(now, decision);
        }
        Ok(note.into_iter().collect())
    })
    .map(|_| ())
}

/// Puts a decision of another gateway in force in `store`. Returns the note for the audit log;
/// `None` if nothing has changed.
fn follow_in(
    shared: &Shared,
    store: &mut RuleStore,
    decision: &Note,
) -> Result<Option<Note>, Refused> {
    let now = wall_clock::now();
    let Some(number) = store.follow(now, decision)? else { return Ok(None) };
    let until = decision.until.filter(|_| decision.what == What::Tried);
    let lasted = until.map(|until| decision.at.duration_until(until).unsigned_abs());
    let lasted = lasted.map_or(MINUTE, TimeSpan::from);
    let measured = store
        .entry(number)
        .ok()
        .and_then(|entry| before(&shared.elephants.watched(), entry, shared.driver.now(), lasted));
    store.was_before(now, number, measured);
    let mut note = Note { unwritten: None, ..decision.clone() };
    // Each gateway has numbers of its own.
    if let Subject::Elephant { number: shown, .. } = &mut note.subject {
        *shown = number;
    }
    Ok(Some(note))
}

/// Puts the decisions of the fleet in force that hold and are not in force, because they were not
/// possible or could not be read when they were learned.
fn catch_up(shared: &Shared) {
    if shared.settings().config.fleet.is_none() {
        return;
    }
    let caught_up = decide(shared, |store| {
        let now = wall_clock::now();
        let mut known = shared.audit.notes().fleet.known(now);
        known.retain(|note| store.lacks(now, note));
        let mut notes = Vec::new();
        for decision in known {
            let mut changed = store.clone();
            // What is still not possible is tried again after the next reload.
            if let Ok(Some(note)) = follow_in(shared, &mut changed, &decision) {
                *store = changed;
                notes.push(note);
            }
        }
        Ok(notes)
    });
    // A process that takes over catches up itself.
    drop(caught_up);
}

/// Ends rules whose time is over. `tick` ends them in the store and returns the notes about them.
/// They end even if that cannot be saved, because after a restart they would end at once anyway.
/// While another process takes over, nothing ends.
pub(super) fn end(shared: &Shared, tick: impl FnOnce(&mut RuleStore) -> Vec<Note>) {
    let mut findings = shared.elephants.findings();
    if findings.store.is_handed_over() {
        return;
    }
    let notes = tick(findings.store.get_mut());
    if notes.is_empty() {
        return;
    }
    shared.elephants.put_in_force(findings.store.get(), &shared.driver);
    findings.revision += 1;
    let version = findings.store.save(&shared.state_writer);
    shared.audit.note(&shared.state_writer, notes, version);
}

fn written(throttle: &bywash_config::Throttle) -> FileRule {
    let bywash_config::Throttle { pattern, why, rule, bytes } = throttle;
    let limits = bywash_control::RuleLimits {
        max_concurrency: rule.max_concurrency,
        rate: rule.rate.map(bywash_units::Rate::get),
        queue: rule.queue,
        wait: rule.wait,
        bytes: *bytes,
    };
    FileRule { pattern: pattern.clone(), limits, why: why.clone() }
}
