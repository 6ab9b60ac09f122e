//! Decisions of operators in memory, and the directory in which they are saved.

use std::path::{Path, PathBuf};

use bywash_control::{Overrides, RuleStore};

use super::quarantine::{self, Inherited};
use super::writer::{Document, StateWriter, Version};

/// A set of decisions that is saved as one document: the overrides, or the rules for elephants.
pub(crate) trait Decisions: Default {
    /// The document in which the decisions are saved.
    const DOCUMENT: Document;
    /// The maximum size of the document's file in bytes. All allowed decisions fit, even with long
    /// texts.
    const MOST: u64;

    /// Parses the text that [`Decisions::text`] has returned.
    ///
    /// # Errors
    /// Returns the fault if the text is not such a document.
    fn read(text: &str) -> Result<Self, String>;

    fn text(&self) -> String;

    /// Returns whether any decision was ever taken, including decisions that were undone.
    fn was_decided(&self) -> bool;

    /// Returns these decisions with numbers that follow those of `before`.
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

/// The reason why a decision was not carried out. `R` is the type of a refusal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecisionError<R: std::error::Error + 'static> {
    /// The decision is not possible.
    #[error(transparent)]
    Refused(#[from] R),
    /// Another process is taking over the decisions, so this one accepts none.
    #[error("another process is taking over: retry in a few seconds")]
    HandedOver,
}

/// The decisions in force, with the facts about saving them. The caller keeps both behind one lock.
#[derive(Debug, Default)]
pub(crate) struct Stored<D> {
    decisions: D,
    /// The directory in which the decisions are saved; `None` if they are not saved.
    directory: Option<PathBuf>,
    /// The folder, if any, in which another process had saved the decisions that it handed over;
    /// `None` if no decisions were handed over.
    inherited: Option<Inherited>,
    /// The reason why decisions of an earlier process cannot be read; `None` if they can.
    unreadable: Option<String>,
    /// Whether another process is taking over the decisions.
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

    /// Returns whether the decisions are saved, so that they outlive this process.
    pub(crate) const fn is_saved(&self) -> bool {
        self.directory.is_some()
    }

    /// Returns whether another process is taking over the decisions. If so, this one must accept
    /// none.
    pub(crate) const fn is_handed_over(&self) -> bool {
        self.is_handed_over
    }

    /// Sets whether another process is taking over the decisions. While it is, this process accepts
    /// none. A decision that this process took after the other process has read the decisions would
    /// be lost, or would overwrite a decision of the other process.
    pub(crate) const fn hand_over(&mut self, is_handed_over: bool) {
        self.is_handed_over = is_handed_over;
    }

    /// Takes over the decisions of an earlier process from `text`. If the text cannot be read, the
    /// reason is recorded and the present decisions stay.
    pub(crate) fn inherit(&mut self, text: &str, inherited: Inherited) {
        match D::read(text) {
            Ok(decisions) => (self.decisions, self.inherited) = (decisions, Some(inherited)),
            Err(why) => self.lose(why),
        }
    }

    /// Records that the decisions that were handed over cannot be read.
    pub(crate) fn lose(&mut self, why: String) {
        self.unreadable = Some(why);
    }

    /// Reads the decisions saved in this directory, unless those that were handed over are newer.
    /// Must be called before the first request, and after the earlier process has stopped deciding.
    /// Returns whether the decisions must be saved, and the reason if earlier ones cannot be read.
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

    /// Submits the decisions to be saved. Returns their version; `None` if they are not saved.
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
