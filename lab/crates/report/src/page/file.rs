//! The page on disk.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::Report;

/// A counter that distinguishes the temporary files of one process.
static WRITTEN: AtomicU32 = AtomicU32::new(0);

/// Writes the page to `path` atomically: into a temporary file next to it, which is then renamed. A
/// reader sees either the old page or the new one.
///
/// # Errors
///
/// Returns errors of the file system, and `InvalidInput` if `path` does not name a file.
pub fn write(path: impl AsRef<Path>, report: &Report) -> io::Result<()> {
    let path = path.as_ref();
    let beside = beside(path)?;
    let written = fill(&beside, &report.html()).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The first error is returned; a file that was never created cannot be removed.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let turn = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let unique = format!(".{}-{turn}.tmp", std::process::id());
    let hidden: OsString = [OsStr::new("."), name, OsStr::new(&unique)].into_iter().collect();
    Ok(path.with_file_name(hidden))
}

/// Writes a new file only, so that a planted link is not followed.
fn fill(path: &Path, html: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(html.as_bytes())?;
    file.sync_all()
}
