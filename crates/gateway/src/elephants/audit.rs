//! What was decided, by whom and why, as lines of JSON: on standard error, and in `state.directory`, if there is one.
//!
//! The file only grows, a line for each decision. One that cannot be written is said: the decision itself is in
//! the book, with its author.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use bywash_control::Note;

/// The name of the file in `state.directory`.
const FILE: &str = "elephants.audit.jsonl";

pub(super) fn note(directory: Option<&Path>, note: &Note) {
    // Texts in it are escaped as JSON's are: no line break and no escape of a terminal gets through.
    let line = serde_json::to_string(note).expect("a note is made of numbers and texts");
    eprintln!("bywash: elephant {line}");
    let Some(directory) = directory else { return };
    if let Err(error) = append(directory, &line) {
        eprintln!("bywash: {}: {error}", directory.join(FILE).display());
    }
}

fn append(directory: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(directory.join(FILE))?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_data()
}
