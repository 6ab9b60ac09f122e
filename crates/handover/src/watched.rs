//! Detects changes of files by polling.
//!
//! Polling is deliberate. The kernel's notifications (inotify) are about directories and inodes,
//! but here it matters where a *path* leads. Kubernetes changes a symbolic link two levels above
//! the file, and editors rename a new file over the old one; in both cases the watched inode never
//! changes. Network file systems send no notifications either, and their number is limited per
//! user. A check of a path is one system call that is right in all these cases, and a handful per
//! second costs nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Files that are watched for changes.
#[derive(Debug)]
pub struct Watched {
    paths: Vec<PathBuf>,
    /// The properties of the files when a change was last reported, or at the beginning.
    known: Vec<Option<FileFingerprint>>,
    /// The properties of the files at the last check.
    seen: Vec<Option<FileFingerprint>>,
}

/// The properties of a file that change when the file is written, replaced or given to another
/// owner. They include the time of the last change (ctime), because all other properties can stay
/// the same when `cp -p` copies another file of the same length over the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileFingerprint {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Watched {
    /// Starts to watch these paths. Create this before you read the files, so that no change in
    /// between is missed.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths: Vec<PathBuf> = paths.into_iter().collect();
        let known: Vec<_> = paths.iter().map(fingerprint).collect();
        Self { paths, seen: known.clone(), known }
    }

    /// Watches additional paths, such as files that are named in the files watched so far.
    pub fn add(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        let more = Self::new(paths);
        self.paths.extend(more.paths);
        self.known.extend(more.known);
        self.seen.extend(more.seen);
    }

    /// Returns whether a file has changed since the last report. Call it about once a second.
    ///
    /// A change is reported when two checks in a row give the same properties. So a file is not
    /// read while it is being written, and a certificate not before its key. A missing file counts
    /// as unchanged, because there is nothing to read and the file may be about to appear.
    pub fn changed(&mut self) -> bool {
        let before = self.seen.clone();
        for (seen, path) in self.seen.iter_mut().zip(&self.paths) {
            *seen = fingerprint(path).or(*seen);
        }
        let settled = self.seen == before && self.seen != self.known;
        if settled {
            self.known.clone_from(&self.seen);
        }
        settled
    }
}

/// Returns the properties of the file that the path leads to, through all symbolic links. Returns
/// `None` if there is no such file.
fn fingerprint(path: &PathBuf) -> Option<FileFingerprint> {
    let found = fs::metadata(path).ok()?;
    Some(FileFingerprint {
        device: found.dev(),
        inode: found.ino(),
        length: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    /// Checks several times. Returns which of the checks reported a change.
    fn looks<const LOOKS: usize>(watched: &mut Watched) -> [bool; LOOKS] {
        std::array::from_fn(|_| watched.changed())
    }

    fn folder_with(name: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, "one").unwrap();
        (folder, path)
    }

    fn replace(path: &Path, text: &str) {
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, path).unwrap();
    }

    #[test]
    fn a_file_that_nobody_touches_has_not_changed() {
        let (_folder, path) = folder_with("bywash.toml");
        let mut watched = Watched::new([path.clone()]);
        fs::read(path).unwrap();
        assert_eq!(looks(&mut watched), [false; 3]);
    }

    #[test]
    fn a_change_is_said_once_at_the_second_look() {
        let (_folder, path) = folder_with("bywash.toml");
        let mut watched = Watched::new([path.clone()]);
        fs::write(&path, "longer").unwrap();
        assert_eq!(looks(&mut watched), [false, true, false, false]);
    }

    #[test]
    fn a_file_that_goes_on_changing_is_said_when_it_has_stopped() {
        let (_folder, path) = folder_with("bywash.toml");
        let mut watched = Watched::new([path.clone()]);
        for text in ["a", "ab", "abc"] {
            replace(&path, text);
            assert_eq!(looks(&mut watched), [false]);
        }
        assert_eq!(looks(&mut watched), [true, false]);
    }

    #[test]
    fn another_file_of_the_same_length_and_age_is_a_change() {
        let (_folder, path) = folder_with("bywash.toml");
        let age = fs::metadata(&path).unwrap().modified().unwrap();
        let mut watched = Watched::new([path.clone()]);
        replace(&path, "two");
        fs::File::options().write(true).open(&path).unwrap().set_modified(age).unwrap();
        assert_eq!(looks(&mut watched), [false, true, false]);
    }

    #[test]
    fn other_bytes_in_a_file_that_keeps_its_length_and_age_are_a_change() {
        let (_folder, path) = folder_with("bywash.toml");
        let before = fs::metadata(&path).unwrap();
        let changed = |found: &fs::Metadata| (found.ctime(), found.ctime_nsec());
        let mut watched = Watched::new([path.clone()]);
        // The kernel's clock for ctime advances only every few milliseconds.
        while changed(&fs::metadata(&path).unwrap()) == changed(&before) {
            let mut file = fs::File::options().write(true).open(&path).unwrap();
            file.write_all(b"two").unwrap();
            file.set_modified(before.modified().unwrap()).unwrap();
        }
        assert_eq!(looks(&mut watched), [false, true, false]);
    }

    #[test]
    fn a_file_that_is_added_is_watched_from_then_on_and_the_others_from_before() {
        let (folder, first) = folder_with("bywash.toml");
        let second = folder.path().join("key.pem");
        let mut watched = Watched::new([first.clone()]);
        replace(&first, "two");
        replace(&second, "one");
        watched.add([second.clone()]);
        assert_eq!(looks(&mut watched), [false, true, false]);
        replace(&second, "two");
        assert_eq!(looks(&mut watched), [false, true, false]);
    }

    #[test]
    fn a_missing_file_is_no_change_and_its_return_is_one() {
        let (_folder, path) = folder_with("bywash.toml");
        let mut watched = Watched::new([path.clone()]);
        let away = path.with_extension("away");
        fs::rename(&path, &away).unwrap();
        assert_eq!(looks(&mut watched), [false; 3]);
        fs::copy(&away, &path).unwrap();
        assert_eq!(looks(&mut watched), [false, true, false]);
    }

    #[test]
    fn a_file_that_appears_is_a_change() {
        let (folder, _) = folder_with("other");
        let path = folder.path().join("certificate.pem");
        let mut watched = Watched::new([path.clone()]);
        assert_eq!(looks(&mut watched), [false; 2]);
        fs::write(path, "new").unwrap();
        assert_eq!(looks(&mut watched), [false, true, false]);
    }

    /// `bywash.toml` → `..data/bywash.toml`, `..data` → a directory with a date: an update creates
    /// a new directory and swaps the link in the middle.
    #[test]
    fn kubernetes_swap_of_a_link_above_the_file_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for date in ["..2026_01", "..2026_02"] {
            fs::create_dir(at(date)).unwrap();
            fs::write(at(date).join("bywash.toml"), "same").unwrap();
        }
        symlink("..2026_01", at("..data")).unwrap();
        symlink("..data/bywash.toml", at("bywash.toml")).unwrap();
        let mut watched = Watched::new([at("bywash.toml")]);
        assert_eq!(looks(&mut watched), [false; 2]);
        symlink("..2026_02", at("..data_tmp")).unwrap();
        fs::rename(at("..data_tmp"), at("..data")).unwrap();
        assert_eq!(looks(&mut watched), [false, true, false]);
    }

    #[test]
    fn of_several_files_one_is_enough_and_all_must_have_settled() {
        let (folder, key) = folder_with("key.pem");
        let certificate = folder.path().join("certificate.pem");
        fs::write(&certificate, "one").unwrap();
        let mut watched = Watched::new([key.clone(), certificate.clone()]);
        replace(&certificate, "two");
        assert_eq!(looks(&mut watched), [false]);
        replace(&key, "two");
        assert_eq!(looks(&mut watched), [false, true, false]);
        replace(&key, "three");
        assert_eq!(looks(&mut watched), [false, true, false]);
    }
}
