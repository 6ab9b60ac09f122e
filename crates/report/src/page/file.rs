//! The page on disk.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::Report;

/// Tells apart the temporary files of one process.
static WRITTEN: AtomicU32 = AtomicU32::new(0);

/// Writes the page to `path`, whole or not at all: into a file beside it that then takes its
/// name. Whoever reads while a run repeats sees the old page or the new one.
///
/// # Errors
/// Those of the file system, and `InvalidInput` if `path` names no file.
pub fn write(path: impl AsRef<Path>, report: &Report) -> io::Result<()> {
    let path = path.as_ref();
    let beside = beside(path)?;
    let written = fill(&beside, &report.html()).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The first error is the one to tell; a file that was never made cannot be removed.
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

/// Into a new file only: a link that somebody laid there is not followed.
fn fill(path: &Path, html: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(html.as_bytes())?;
    file.sync_all()
}
