//! What was decided, by whom and why, as lines of JSON: on standard error, in `state.directory`, if there is one, and the
//! last of them in memory.
//!
//! The file only grows, a line for each decision. One that cannot be written is said: the decision itself is where it
//! belongs, with its author. At a start the last lines of the file are read again, so that an operator sees what was decided
//! before.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bywash_control::Note;

use crate::talk::say;

/// The name of the file in `state.directory`.
const FILE: &str = "audit.jsonl";
/// Notes that are kept in memory.
const KEPT: usize = 1000;
/// Of a file this much is read at a start.
const READ: u64 = 1 << 20;

/// Says one, and soon: the next decision waits.
type Teller = Box<dyn Fn(&Note) + Send>;

/// The last decisions.
#[derive(Default)]
pub(crate) struct Audit(Mutex<Notes>);

#[derive(Default)]
pub(crate) struct Notes {
    directory: Option<PathBuf>,
    /// Whoever says them in words of its own.
    teller: Option<Teller>,
    /// The newest last.
    last: VecDeque<Note>,
    /// How many there were.
    pub(crate) revision: u64,
}

impl Audit {
    pub(crate) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this one says them, and no line of JSON does.
    pub(crate) fn tell(&self, teller: impl Fn(&Note) + Send + 'static) {
        self.notes().teller = Some(Box::new(teller));
    }

    /// From now on they are written there; what was written there before is remembered.
    pub(crate) fn open(&self, directory: Option<&Path>) {
        let mut notes = self.notes();
        notes.directory = directory.map(Path::to_owned);
        let Some(directory) = directory else { return };
        match read(&directory.join(FILE)) {
            Ok(before) => {
                notes.revision += before.len() as u64;
                let during = std::mem::take(&mut notes.last);
                notes.last = before.into_iter().chain(during).collect();
                notes.bound();
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => complain(directory, &error),
        }
    }

    pub(crate) fn note(&self, decided: Vec<Note>) {
        let mut notes = self.notes();
        for note in decided {
            // Texts in it are escaped as JSON's are: no line break and no escape of a terminal gets through.
            let line = serde_json::to_string(&note).expect("a note is made of numbers and texts");
            match &notes.teller {
                Some(teller) => teller(&note),
                None => say(format_args!("decided {line}")),
            }
            if let Some(directory) = &notes.directory
                && let Err(error) = append(directory, &line)
            {
                complain(directory, &error);
            }
            notes.last.push_back(note);
            notes.revision += 1;
        }
        notes.bound();
    }
}

impl Notes {
    /// Whether they outlive this process.
    pub(crate) const fn are_kept(&self) -> bool {
        self.directory.is_some()
    }

    /// So many, the newest first.
    pub(crate) fn newest(&self, most: usize) -> Vec<Note> {
        self.last.iter().rev().take(most).cloned().collect()
    }

    fn bound(&mut self) {
        let too_many = self.last.len().saturating_sub(KEPT);
        self.last.drain(..too_many);
    }
}

fn complain(directory: &Path, error: &io::Error) {
    say(format_args!("{}: {error}", directory.join(FILE).display()));
}

fn append(directory: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .read(true)
        .mode(0o600)
        .open(directory.join(FILE))?;
    // A line that was torn by the end of a process takes none with it.
    let torn = if is_torn(&mut file)? { "\n" } else { "" };
    file.write_all(format!("{torn}{line}\n").as_bytes())?;
    file.sync_data()
}

/// Whether there is something behind the last line break.
fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// The last of them. A line that is none is left out: the file is there to be read by people, who may edit it.
fn read(path: &Path) -> io::Result<Vec<Note>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(READ)))?;
    let mut bytes = Vec::new();
    file.take(READ).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use bywash_control::{Subject, Timestamp, What};

    use super::*;

    fn note(number: i64) -> Note {
        Note {
            at: Timestamp::from_second(1_800_000_000 + number).unwrap(),
            subject: Subject::Bypass,
            what: What::Overridden,
            by: "ana".into(),
            why: format!("because of\n{number}\u{1b}[31m"),
            grants: None,
            until: None,
        }
    }

    #[test]
    fn what_was_decided_before_is_remembered_and_what_is_no_note_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let audit = Audit::default();
        audit.open(Some(folder.path()));
        audit.note(vec![note(1), note(2)]);
        let file = folder.path().join(FILE);
        let mut text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\u{1b}'));
        text.push_str("what is this?\n{\"at\":\"2026-");
        std::fs::write(&file, text).unwrap();
        let next = Audit::default();
        next.open(Some(folder.path()));
        next.note(vec![note(3)]);
        let notes = next.notes();
        assert_eq!(notes.newest(10), [note(3), note(2), note(1)]);
        assert_eq!(notes.newest(1), [note(3)]);
        assert_eq!(notes.revision, 3);
    }

    #[test]
    fn no_more_than_the_last_are_kept_in_memory() {
        let audit = Audit::default();
        audit.note((0..).take(KEPT + 5).map(note).collect());
        let notes = audit.notes();
        assert_eq!(notes.newest(usize::MAX).len(), KEPT);
        assert_eq!(notes.newest(usize::MAX).last(), Some(&note(5)));
        assert!(!notes.are_kept());
    }
}
