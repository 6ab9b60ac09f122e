//! The audit log: operators' decisions with author and reason, as JSON lines. They go to standard
//! error, and to a file in `state.directory` if that is configured. The last [`KEPT`] of them are
//! also held in memory.
//!
//! The file only grows, by one line per decision; `writer.rs` appends the lines. At start, the
//! gateway reads the last lines of the file, so that an operator sees the decisions of earlier
//! processes.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bywash_control::{FleetDecisions, Note};
use bywash_terminal::stderr::say;
use bywash_terminal::text::printable_json;

use crate::process::wall_clock;
use crate::state::writer::{StateWriter, Version};

/// The name of the audit log in `state.directory`.
pub(crate) const FILE: &str = "audit.jsonl";
/// The maximum number of notes, each of one decision, that are held in memory.
const KEPT: usize = 1000;
/// The maximum number of bytes that are read from the end of the audit log at start.
const READ: u64 = 1 << 20;

/// A function that reports one decision. It must return quickly, because it holds up the next
/// decision.
type Reporter = Box<dyn Fn(&Note) + Send>;

/// The notes of the last decisions, the newest last, behind a lock.
#[derive(Default)]
pub(crate) struct Audit(Mutex<Notes>);

#[derive(Default)]
pub(crate) struct Notes {
    are_kept: bool,
    /// Reports decisions in place of JSON lines on standard error, if set.
    reporter: Option<Reporter>,
    /// The last notes, newest last. Each has the version of the document that contains its
    /// decision; `None` for a note that was read from the audit log at start.
    last: VecDeque<(Note, Option<Version>)>,
    /// The name of this gateway in its fleet; `None` if it belongs to none.
    gateway: Option<String>,
    /// The decisions that hold at all gateways of the fleet.
    pub(crate) fleet: FleetDecisions,
    /// The number of notes so far: those read from the audit log at start and those added since.
    pub(crate) revision: u64,
}

impl Audit {
    pub(crate) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports decisions through `reporter` from now on, and no longer as JSON lines on standard
    /// error.
    pub(crate) fn report_to(&self, reporter: impl Fn(&Note) + Send + 'static) {
        self.notes().reporter = Some(Box::new(reporter));
    }

    /// Reads the notes that earlier processes wrote in this directory, if one is given. A missing
    /// file is not an error; any other error is logged. `gateway` is the name of this gateway in its
    /// fleet, if it belongs to one.
    pub(crate) fn open(&self, directory: Option<&Path>, gateway: Option<&str>) {
        let now = wall_clock::now();
        let mut notes = self.notes();
        notes.are_kept = directory.is_some();
        notes.gateway = gateway.map(str::to_owned);
        let Some(directory) = directory else { return };
        match read(&directory.join(FILE)) {
            Ok(before) => {
                notes.revision += before.len() as u64;
                for note in &before {
                    notes.fleet.learn(now, note);
                }
                let during = std::mem::take(&mut notes.last);
                notes.last = before.into_iter().map(|note| (note, None)).chain(during).collect();
                notes.bound();
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => say(format_args!("{}: {error}", directory.join(FILE).display())),
        }
    }

    /// Records and reports decisions. `version` is the version of the document that contains them.
    /// Does not wait for the disk.
    pub(crate) fn note(&self, writer: &StateWriter, decided: Vec<Note>, version: Option<Version>) {
        let mut notes = self.notes();
        for mut note in decided {
            notes.share(&mut note);
            match &notes.reporter {
                Some(reporter) => reporter(&note),
                None => say(format_args!("decided {}", line(&note))),
            }
            writer.append(note.clone(), version);
            notes.last.push_back((note, version));
            notes.revision += 1;
        }
        notes.bound();
    }
}

impl Notes {
    /// Returns whether notes are written to a file, so that they outlive this process.
    pub(crate) const fn are_kept(&self) -> bool {
        self.are_kept
    }

    /// Returns up to `most` notes, newest first. A note whose decision is not saved contains the
    /// reason.
    pub(crate) fn newest(&self, most: usize, writer: &StateWriter) -> Vec<Note> {
        let with_reason = |(note, version): &(Note, Option<Version>)| {
            let unwritten = writer.why_unwritten(*version);
            Note { unwritten: unwritten.or_else(|| note.unwritten.clone()), ..note.clone() }
        };
        self.last.iter().rev().take(most).map(with_reason).collect()
    }

    /// Keeps a decision that holds for the fleet: one of another gateway, or one that an operator
    /// has made at this gateway, which gets its stamp here.
    fn share(&mut self, note: &mut Note) {
        if note.fleet.is_some() {
            self.fleet.learn(wall_clock::now(), note);
        } else if let Some(gateway) = &self.gateway {
            self.fleet.stamp(gateway, note.at, note);
        }
    }

    fn bound(&mut self) {
        let too_many = self.last.len().saturating_sub(KEPT);
        self.last.drain(..too_many);
    }
}

/// Formats a note as a line of the audit log. Line breaks, terminal escapes and invisible
/// characters are escaped.
pub(crate) fn line(note: &Note) -> String {
    let json = serde_json::to_string(note).expect("a note is made of numbers and texts");
    printable_json(&json)
}

/// Appends a line to the audit log in this directory, and waits until it is on the disk. On an
/// error, nothing of the line stays in the file.
pub(crate) fn append(directory: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .read(true)
        .mode(0o600)
        .open(directory.join(FILE))?;
    let length = file.metadata()?.len();
    // A process that ended while writing may have left a partial last line. It is terminated, so
    // that the new line stands alone.
    let torn = if is_torn(&mut file)? { "\n" } else { "" };
    let written = file.write_all(format!("{torn}{line}\n").as_bytes());
    if written.is_err() {
        // The caller retries the line, so a partly written one is removed.
        let _ = file.set_len(length);
    }
    written?;
    file.sync_data()
}

/// Returns whether the last line of the audit log is incomplete: its file does not end with a line
/// break.
fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Reads the last notes of an audit log, at most [`READ`] bytes. Skips a line that is not a valid
/// note, because people may edit the file.
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
    use bywash_terminal::text::is_unsafe;

    use super::*;

    fn note(number: i64) -> Note {
        Note {
            at: Timestamp::from_second(1_800_000_000 + number).unwrap(),
            subject: Subject::Bypass,
            what: What::Overridden,
            by: "ana".into(),
            why: format!("because of\n{number}\u{1b}[31m \u{202e}\u{200b}\u{e0001}"),
            limits: None,
            until: None,
            unwritten: None,
            fleet: None,
        }
    }

    #[test]
    fn what_was_decided_before_is_remembered_and_what_is_no_note_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        for number in [1, 2] {
            append(folder.path(), &line(&note(number))).unwrap();
        }
        let mut text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains(|c: char| c != '\n' && is_unsafe(c)), "{text:?}");
        text.push_str("what is this?\n{\"at\":\"2026-");
        std::fs::write(&file, text).unwrap();
        append(folder.path(), &line(&note(3))).unwrap();
        let next = Audit::default();
        next.open(Some(folder.path()), None);
        let (notes, writer) = (next.notes(), StateWriter::new());
        assert_eq!(notes.newest(10, &writer), [note(3), note(2), note(1)]);
        assert_eq!(notes.newest(1, &writer), [note(3)]);
        assert_eq!(notes.revision, 3);
    }

    #[test]
    fn no_more_than_the_last_are_kept_in_memory() {
        let (audit, writer) = (Audit::default(), StateWriter::new());
        audit.note(&writer, (0..).take(KEPT + 5).map(note).collect(), None);
        let notes = audit.notes();
        assert_eq!(notes.newest(usize::MAX, &writer).len(), KEPT);
        assert_eq!(notes.newest(usize::MAX, &writer).last(), Some(&note(5)));
        assert!(!notes.are_kept());
    }
}
