//! Temporary overrides of the configuration file, in force.
//!
//! All settings in force are one value, [`Settings`]. An override makes a new value in which the
//! mode of a class is different, and swaps it in as a reload does. Operators, reloads and the end
//! of an override all hold the one lock here while they do so, and none of them undoes a change
//! that another has just made. No request takes this lock, and nobody holds it while waiting for a
//! disk. A decision takes effect in memory at once; `state_writer` saves it.
//!
//! **Fail safe.** Overrides that cannot be read might have been a bypass, or a class that is only
//! observed. So the gateway then starts bypassed: by an override with an author, a reason and an
//! end, which an operator can undo.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bywash_control::{Mode, NotOverridden, Note, Overrides, Target, Word, escaped};
use bywash_units::Span;

use crate::settings::Settings;
use crate::shared::Shared;
use crate::state_writer::{Document, Version};
use crate::talk::say;
use crate::undecided::Undecided;
use crate::{aside, aside::Inherited, wall};

/// The size limit of the file in bytes: more than all allowed overrides with long reasons.
const MOST: u64 = 1 << 20;
/// How long a bypass lasts by default.
pub(crate) const BYPASSED: Span = Span::from_secs(24 * 3600);

/// The overrides of the file, and the place where they are saved.
#[derive(Default)]
pub(crate) struct Desk {
    overrides: Overrides,
    directory: Option<PathBuf>,
    /// Set if the overrides were handed over by another process.
    inherited: Option<Inherited>,
    /// Why the overrides handed over cannot be read.
    lost: Option<String>,
    /// Whether another process takes the decisions.
    is_given_away: bool,
    /// Whether the process was started bypassed.
    starts_bypassed: bool,
}

/// The overrides behind their lock.
#[derive(Default)]
pub(crate) struct Overriding(Mutex<Desk>);

impl Overriding {
    /// Locks the overrides, for reading, or for changing them together with the settings in force.
    pub(crate) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets whether another process takes the decisions from now on, or this one again.
    pub(crate) fn give_away(&self, is_given_away: bool) {
        self.desk().is_given_away = is_given_away;
    }
}

impl Desk {
    pub(crate) const fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// Returns whether decisions outlive this process.
    pub(crate) const fn is_kept(&self) -> bool {
        self.directory.is_some()
    }

    /// Reads the decisions of an earlier process and puts them in force. To be called before the
    /// first request, and only after that process has stopped deciding.
    pub(crate) fn open(&mut self, shared: &Shared) {
        let settings = shared.settings();
        self.directory = settings.config.state.as_ref().map(|state| state.directory.clone());
        let mut is_newer = false;
        if let Some(directory) = &self.directory {
            let was_decided = self.overrides.was_decided();
            match &self.inherited {
                Some(inherited) if inherited.is_newer(directory, was_decided) => {
                    inherited.makes_room(directory, Document::Overrides.name());
                    is_newer = true;
                }
                _ => match load(directory) {
                    Ok(overrides) => self.overrides = overrides,
                    Err(why) => self.lost = Some(why),
                },
            }
        }
        let now = wall::now();
        self.overrides.began_by(now);
        let mut notes = self.overrides.tick(now);
        notes.extend(self.overrides.configured(now, &settings.class_names()));
        notes.extend(self.lost.take().and_then(|why| self.fail_safe(shared, &why)));
        let version = (is_newer || !notes.is_empty()).then(|| self.save(shared)).flatten();
        shared.audit.note(&shared.state_writer, notes, version);
        self.put_in_force(shared, &settings);
    }

    /// Bypasses for a while, because earlier decisions are unknown.
    fn fail_safe(&mut self, shared: &Shared, why: &str) -> Option<Note> {
        say(format_args!(
            "the overrides of operators cannot be read ({why}), so the gateway is bypassed for \
             {BYPASSED}: `bywash bypass off` ends the bypass"
        ));
        shared.metrics.gauges().state_unreadable.inc();
        if self.overrides.bypasses() {
            return None;
        }
        let why = format!("the saved overrides cannot be read: {}", escaped(why));
        let why = why.chars().take(200).collect();
        let word = Word { by: "bywash".into(), why, lasts: BYPASSED };
        self.overrides.set(wall::now(), Target::Bypass, word, None, &[]).ok()
    }

    /// Puts an operator's decision in force at once, even if it cannot be saved. `is_less` says
    /// that the gateway does less from then on, which is allowed also while another process takes
    /// over.
    ///
    /// # Errors
    /// If the decision cannot be put in force. Then nothing has changed.
    pub(crate) fn decide(
        &mut self,
        shared: &Shared,
        is_less: bool,
        decision: impl FnOnce(&mut Overrides, &Settings) -> Result<Note, NotOverridden>,
    ) -> Result<Option<Version>, Undecided<NotOverridden>> {
        if self.is_given_away && !is_less {
            return Err(Undecided::GivenAway);
        }
        // The settings cannot change meanwhile: that takes this lock as well.
        let settings = shared.settings();
        let mut overrides = self.overrides.clone();
        let note = decision(&mut overrides, &settings)?;
        self.overrides = overrides;
        Ok(self.decided(shared, vec![note], &settings))
    }

    /// Ends the bypass, also one that the process was started with.
    ///
    /// # Errors
    /// If the bypass cannot be ended. Then nothing has changed.
    pub(crate) fn end_bypass(
        &mut self,
        shared: &Shared,
        word: Word,
        seen: Option<u64>,
    ) -> Result<Option<Version>, Undecided<NotOverridden>> {
        if self.is_given_away {
            return Err(Undecided::GivenAway);
        }
        let mut overrides = self.overrides.clone();
        let note = overrides.end_bypass(wall::now(), word, seen, self.starts_bypassed)?;
        let Some(note) = note else { return Ok(None) };
        self.overrides = overrides;
        self.starts_bypassed = false;
        Ok(self.decided(shared, vec![note], &shared.settings()))
    }

    fn decided(&self, shared: &Shared, notes: Vec<Note>, settings: &Settings) -> Option<Version> {
        self.put_in_force(shared, settings);
        let version = self.save(shared);
        shared.audit.note(&shared.state_writer, notes, version);
        version
    }

    /// Returns whether the gateway was started bypassed, for as long as it runs.
    pub(crate) const fn starts_bypassed(&self) -> bool {
        self.starts_bypassed
    }

    /// Takes over the overrides of an earlier process.
    pub(crate) fn inherit(&mut self, text: &str, inherited: Inherited) {
        match Overrides::read(text) {
            Ok(overrides) => (self.overrides, self.inherited) = (overrides, Some(inherited)),
            Err(why) => self.lose(&why.to_string()),
        }
    }

    /// Notes that the overrides handed over cannot be read.
    pub(crate) fn lose(&mut self, why: &str) {
        self.lost = Some(why.to_owned());
    }

    /// Sets start-up bypass (`--bypass`). A later call replaces the earlier setting.
    pub(crate) fn start_bypassed(&mut self, shared: &Shared, on: bool) {
        self.starts_bypassed = on;
        shared.set_bypass(on || self.overrides.bypasses());
    }

    /// Ends overrides whose time is over, even if that cannot be saved: after a restart they would
    /// end at once.
    pub(crate) fn end(&mut self, shared: &Shared) {
        if self.is_given_away {
            return;
        }
        let notes = self.overrides.tick(wall::now());
        if !notes.is_empty() {
            self.decided(shared, notes, &shared.settings());
        }
    }

    /// Puts a new configuration in force. Overrides stay.
    pub(crate) fn configured(&mut self, shared: &Shared, settings: &Settings) {
        let notes = self.overrides.configured(wall::now(), &settings.class_names());
        if notes.is_empty() || self.is_given_away {
            self.put_in_force(shared, settings);
        } else {
            self.decided(shared, notes, settings);
        }
    }

    fn put_in_force(&self, shared: &Shared, settings: &Settings) {
        let settings = settings.overridden(&self.overrides, &shared.metrics);
        shared.put_in_force(Arc::new(settings));
        shared.set_bypass(self.starts_bypassed || self.overrides.bypasses());
    }

    fn save(&self, shared: &Shared) -> Option<Version> {
        shared.state_writer.submit(Document::Overrides, self.overrides.text())
    }
}

/// Returns whether the gateway does less while this override is in force.
pub(crate) const fn is_less(target: &Target) -> bool {
    matches!(target, Target::Bypass | Target::Class { mode: Mode::Observe, .. })
}

fn load(directory: &std::path::Path) -> Result<Overrides, String> {
    let name = Document::Overrides.name();
    let read = bywash_handover::load(directory, name, MOST).map_err(|error| error.to_string());
    let overrides = read.and_then(|bytes| {
        let Some(bytes) = bytes else { return Ok(Overrides::default()) };
        Overrides::read(&String::from_utf8_lossy(&bytes)).map_err(|error| error.to_string())
    });
    overrides.map_err(|why| format!("{why}; {}", aside::put(directory, name)))
}
