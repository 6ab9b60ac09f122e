//! What holds for a while instead of what the file says, in force.
//!
//! Whatever is in force is one value, [`Settings`]: an override makes another one of it, in which the mode of a class is
//! another, and that is exchanged as at a reload. Whoever puts something else in force, an operator, a reload or the end of
//! an override, holds the one lock here meanwhile; so none of them undoes what another has just done. No request takes
//! it, and nobody holds it while waiting for a disk. A decision holds in memory at once; `state_writer` writes it down.
//!
//! **Fail safe.** Overrides that cannot be read might have been a bypass, or a class that is only observed. So the gateway
//! starts bypassed then: by an override with an author, a reason and an end, which an operator can undo.

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

/// Bytes of the file: so many overrides with long reasons, and more.
const MOST: u64 = 1 << 20;
/// How long nothing is decided if nobody says how long.
pub(crate) const BYPASSED: Span = Span::from_secs(24 * 3600);

/// What overrides the file, and where that is kept.
#[derive(Default)]
pub(crate) struct Desk {
    overrides: Overrides,
    directory: Option<PathBuf>,
    /// It was handed over by a process that is gone.
    inherited: Option<Inherited>,
    /// Why what was handed over cannot be read.
    lost: Option<String>,
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

    /// Decides nothing for a while, as nobody knows what was decided before.
    fn fail_safe(&mut self, shared: &Shared, why: &str) -> Option<Note> {
        say(format_args!(
            "what operators had overridden cannot be read ({why}), so nothing is decided for {BYPASSED}: \
             `bywash bypass off` ends that"
        ));
        shared.metrics.gauges().state_unreadable.inc();
        if self.overrides.bypasses() {
            return None;
        }
        let why = format!("what was overridden before cannot be read: {}", escaped(why));
        let why = why.chars().take(200).collect();
        let word = Word { by: "bywash".into(), why, lasts: BYPASSED };
        self.overrides.set(wall::now(), Target::Bypass, word, None, &[]).ok()
    }

    /// Puts an operator's decision in force at once, whatever the disk says. `is_less`: the gateway does less from then on,
    /// which is possible also while another process takes over.
    ///
    /// # Errors
    /// If it cannot be; then nothing has changed.
    pub(crate) fn decide(
        &mut self,
        shared: &Shared,
        is_less: bool,
        decision: impl FnOnce(&mut Overrides, &Settings) -> Result<Note, NotOverridden>,
    ) -> Result<Option<Version>, Undecided<NotOverridden>> {
        if self.is_given_away && !is_less {
            return Err(Undecided::GivenAway);
        }
        // Nobody puts other settings in force meanwhile: that takes this lock as well.
        let settings = shared.settings();
        let mut overrides = self.overrides.clone();
        let note = decision(&mut overrides, &settings)?;
        self.overrides = overrides;
        Ok(self.decided(shared, vec![note], &settings))
    }

    /// Takes decisions again, also if the process was started without.
    ///
    /// # Errors
    /// If that cannot be; then nothing has changed.
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

    /// Whether it is bypassed for as long as it runs, as whoever has started it wanted.
    pub(crate) const fn starts_bypassed(&self) -> bool {
        self.starts_bypassed
    }

    /// Takes over what a process before this one had overridden.
    pub(crate) fn inherit(&mut self, text: &str, inherited: Inherited) {
        match Overrides::read(text) {
            Ok(overrides) => (self.overrides, self.inherited) = (overrides, Some(inherited)),
            Err(why) => self.lose(&why.to_string()),
        }
    }

    /// Says that what was handed over cannot be read.
    pub(crate) fn lose(&mut self, why: &str) {
        self.lost = Some(why.to_owned());
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
        if !notes.is_empty() {
            self.decided(shared, notes, &shared.settings());
        }
    }

    /// The file says this from now on; what overrides it goes on to do so.
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

/// Whether the gateway does less where this is in force than where it is not.
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
