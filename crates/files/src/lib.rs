//! Reads files that someone else has written, with checks and a size limit.
//!
//! A path in a configuration may lead to a pipe without a writer, to a file that is larger than the
//! memory, to a picture, or to a secret that every user of the machine can read. Each of these is
//! reported as an error before the content is used.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use thiserror::Error;

/// The maximum size in bytes of a file with a secret: two keys or a password, and comments.
pub const LARGEST_SECRET: usize = 4096;

/// The reason why a file cannot be used. The error contains nothing of the file's content.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// The operating system returned an error.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The path leads to a folder, a pipe or a device.
    #[error("it is no file")]
    NoFile,
    /// The file has more bytes than this limit.
    #[error("it has more than {0} bytes")]
    TooLarge(usize),
    /// The file is not valid UTF-8.
    #[error("it is not UTF-8 in line {line}")]
    NoText {
        /// The number of the first line that is not valid, from 1.
        line: usize,
    },
    /// The file belongs to another user, who is not accepted as the author of a secret.
    #[error("it is another user's, of number {owner}")]
    Foreign {
        /// The user ID of the owner.
        owner: u32,
    },
    /// The file holds a secret, but every user may read or write it.
    #[error("every user may read or write it: its mode is {mode:03o}")]
    Open {
        /// The permission bits of the file's mode.
        mode: u32,
    },
}

/// Returns the text of the regular file at `path`.
///
/// # Errors
/// Returns an error if the file is not text, is not a regular file, or has more than `largest`
/// bytes.
pub fn text(path: &Path, largest: usize) -> Result<String, Unreadable> {
    whole(regular(path)?, largest)
}

/// Returns the text of any file, including a pipe. Use this for a path that an operator has just
/// given on the command line. Reading waits until the writer of a pipe has closed it.
///
/// # Errors
/// Returns an error if the text is not UTF-8, or has more than `largest` bytes, or the file cannot
/// be read.
pub fn stream(path: &Path, largest: usize) -> Result<String, Unreadable> {
    whole(File::open(path)?, largest)
}

/// Returns the text of a regular file with a secret, of at most [`LARGEST_SECRET`] bytes.
///
/// # Errors
/// Returns an error if the file is not text, is not a regular file, has too many bytes, or may be
/// read or written by every user.
pub fn secret(path: &Path) -> Result<String, Unreadable> {
    let file = regular(path)?;
    let mode = file.metadata()?.mode() & 0o777;
    if mode & 0o007 != 0 {
        return Err(Unreadable::Open { mode });
    }
    whole(file, LARGEST_SECRET)
}

/// Returns the text of a secret that gives authority over others. The file must belong to root or
/// to the user of this process, because a secret of another user proves nothing.
///
/// # Errors
/// Returns an error if [`secret`] would return an error, or if the file belongs to another user.
pub fn own_secret(path: &Path) -> Result<String, Unreadable> {
    let own = own_user()?;
    let owner = std::fs::metadata(path)?.uid();
    if owner != 0 && owner != own && own != 0 {
        return Err(Unreadable::Foreign { owner });
    }
    // Root may read a file that the service's user has created. But in a folder where every user
    // may create files, the author of a file is unknown.
    if owner != own && path.parent().is_some_and(is_for_all) {
        return Err(Unreadable::Foreign { owner });
    }
    secret(path)
}

/// Returns the ID of the user as whom this process runs, which owns its folder in `/proc`.
///
/// # Errors
/// Returns an error if `/proc` cannot be read.
pub fn own_user() -> io::Result<u32> {
    Ok(std::fs::metadata("/proc/self")?.uid())
}

/// Returns whether every user may create files in a folder. Returns false if that cannot be
/// determined.
fn is_for_all(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|about| about.mode() & 0o002 != 0)
}

/// Opens a regular file. Any other file is an error, because opening a pipe without a writer would
/// block the process forever.
fn regular(path: &Path) -> Result<File, Unreadable> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(Unreadable::NoFile);
    }
    Ok(File::open(path)?)
}

fn whole(file: File, largest: usize) -> Result<String, Unreadable> {
    let mut bytes = Vec::new();
    // Read one byte more than allowed, to notice that the file is longer.
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
