//! What holds for a while instead of what the file says, in force.
//!
//! Whatever is in force is one value, [`Settings`]: an override makes another one of it, in which the mode of a class is
//! another, and that is exchanged as at a reload. Whoever changes what is in force, an operator, a reload or the end of
//! an override, holds the one lock here meanwhile; so none of them undoes what another has just done. No request takes
//! it. What is decided is written down before anybody is told that it holds.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bywash_control::{NotOverridden, Note, Overrides, Word};

use crate::settings::Settings;
use crate::shared::Shared;
use crate::talk::say;
use crate::undecided::Undecided;
use crate::{aside, aside::Inherited, wall};

/// The name of the file in `state.directory`.
const FILE: &str = "overrides";
/// Bytes of it: so many overrides with long reasons, and more.
const MOST: u64 = 1 << 20;

/// What overrides the file, and where that is kept.
#[derive(Default)]
pub(crate) struct Desk {
    overrides: Overrides,
    directory: Option<PathBuf>,
    /// It was handed over by a process that is gone.
    inherited: Option<Inherited>,
    /// Another process decides.
    is_given_away: bool,
    /// Nothing is decided, as whoever has started the process wants it.
    starts_bypassed: bool,
}

/// The lock of it.
#[derive(Default)]
pub(crate) struct Overriding(Mutex<Desk>);

impl Overriding {
    /// To be read; or, with what is in force, to be changed.
    pub(crate) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on another process decides, or this one again.
    pub(crate) fn give_away(&self, is_given_away: bool) {
        self.desk().is_given_away = is_given_away;
    }
}

impl Desk {
    pub(crate) const fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// Whether what is decided outlives this process.
    pub(crate) const fn is_kept(&self) -> bool {
        self.directory.is_some()
    }

    /// Reads what was decided in a process before this one, and puts it in force. To be called before the first
    /// request, and not before that process has ended its turn.
    pub(crate) fn open(&mut self, shared: &Shared) {
        let settings = shared.settings();
        self.directory = settings.config.state.as_ref().map(|state| state.directory.clone());
        if let Some(directory) = &self.directory {
            let was_decided = self.overrides.was_decided();
            match &self.inherited {
                Some(inherited) if inherited.is_newer(directory, was_decided) => {
                    inherited.makes_room(directory, FILE);
                    self.save();
                }
                _ => self.overrides = load(directory),
            }
        }
        let now = wall::now();
        self.overrides.began_by(now);
        let mut notes = self.overrides.tick(now);
        notes.extend(self.overrides.configured(now, &settings.class_names()));
        let ended = !notes.is_empty();
        shared.audit.note(notes);
        if ended {
            self.save();
        }
        self.put_in_force(shared, &settings);
    }

    /// An operator decides.
    ///
    /// # Errors
    /// If it cannot be; then nothing has changed.
    pub(crate) fn decide(
        &mut self,
        shared: &Shared,
        decision: impl FnOnce(&mut Overrides, &Settings) -> Result<Note, NotOverridden>,
    ) -> Result<(), Undecided<NotOverridden>> {
        if self.is_given_away {
            return Err(Undecided::GivenAway);
        }
        // Nobody reloads meanwhile: that takes this lock as well.
        let settings = shared.settings();
        let mut overrides = self.overrides.clone();
        let note = decision(&mut overrides, &settings)?;
        self.keep(&overrides).map_err(Undecided::NotKept)?;
        self.overrides = overrides;
        shared.audit.note(vec![note]);
        self.put_in_force(shared, &settings);
        Ok(())
    }

    /// Decisions are taken again, whoever wanted none.
    ///
    /// # Errors
    /// If that cannot be; then nothing has changed.
    pub(crate) fn end_bypass(
        &mut self,
        shared: &Shared,
        word: Word,
        seen: Option<u64>,
    ) -> Result<(), Undecided<NotOverridden>> {
        if self.is_given_away {
            return Err(Undecided::GivenAway);
        }
        let mut overrides = self.overrides.clone();
        let note = overrides.end_bypass(wall::now(), word, seen, self.starts_bypassed)?;
        let Some(note) = note else { return Ok(()) };
        self.keep(&overrides).map_err(Undecided::NotKept)?;
        self.overrides = overrides;
        self.starts_bypassed = false;
        shared.audit.note(vec![note]);
        self.put_in_force(shared, &shared.settings());
        Ok(())
    }

    /// Whether it is bypassed for as long as it runs, as whoever has started it wanted.
    pub(crate) const fn starts_bypassed(&self) -> bool {
        self.starts_bypassed
    }

    /// What a process before this one had overridden.
    pub(crate) fn inherit(&mut self, text: &str, inherited: Inherited) {
        match Overrides::read(text) {
            Ok(overrides) => (self.overrides, self.inherited) = (overrides, Some(inherited)),
            Err(why) => say(format_args!("what the process before has overridden is lost: {why}")),
        }
    }

    /// Whether whoever starts the process wants nothing to be decided; said again, it is another's wish.
    pub(crate) fn start_bypassed(&mut self, shared: &Shared, on: bool) {
        self.starts_bypassed = on;
        shared.set_bypass(on || self.overrides.bypasses());
    }

    /// Ends what has come to its end, also where that cannot be written down: after a restart it would end at once.
    pub(crate) fn end(&mut self, shared: &Shared) {
        if self.is_given_away {
            return;
        }
        let notes = self.overrides.tick(wall::now());
        if notes.is_empty() {
            return;
        }
        shared.audit.note(notes);
        self.save();
        self.put_in_force(shared, &shared.settings());
    }

    /// The file says this from now on; what overrides it goes on to do so.
    pub(crate) fn configured(&mut self, shared: &Shared, settings: &Settings) {
        let notes = self.overrides.configured(wall::now(), &settings.class_names());
        if !notes.is_empty() && !self.is_given_away {
            shared.audit.note(notes);
            self.save();
        }
        self.put_in_force(shared, settings);
    }

    fn put_in_force(&self, shared: &Shared, settings: &Settings) {
        let settings = settings.overridden(&self.overrides, &shared.metrics);
        shared.put_in_force(Arc::new(settings));
        shared.set_bypass(self.starts_bypassed || self.overrides.bypasses());
    }

    /// What was not asked for by anybody who could be told.
    fn save(&self) {
        if let Err(error) = self.keep(&self.overrides) {
            say(format_args!("what overrides the file cannot be written down: {error}"));
        }
    }

    fn keep(&self, overrides: &Overrides) -> io::Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        bywash_handover::save(directory, FILE, overrides.text().as_bytes())
    }
}

fn load(directory: &std::path::Path) -> Overrides {
    let read = bywash_handover::load(directory, FILE, MOST).map_err(|error| error.to_string());
    let overrides = read.and_then(|bytes| {
        let Some(bytes) = bytes else { return Ok(Overrides::default()) };
        Overrides::read(&String::from_utf8_lossy(&bytes)).map_err(|error| error.to_string())
    });
    overrides.unwrap_or_else(|why| {
        let kept = aside::put(directory, FILE);
        say(format_args!("starting without what was overridden before: {why}; {kept}"));
        Overrides::default()
    })
}
