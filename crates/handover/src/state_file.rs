//! Saves and loads the learned state of a process. Whenever the process is killed, the file is
//! complete or absent.
//!
//! The state is written to a new file next to the old one, flushed, and renamed over the old one.
//! Therefore a reader sees either the old or the new content (`rename(2)`). This also holds after a
//! power failure, because the bytes are on the disk before the name changes. The checksum detects
//! disk faults and accidental edits. It does not protect against deliberate changes.
//!
//! A killed process leaves its unfinished file behind, and the next [`save`] removes it. A process
//! that writes such a file holds a lock on it, which ends with the process. So an unlocked
//! unfinished file belongs to no process.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use tempfile::NamedTempFile;

/// The reason why a state file cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file was not written by [`save`].
    #[error("it is not a state file")]
    Foreign,
    /// The file was written by another version of the program. The field is the number of its
    /// format.
    #[error("it has format {0}, and this program reads format {FORMAT}")]
    OtherFormat(u32),
    /// The file is longer than the caller permits.
    #[error("it holds {length} bytes; at most {most} are read")]
    TooLong {
        /// The number of bytes that the file holds, or claims to hold.
        length: u64,
        /// The maximum number of bytes that the caller permitted.
        most: u64,
    },
    /// The file differs from what was written.
    #[error("it is damaged")]
    Torn,
    /// The operating system could not read the file.
    #[error(transparent)]
    Io(#[from] io::Error),
}

const MAGIC: [u8; 8] = *b"bywash::";
/// The version of the format of state files that this program writes and reads.
const FORMAT: u32 = 1;

/// The length of a file's header in bytes: magic 8, format 4, checksum 4 (of the format and of
/// everything after the checksum), length 8. All numbers are little-endian.
const HEADER: usize = 24;

/// Writes `bytes` to the file `name` in this directory, replacing its content. Waits for the disk,
/// so call it on a thread that serves no requests.
///
/// # Errors
/// Returns an error if the name is a path, or if the file cannot be written. The old content then
/// stays, with one exception: if only the last step failed, the flush of the directory, the new
/// content may be in place.
pub fn save(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    check(name)?;
    let (before, after) = around(name);
    // The directory is opened before anything is changed. Without permission to read it, a new name
    // in it could not be flushed.
    let folder = File::open(directory)?;
    let mut file = unfinished(directory, &before, &after)?;
    file.write_all(&header(bytes))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(directory.join(name))?;
    folder.sync_all()?;
    remove_unfinished(directory, &before, &after);
    Ok(())
}

/// Returns the bytes that were last saved under this name. Returns `None` if there is no such file.
///
/// # Errors
/// Returns an error if the file is not exactly what [`save`] wrote, has more than `most` bytes, or
/// cannot be read. The caller should start without the state and report the error.
pub fn load(directory: &Path, name: &str, most: u64) -> Result<Option<Vec<u8>>, StateError> {
    check(name)?;
    let path = directory.join(name);
    match fs::metadata(&path) {
        Ok(found) if found.is_file() => {}
        // Opening a pipe would wait for a writer, so only a regular file is opened.
        Ok(_) => return Err(StateError::Foreign),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    read(File::open(path)?, most).map(Some)
}

fn read(mut file: impl Read, most: u64) -> Result<Vec<u8>, StateError> {
    let mut start = Vec::with_capacity(HEADER);
    file.by_ref().take(HEADER as u64).read_to_end(&mut start)?;
    let (magic, rest) = start.split_first_chunk::<8>().ok_or(StateError::Foreign)?;
    if *magic != MAGIC {
        return Err(StateError::Foreign);
    }
    let (format, rest) = rest.split_first_chunk::<4>().ok_or(StateError::Torn)?;
    let (checksum, rest) = rest.split_first_chunk::<4>().ok_or(StateError::Torn)?;
    let length = rest.first_chunk::<8>().ok_or(StateError::Torn)?;
    let format = u32::from_le_bytes(*format);
    if format != FORMAT {
        return Err(StateError::OtherFormat(format));
    }
    let length = u64::from_le_bytes(*length);
    if length > most {
        return Err(StateError::TooLong { length, most });
    }
    let mut bytes = Vec::new();
    // One byte more than expected is read, to detect additional data.
    file.take(length.saturating_add(1)).read_to_end(&mut bytes)?;
    let whole =
        bytes.len() as u64 == length && checksum_of(&bytes) == u32::from_le_bytes(*checksum);
    if whole { Ok(bytes) } else { Err(StateError::Torn) }
}

fn header(bytes: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    header[12..16].copy_from_slice(&checksum_of(bytes).to_le_bytes());
    header[16..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    header
}

fn checksum_of(bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&FORMAT.to_le_bytes());
    sum.update(&(bytes.len() as u64).to_le_bytes());
    sum.update(bytes);
    sum.finalize()
}

/// Creates a new file that only its owner may read (mode 0600), and locks it.
fn unfinished(directory: &Path, before: &str, after: &str) -> io::Result<NamedTempFile> {
    loop {
        let file = tempfile::Builder::new().prefix(before).suffix(after).tempfile_in(directory)?;
        match file.as_file().try_lock() {
            // Another process's `save` has locked the file between its creation and our lock. Try
            // another file.
            Err(TryLockError::WouldBlock) => {}
            Ok(()) if file.as_file().metadata()?.nlink() == 0 => {}
            // If the file system has no locks, files of killed processes are not removed.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
}

/// Returns the prefix and the suffix of the names of unfinished files.
fn around(name: &str) -> (String, String) {
    (format!(".{name}."), ".unfinished".to_owned())
}

/// Removes the unfinished files of killed processes. Errors are ignored, so that they do not make
/// the save fail.
fn remove_unfinished(directory: &Path, before: &str, after: &str) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours =
            name.to_str().is_some_and(|name| name.starts_with(before) && name.ends_with(after));
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        // The lock is held while the file is removed, so that no process begins to use it.
        if let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn check(name: &str) -> io::Result<()> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => Ok(()),
        _ => Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("`{name}` is not a plain file name"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use proptest::prelude::*;

    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn names(folder: &tempfile::TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn the_last_save_is_loaded_and_only_its_owner_can_read_it() {
        let folder = folder();
        assert!(load(folder.path(), "learned", 100).unwrap().is_none());
        save(folder.path(), "learned", b"first").unwrap();
        save(folder.path(), "learned", b"").unwrap();
        save(folder.path(), "learned", b"last").unwrap();
        assert_eq!(load(folder.path(), "learned", 4).unwrap().unwrap(), b"last");
        assert_eq!(names(&folder), ["learned"]);
        let mode = fs::metadata(folder.path().join("learned")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn more_than_wanted_is_not_read() {
        let folder = folder();
        save(folder.path(), "learned", &[7; 101]).unwrap();
        let error = load(folder.path(), "learned", 100).unwrap_err();
        assert!(matches!(error, StateError::TooLong { length: 101, most: 100 }));
    }

    #[test]
    fn what_a_killed_process_left_goes_and_what_is_being_written_stays() {
        let folder = folder();
        let (left, written) = (".learned.a.unfinished", ".learned.b.unfinished");
        fs::write(folder.path().join(left), "half").unwrap();
        let writing = File::create(folder.path().join(written)).unwrap();
        writing.lock().unwrap();
        fs::write(folder.path().join(".other.c.unfinished"), "").unwrap();
        save(folder.path(), "learned", b"whole").unwrap();
        let mut found = names(&folder);
        found.sort();
        assert_eq!(found, [written, ".other.c.unfinished", "learned"]);
    }

    /// Two processes save at once while one hands over to the next.
    #[test]
    fn two_who_save_at_the_same_time_do_not_disturb_each_other() {
        let folder = folder();
        std::thread::scope(|scope| {
            for writer in [b'a', b'b'] {
                let folder = folder.path();
                scope.spawn(move || {
                    (0..50).for_each(|_| save(folder, "learned", &[writer; 999]).unwrap());
                });
            }
        });
        let last = load(folder.path(), "learned", 999).unwrap().unwrap();
        assert!(last == [b'a'; 999] || last == [b'b'; 999]);
        assert_eq!(names(&folder), ["learned"]);
    }

    #[test]
    fn a_failed_save_leaves_what_was_there() {
        let folder = folder();
        fs::create_dir(folder.path().join("learned")).unwrap();
        assert!(save(folder.path(), "learned", b"new").is_err());
        assert_eq!(names(&folder), ["learned"]);
        assert!(matches!(load(folder.path(), "learned", 100), Err(StateError::Foreign)));
        assert!(save(&folder.path().join("nowhere"), "learned", b"new").is_err());
    }

    #[test]
    fn a_name_is_no_path() {
        let folder = folder();
        for name in ["", ".", "..", "../learned", "a/b", "/etc/passwd", "learned/", "./learned"] {
            assert!(save(folder.path(), name, b"x").is_err(), "{name}");
            assert!(load(folder.path(), name, 100).is_err(), "{name}");
        }
        assert!(names(&folder).is_empty());
    }

    #[test]
    fn a_file_of_another_format_says_so() {
        let mut file = header(b"").to_vec();
        file[8] = 2;
        assert!(matches!(read(&*file, 100), Err(StateError::OtherFormat(2))));
    }

    fn written(bytes: &[u8]) -> Vec<u8> {
        [&header(bytes), bytes].concat()
    }

    proptest! {
        #[test]
        fn a_file_with_a_flipped_bit_is_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            place in any::<prop::sample::Index>(),
            bit in 0..8_u32,
        ) {
            let mut file = written(&bytes);
            let place = place.index(file.len());
            file[place] ^= 1_u8 << bit;
            prop_assert!(read(&*file, 1000).is_err());
        }

        #[test]
        fn a_file_that_is_cut_or_has_grown_is_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            place in any::<prop::sample::Index>(),
            more in prop::collection::vec(any::<u8>(), 1..50),
        ) {
            let mut file = written(&bytes);
            prop_assert!(read(&file[..place.index(file.len())], 1000).is_err());
            file.extend(more);
            prop_assert!(read(&*file, 1000).is_err());
        }

        #[test]
        fn any_bytes_behind_a_good_beginning_are_refused_or_whole(
            rest in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let file = [&MAGIC[..], &FORMAT.to_le_bytes(), &rest].concat();
            if let Ok(bytes) = read(&*file, 1000) {
                prop_assert_eq!(written(&bytes), file);
            }
        }
    }
}
