//! Puts temporary overrides of the configuration file in force.
//!
//! All settings in force are one value, [`Settings`]. An override makes a new value in which the
//! mode of a class is different, and swaps it in as a reload does. Operators, reloads and the end
//! of an override all hold the same lock here while they do so. So none of them undoes a change
//! that another has just made. No request takes this lock, and no thread holds it while waiting for
//! a disk. A decision takes effect in memory at once; `state_writer` saves it.
//!
//! **Fail safe.** Overrides that cannot be read might have been a bypass, or a class that is only
//! observed. So the gateway then starts bypassed. This bypass is an override with an author, a
//! reason and an end, which an operator can undo.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bywash_control::{BYWASH, DecisionMeta, Mode, NotOverridden, Note, Overrides, Target};
use bywash_engine::PopulationKey;
use bywash_terminal::stderr::say;
use bywash_terminal::text::escaped;
use bywash_units::TimeSpan;

use crate::process::wall_clock;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::state::stored::{DecisionError, Stored};
use crate::state::writer::Version;

/// The default duration of a bypass.
pub(crate) const BYPASSED: TimeSpan = TimeSpan::from_secs(24 * 3600);

/// Reads the overrides of an earlier process and puts them in force. If they cannot be read, the
/// gateway is bypassed.
pub(super) fn open(shared: &Shared, directory: Option<&Path>) {
    let settings = shared.settings();
    let mut overrides = shared.overrides();
    let (must_save, unreadable) = overrides.open(directory);
    let now = wall_clock::now();
    overrides.get_mut().began_by(now);
    let mut notes = overrides.get_mut().tick(now);
    notes.extend(overrides.get_mut().configured(now, &settings.present_class_names()));
    notes.extend(unreadable.and_then(|why| fail_safe(shared, overrides.get_mut(), &why)));
    notes.extend(catch_up(shared, overrides.get_mut(), &settings));
    let must_save = must_save || !notes.is_empty();
    let version = must_save.then(|| overrides.save(&shared.state_writer)).flatten();
    shared.audit.note(&shared.state_writer, notes, version);
    put_in_force(shared, overrides.get(), &settings);
}

/// Bypasses the gateway for [`BYPASSED`], because the earlier overrides cannot be read for the
/// reason `why`. Returns the note for the audit log; `None` if the gateway is bypassed already.
fn fail_safe(shared: &Shared, overrides: &mut Overrides, why: &str) -> Option<Note> {
    say(format_args!(
        "the overrides of operators cannot be read ({why}), so the gateway is bypassed for {BYPASSED}: \
         `bywash bypass off` ends the bypass"
    ));
    shared.metrics.gauges().state_unreadable.inc();
    if overrides.bypasses() {
        return None;
    }
    let why = format!("the saved overrides cannot be read: {}", escaped(why));
    let why = why.chars().take(200).collect();
    let meta = DecisionMeta { by: BYWASH.into(), why, lasts: BYPASSED };
    overrides.set(wall_clock::now(), Target::Bypass, meta, None, &[]).ok()
}

/// Puts an operator's decision in force at once, even if it cannot be saved. Returns the version to
/// be saved; `None` if there is no state directory. `is_less` says whether the gateway enforces
/// less from then on. Such a decision is allowed also while another process takes over.
///
/// # Errors
/// Returns an error if the decision cannot be put in force. Then nothing has changed.
pub(crate) fn decide(
    shared: &Shared,
    is_less: bool,
    decision: impl FnOnce(&mut Overrides, &Settings) -> Result<Note, NotOverridden>,
) -> Result<Option<Version>, DecisionError<NotOverridden>> {
    let mut stored = shared.overrides();
    if stored.is_handed_over() && !is_less {
        return Err(DecisionError::HandedOver);
    }
    // The settings cannot change meanwhile, because a change takes this lock as well.
    let settings = shared.settings();
    let mut overrides = stored.get().clone();
    let note = decision(&mut overrides, &settings)?;
    stored.set(overrides);
    Ok(decided(shared, &stored, vec![note], &settings))
}

/// Puts a decision of another gateway in force, unless a newer one about its subject is known.
///
/// # Errors
/// Returns an error if the decision cannot be put in force. Then nothing has changed.
#[cfg(feature = "fleet")]
pub(super) fn follow(shared: &Shared, decision: &Note) -> Result<(), DecisionError<NotOverridden>> {
    let mut stored = shared.overrides();
    let now = wall_clock::now();
    if !shared.audit.notes().fleet.is_news(now, decision) {
        return Ok(());
    }
    if stored.is_handed_over() {
        return Err(DecisionError::HandedOver);
    }
    let settings = shared.settings();
    let mut overrides = stored.get().clone();
    if overrides.follow(now, decision, &settings.present_class_names())? {
        stored.set(overrides);
        decided(shared, &stored, vec![decision.clone()], &settings);
    } else {
        shared.audit.notes().fleet.learn(now, decision);
    }
    Ok(())
}

/// Puts the decisions of the fleet in force that hold and are not in force, because their class was
/// unknown or they could not be read when they were learned. Returns their notes for the audit log.
fn catch_up(shared: &Shared, overrides: &mut Overrides, settings: &Settings) -> Vec<Note> {
    if settings.config.fleet.is_none() {
        return Vec::new();
    }
    let now = wall_clock::now();
    let mut known = shared.audit.notes().fleet.known(now);
    let classes = settings.present_class_names();
    known.retain(|note| {
        overrides.lacks(now, note) && overrides.follow(now, note, &classes).unwrap_or(false)
    });
    known.into_iter().map(|note| Note { unwritten: None, ..note }).collect()
}

/// Ends the bypass, also one that the process was started with. `seen` is the revision of the
/// overrides that the operator has seen. Returns the version to be saved; `None` if there was no
/// bypass or there is no state directory.
///
/// # Errors
/// Returns an error if the bypass cannot be ended. Then nothing has changed.
pub(crate) fn end_bypass(
    shared: &Shared,
    meta: DecisionMeta,
    seen: Option<u64>,
) -> Result<Option<Version>, DecisionError<NotOverridden>> {
    let mut stored = shared.overrides();
    if stored.is_handed_over() {
        return Err(DecisionError::HandedOver);
    }
    let mut overrides = stored.get().clone();
    let starts_bypassed = shared.starts_bypassed.load(Ordering::Relaxed);
    let note = overrides.end_bypass(wall_clock::now(), meta, seen, starts_bypassed)?;
    let Some(note) = note else { return Ok(None) };
    stored.set(overrides);
    shared.starts_bypassed.store(false, Ordering::Relaxed);
    Ok(decided(shared, &stored, vec![note], &shared.settings()))
}

fn decided(
    shared: &Shared,
    overrides: &Stored<Overrides>,
    notes: Vec<Note>,
    settings: &Settings,
) -> Option<Version> {
    put_in_force(shared, overrides.get(), settings);
    let version = overrides.save(&shared.state_writer);
    shared.audit.note(&shared.state_writer, notes, version);
    version
}

/// Sets whether start-up bypass (`--bypass`) is on. A later call replaces the earlier setting.
pub(crate) fn start_bypassed(shared: &Shared, on: bool) {
    let overrides = shared.overrides();
    shared.starts_bypassed.store(on, Ordering::Relaxed);
    shared.set_bypass(on || overrides.get().bypasses());
}

/// Ends overrides whose time is over. They end even if that cannot be saved, because after a
/// restart they would end at once anyway. While another process takes over, nothing ends.
pub(super) fn end(shared: &Shared) {
    let mut overrides = shared.overrides();
    if overrides.is_handed_over() {
        return;
    }
    let notes = overrides.get_mut().tick(wall_clock::now());
    if !notes.is_empty() {
        decided(shared, &overrides, notes, &shared.settings());
    }
}

/// Puts new settings in force after a reload. Overrides stay, except those of classes that no
/// longer exist.
pub(crate) fn configured(shared: &Shared, settings: &Settings) {
    let mut overrides = shared.overrides();
    let classes = settings.present_class_names();
    let mut notes = overrides.get_mut().configured(wall_clock::now(), &classes);
    if !overrides.is_handed_over() {
        notes.extend(catch_up(shared, overrides.get_mut(), settings));
    }
    if notes.is_empty() || overrides.is_handed_over() {
        put_in_force(shared, overrides.get(), settings);
    } else {
        decided(shared, &overrides, notes, settings);
    }
}

fn put_in_force(shared: &Shared, overrides: &Overrides, settings: &Settings) {
    shared.put_in_force(Arc::new(settings.overridden(overrides, &shared.metrics)));
    let ranked = overrides.populations();
    let ranked = ranked.map(|(name, level, _)| (PopulationKey(name), usize::from(level)));
    let agents = settings.agents.iter().flat_map(|agents| agents.populations(shared.secret));
    let agents = agents.map(|population| (population.key, population.level));
    // The engine takes the first level of a population, so an override precedes the configuration.
    shared.driver.rank_populations(ranked.chain(agents).collect());
    shared.set_bypass(shared.starts_bypassed.load(Ordering::Relaxed) || overrides.bypasses());
}

/// Returns whether the gateway enforces less while this override is in force: a bypass, or a class
/// that is only observed.
pub(crate) const fn is_less(target: &Target) -> bool {
    matches!(target, Target::Bypass | Target::Class { mode: Mode::Observe, .. })
}
