//! Decisions of operators in memory, and the directory in which they are saved.

use std::path::{Path, PathBuf};

use bywash_control::{Overrides, RuleStore};

use super::quarantine::{self, Inherited};
use super::writer::{Document, StateWriter, Version};

/// A set of decisions that is saved as one document.
pub(crate) trait Decisions: Default {
    /// The file that they are saved in.
    const DOCUMENT: Document;
    /// The size limit of that file in bytes: more than all allowed decisions with long texts.
    const MOST: u64;

    /// Reads the text that [`Decisions::text`] has returned.
    ///
    /// # Errors
    /// If it is not such a text.
    fn read(text: &str) -> Result<Self, String>;

    fn text(&self) -> String;

    /// Returns whether anything was ever decided.
    fn was_decided(&self) -> bool;

    /// Returns these decisions, numbered after those in `before`.
    fn numbered_after(self, before: &Self) -> Self {
        let _ = before;
        self
    }
}

impl Decisions for Overrides {
    const DOCUMENT: Document = Document::Overrides;
    const MOST: u64 = 1 << 20;

    fn read(text: &str) -> Result<Self, String> {
        Self::read(text).map_err(|why| why.to_string())
    }

    fn text(&self) -> String {
        self.text()
    }

    fn was_decided(&self) -> bool {
        self.was_decided()
    }
}

impl Decisions for RuleStore {
    const DOCUMENT: Document = Document::Elephants;
    const MOST: u64 = 4 << 20;

    fn read(text: &str) -> Result<Self, String> {
        Self::read(text).map_err(|why| why.to_string())
    }

    fn text(&self) -> String {
        self.text()
    }

    fn was_decided(&self) -> bool {
        self.was_decided()
    }

    fn numbered_after(self, before: &Self) -> Self {
        self.numbered_after(before)
    }
}

/// A decision that was not carried out; `R` is why it is not possible.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecisionError<R: std::error::Error + 'static> {
    /// The decision is not possible.
    #[error(transparent)]
    Refused(#[from] R),
    /// Another process is reading the decisions just now.
    #[error("another process is taking over: retry in a few seconds")]
    HandedOver,
}

/// Decisions in force, behind one lock with the facts about saving them.
#[derive(Debug, Default)]
pub(crate) struct Stored<D> {
    decisions: D,
    /// The directory that they are saved in; `None` if they are not saved.
    directory: Option<PathBuf>,
    /// Set if another process has handed them over.
    inherited: Option<Inherited>,
    /// Why decisions of an earlier process cannot be read.
    unreadable: Option<String>,
    /// Whether another process takes the decisions.
    is_handed_over: bool,
}

impl<D: Decisions> Stored<D> {
    pub(crate) const fn get(&self) -> &D {
        &self.decisions
    }

    pub(crate) const fn get_mut(&mut self) -> &mut D {
        &mut self.decisions
    }

    pub(crate) fn set(&mut self, decisions: D) {
        self.decisions = decisions;
    }

    /// Returns whether decisions outlive this process.
    pub(crate) const fn is_saved(&self) -> bool {
        self.directory.is_some()
    }

    /// Returns whether another process takes the decisions.
    pub(crate) const fn is_handed_over(&self) -> bool {
        self.is_handed_over
    }

    /// Sets whether another process takes the decisions from now on, or this one again. Otherwise a
    /// decision made here after that process has read them would be lost, or would overwrite one of
    /// its decisions.
    pub(crate) const fn hand_over(&mut self, is_handed_over: bool) {
        self.is_handed_over = is_handed_over;
    }

    /// Takes over the decisions of an earlier process.
    pub(crate) fn inherit(&mut self, text: &str, inherited: Inherited) {
        match D::read(text) {
            Ok(decisions) => (self.decisions, self.inherited) = (decisions, Some(inherited)),
            Err(why) => self.lose(why),
        }
    }

    /// Notes that the decisions that were handed over cannot be read.
    pub(crate) fn lose(&mut self, why: String) {
        self.unreadable = Some(why);
    }

    /// Reads the decisions that were saved in this directory, unless those that were handed over
    /// are newer. To be called before the first request, and only after the earlier process has
    /// stopped deciding. Returns whether the decisions must be saved, and why earlier ones cannot
    /// be read.
    pub(crate) fn open(&mut self, directory: Option<&Path>) -> (bool, Option<String>) {
        self.directory = directory.map(Path::to_owned);
        let mut must_save = false;
        if let Some(directory) = directory {
            let was_decided = self.decisions.was_decided();
            match &self.inherited {
                Some(inherited) if inherited.is_newer(directory, was_decided) => {
                    inherited.makes_room(directory, D::DOCUMENT.name());
                    must_save = true;
                }
                _ => match load::<D>(directory) {
                    Ok(saved) => self.decisions = saved.numbered_after(&self.decisions),
                    Err(why) => self.unreadable = Some(why),
                },
            }
        }
        (must_save, self.unreadable.take())
    }

    /// Submits the decisions to be saved.
    pub(crate) fn save(&self, writer: &StateWriter) -> Option<Version> {
        writer.submit(D::DOCUMENT, self.decisions.text())
    }
}

fn load<D: Decisions>(directory: &Path) -> Result<D, String> {
    let name = D::DOCUMENT.name();
    let read = bywash_handover::load(directory, name, D::MOST).map_err(|error| error.to_string());
    let decisions = read.and_then(|bytes| {
        bytes.map_or_else(|| Ok(D::default()), |bytes| D::read(&String::from_utf8_lossy(&bytes)))
    });
    decisions.map_err(|why| format!("{why}; {}", quarantine::put(directory, name)))
}
