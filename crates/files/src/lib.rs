//! Files that somebody else has written, read with bounds.
//!
//! A name in a configuration may lead to a pipe that nobody writes to, to a disk's worth of bytes, to a picture, or to a
//! secret that every user of the machine can read. Each is said in words, before anything is done with it.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use thiserror::Error;

/// Bytes of a file with a secret: two keys or a password, and what somebody has to say about them.
pub const LARGEST_SECRET: usize = 4096;

/// Why a file cannot be used. Nothing of what is in it.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// The system says why.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A folder, a pipe, a device.
    #[error("it is no file")]
    NoFile,
    /// It is larger than what is wanted of it can be.
    #[error("it has more than {0} bytes")]
    TooLarge(usize),
    /// It is no text.
    #[error("it is not UTF-8 in line {line}")]
    NoText {
        /// From 1.
        line: usize,
    },
    /// It is another user's.
    #[error("it is another user's, of number {owner}")]
    Foreign {
        /// Whose.
        owner: u32,
    },
    /// It holds a secret, and keeps none.
    #[error("every user may read or write it: its mode is {mode:03o}")]
    Open {
        /// Its permissions.
        mode: u32,
    },
}

/// The text of a file.
///
/// # Errors
/// If it has none, or more than so many bytes.
pub fn text(path: &Path, largest: usize) -> Result<String, Unreadable> {
    whole(regular(path)?, largest)
}

/// The text of whatever stands under that name, a pipe as well: for a file that somebody has named just now, and waits.
///
/// # Errors
/// As [`text`].
pub fn stream(path: &Path, largest: usize) -> Result<String, Unreadable> {
    whole(File::open(path)?, largest)
}

/// The text of a file that not every user may read.
///
/// # Errors
/// As [`text`], and if every user may.
pub fn secret(path: &Path) -> Result<String, Unreadable> {
    let file = regular(path)?;
    let mode = file.metadata()?.mode() & 0o777;
    if mode & 0o007 != 0 {
        return Err(Unreadable::Open { mode });
    }
    whole(file, LARGEST_SECRET)
}

/// The same, of a secret that makes others obey: it must be root's, or that of whoever reads it. Another user's says nothing.
///
/// # Errors
/// As [`secret`], and if it is somebody else's.
pub fn own_secret(path: &Path) -> Result<String, Unreadable> {
    // Whose our own process is.
    let own = std::fs::metadata("/proc/self")?.uid();
    let owner = std::fs::metadata(path)?.uid();
    if owner != 0 && owner != own && own != 0 {
        return Err(Unreadable::Foreign { owner });
    }
    // Root reads what the service's user has made; in a folder where others may put files nobody knows who has.
    if owner != own && path.parent().is_some_and(is_for_all) {
        return Err(Unreadable::Foreign { owner });
    }
    secret(path)
}

/// Whether every user may put files there.
fn is_for_all(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|about| about.mode() & 0o002 != 0)
}

/// A pipe that nobody writes to would hold up whoever opens it for ever.
fn regular(path: &Path) -> Result<File, Unreadable> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(Unreadable::NoFile);
    }
    Ok(File::open(path)?)
}

fn whole(file: File, largest: usize) -> Result<String, Unreadable> {
    let mut bytes = Vec::new();
    // One more: who gets it knows that there is more.
    file.take(largest as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > largest {
        return Err(Unreadable::TooLarge(largest));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        Unreadable::NoText { line: before.split(|byte| *byte == b'\n').count() }
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_cannot_be_used_is_told_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "two\nlines").unwrap();
        assert_eq!(text(&path, 9).unwrap(), "two\nlines");
        let told = |read: Result<String, Unreadable>| read.unwrap_err().to_string();
        assert_eq!(told(text(&path, 8)), "it has more than 8 bytes");
        assert_eq!(told(text(folder.path(), 8)), "it is no file");
        let missing = told(text(&folder.path().join("none"), 8));
        assert!(missing.starts_with("No such file"), "{missing}");
        fs::write(&path, b"one\ntwo\n\xff").unwrap();
        assert_eq!(told(text(&path, 99)), "it is not UTF-8 in line 3");
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(told(text(&pipe, 8)), "it is no file", "and nobody has waited for its writer");
    }

    #[test]
    fn a_secret_that_every_user_may_read_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        fs::write(&path, "secret").unwrap();
        for (mode, is_read) in [(0o600, true), (0o640, true), (0o644, false), (0o602, false)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(secret(&path).is_ok(), is_read, "{mode:o}");
        }
        let told = secret(&path).unwrap_err().to_string();
        assert_eq!(told, "every user may read or write it: its mode is 602");
    }
}
