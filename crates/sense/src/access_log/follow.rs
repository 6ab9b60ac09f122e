//! Follows a growing log through its rotations, as `tail -F` does.
//!
//! This module never waits and starts no thread. [`Follow::next_line`] returns the next line, or
//! `None` if the log has no further line now. The caller decides when to poll again.
//!
//! A log may change in three ways:
//! - **The file is renamed and another one created in its place.** A file is identified by its
//!   device and inode, not by its name. The old file is read to its end before the new one. Servers
//!   write to the old file until they reopen the log. So the old file is polled together with the
//!   new one until sixty polls have found nothing. Late lines then follow newer ones, but they are
//!   not lost.
//! - **The file is truncated** (`copytruncate`). The file is then shorter than the part that was
//!   read, so it is read from its beginning. Lines that were written between the last poll and the
//!   truncation are lost. If the file has grown beyond the old position before the next poll, the
//!   truncation is not detected. No reader of the file could avoid either.
//! - **The file is missing** for a while. The old file stays open and is read until a file of this
//!   name exists again.
//!
//! A line without a line end is kept until the rest of it is written. If the rest cannot come any
//! more, because its file was truncated or closed, the line is [`Flaw::Cut`].

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Flaw, LONGEST};

/// The number of polls without new data after which a renamed file is closed.
const MAX_IDLE_POLLS: u32 = 60;

/// The maximum number of bytes that are read from a file at a time.
const PIECE: usize = 1 << 16;

/// A log file that is followed by its path through rotations.
#[derive(Debug)]
pub struct Follow {
    path: PathBuf,
    /// The file that has the path now, or had it last. `None` if no file has had the path yet.
    current: Option<Tail>,
    former: Option<RenamedFile>,
    line: Vec<u8>,
}

/// The renamed file, which had the path before the current one.
#[derive(Debug)]
struct RenamedFile {
    tail: Tail,
    /// Whether the renamed file was read to its end after the renaming was noticed.
    drained: bool,
    /// The number of successive polls of the renamed file that found nothing new.
    idle_polls: u32,
}

/// The result of a poll.
#[derive(Debug)]
enum Found {
    /// A line, in [`Follow::line`].
    Line,
    Flaw(Flaw),
    Nothing,
}

impl Found {
    /// Returns a line or a flaw, or `None` if nothing was found.
    fn any(self) -> Option<Self> {
        match self {
            Self::Line | Self::Flaw(_) => Some(self),
            Self::Nothing => None,
        }
    }
}

impl Follow {
    /// Follows the log at `path` from the beginning of its file, which may exist now or later.
    pub fn from_start(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), current: None, former: None, line: Vec::new() }
    }

    /// Follows the log at `path` from the end of its present file, or from the beginning of a later
    /// one.
    ///
    /// # Errors
    /// Returns an error if the file exists and cannot be read.
    pub fn from_end(path: impl Into<PathBuf>) -> io::Result<Self> {
        let mut follow = Self::from_start(path);
        follow.current = Tail::open(&follow.path)?;
        if let Some(tail) = &mut follow.current {
            tail.skip_to_end()?;
        }
        Ok(follow)
    }

    /// Returns the path that is followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the next line without its line end, or `None` if the log has no further line now. A
    /// line that is too long or cut off is a [`Flaw`], as in [`super::Lines::next_line`].
    ///
    /// # Errors
    /// Returns an error if the log cannot be read, or is not a regular file. The next call tries
    /// again.
    pub fn next_line(&mut self) -> io::Result<Option<Result<&[u8], Flaw>>> {
        Ok(match self.poll()? {
            Found::Line => Some(Ok(&self.line)),
            Found::Flaw(flaw) => Some(Err(flaw)),
            Found::Nothing => None,
        })
    }

    fn poll(&mut self) -> io::Result<Found> {
        loop {
            if let Some(former) = self.former.as_mut().filter(|former| !former.drained) {
                if let Some(found) = former.tail.poll(&mut self.line)?.any() {
                    return Ok(found);
                }
                former.drained = true;
            }
            if let Some(tail) = &mut self.current
                && let Some(found) = tail.poll(&mut self.line)?.any()
            {
                return Ok(found);
            }
            if let Some(found) = self.poll_former()?.any() {
                return Ok(found);
            }
            let Some(next) = self.successor()? else {
                return Ok(Found::Nothing);
            };
            let given_up = self.former.take();
            let old = self.current.replace(next);
            self.former = old.map(|tail| RenamedFile { tail, drained: false, idle_polls: 0 });
            if given_up.is_some_and(|former| former.tail.is_within_a_line()) {
                return Ok(Found::Flaw(Flaw::Cut));
            }
        }
    }

    /// Polls the renamed file, to which a server may still write. Closes it after
    /// [`MAX_IDLE_POLLS`] polls that found nothing.
    fn poll_former(&mut self) -> io::Result<Found> {
        let Some(former) = &mut self.former else {
            return Ok(Found::Nothing);
        };
        let before = former.tail.read;
        let found = former.tail.poll(&mut self.line)?;
        former.idle_polls = if former.tail.read == before { former.idle_polls + 1 } else { 0 };
        if let Some(found) = found.any() {
            return Ok(found);
        }
        if former.idle_polls < MAX_IDLE_POLLS {
            return Ok(Found::Nothing);
        }
        let cut = former.tail.is_within_a_line();
        self.former = None;
        Ok(if cut { Found::Flaw(Flaw::Cut) } else { Found::Nothing })
    }

    /// Returns the file that has the path now, opened, or `None` if it is still the current file or
    /// does not exist.
    fn successor(&mut self) -> io::Result<Option<Tail>> {
        let Some(id) = id_of(fs::metadata(&self.path))? else { return Ok(None) };
        let is_current = |id| self.current.as_ref().is_some_and(|tail| tail.id == id);
        if is_current(id) {
            return Ok(None);
        }
        if let Some(former) = self.former.take_if(|former| former.tail.id == id) {
            // The former file got its path back: continue at the old position.
            return Ok(Some(former.tail));
        }
        Ok(Tail::open(&self.path)?.filter(|tail| !is_current(tail.id)))
    }
}

/// The device and the inode, which identify a file.
type Id = (u64, u64);

fn id_of(known: io::Result<Metadata>) -> io::Result<Option<Id>> {
    match known {
        Ok(known) if known.is_file() => Ok(Some((known.dev(), known.ino()))),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// An open file, with the position up to which it is read.
#[derive(Debug)]
struct Tail {
    file: File,
    id: Id,
    /// The position in the file up to which it was read, in bytes.
    read: u64,
    /// The buffer with the bytes that were read last.
    piece: Box<[u8]>,
    /// The range of `piece` that is not yet part of a line.
    unused: Range<usize>,
    /// The beginning of a line whose end has not been read yet.
    begun: Vec<u8>,
    too_long: bool,
    /// Whether the current bytes are the rest of a line whose beginning was skipped by
    /// [`Follow::from_end`].
    rest: bool,
}

impl Tail {
    fn open(path: &Path) -> io::Result<Option<Self>> {
        // Check the type before opening: opening a named pipe would block until it has a writer.
        if id_of(fs::metadata(path))?.is_none() {
            return Ok(None);
        }
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let id = id_of(file.metadata())?;
        Ok(id.map(|id| Self {
            file,
            id,
            read: 0,
            piece: vec![0; PIECE].into(),
            unused: 0..0,
            begun: Vec::new(),
            too_long: false,
            rest: false,
        }))
    }

    fn skip_to_end(&mut self) -> io::Result<()> {
        self.read = self.file.metadata()?.len();
        if let Some(last) = self.read.checked_sub(1) {
            let mut byte = [b'\n'];
            self.file.seek(SeekFrom::Start(last))?;
            // The file may have been truncated since its length was read. The next poll detects
            // that.
            let _at_end = self.file.read(&mut byte)?;
            self.rest = byte != [b'\n'];
        }
        Ok(())
    }

    fn is_within_a_line(&self) -> bool {
        !self.begun.is_empty() || self.too_long
    }

    /// Stores the next complete line of the file in `line`. Starts again from the beginning if the
    /// file was truncated.
    fn poll(&mut self, line: &mut Vec<u8>) -> io::Result<Found> {
        loop {
            if let Some(found) = self.line_of_piece(line) {
                return Ok(found);
            }
            let length = match self.file.read(&mut self.piece) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.unused = 0..length;
            self.read += length as u64;
            if length > 0 {
                continue;
            }
            if self.file.metadata()?.len() >= self.read {
                return Ok(Found::Nothing);
            }
            if let Some(found) = self.restart()? {
                return Ok(found);
            }
        }
    }

    /// Continues at the beginning of the file, because it was truncated. Returns [`Flaw::Cut`] if a
    /// line was incomplete.
    fn restart(&mut self) -> io::Result<Option<Found>> {
        self.file.seek(SeekFrom::Start(0))?;
        let cut = self.is_within_a_line();
        self.read = 0;
        self.begun.clear();
        (self.too_long, self.rest) = (false, false);
        Ok(cut.then_some(Found::Flaw(Flaw::Cut)))
    }

    /// Stores the next complete line of the buffer in `line`. Returns `None` if the buffer has no
    /// further line end.
    fn line_of_piece(&mut self, line: &mut Vec<u8>) -> Option<Found> {
        loop {
            let unused = &self.piece[self.unused.clone()];
            let end = unused.iter().position(|byte| *byte == b'\n');
            let part = &unused[..end.unwrap_or(unused.len())];
            if !self.rest {
                self.too_long |= self.begun.len() + part.len() > LONGEST;
                if !self.too_long {
                    self.begun.extend_from_slice(part);
                }
            }
            self.unused.start += part.len() + usize::from(end.is_some());
            end?;
            if std::mem::take(&mut self.rest) {
                continue;
            }
            std::mem::swap(&mut self.begun, line);
            self.begun.clear();
            let too_long = std::mem::take(&mut self.too_long);
            return Some(if too_long { Found::Flaw(Flaw::TooLong) } else { Found::Line });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use tempfile::TempDir;

    use super::*;

    struct Stage {
        folder: TempDir,
        log: PathBuf,
    }

    impl Stage {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let log = folder.path().join("access.log");
            Self { folder, log }
        }

        /// Opens the log as a server does.
        fn opened(&self) -> File {
            OpenOptions::new().append(true).create(true).open(&self.log).unwrap()
        }

        fn write(&self, text: &str) {
            self.opened().write_all(text.as_bytes()).unwrap();
        }

        fn rename(&self, name: &str) {
            fs::rename(&self.log, self.folder.path().join(name)).unwrap();
        }

        fn follow(&self) -> Follow {
            Follow::from_start(&self.log)
        }
    }

    fn all(follow: &mut Follow) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(line) = follow.next_line().unwrap() {
            all.push(line.map_or_else(
                |flaw| format!("!{flaw}"),
                |line| String::from_utf8(line.to_vec()).unwrap(),
            ));
        }
        all
    }

    #[test]
    fn lines_come_as_they_are_written_and_a_line_waits_for_its_end() {
        let stage = Stage::new();
        let mut follow = stage.follow();
        assert_eq!(all(&mut follow), [""; 0]);
        stage.write("a\n\nb");
        assert_eq!(all(&mut follow), ["a", ""]);
        stage.write("c");
        assert_eq!(all(&mut follow), [""; 0]);
        stage.write("d\ne\n");
        assert_eq!(all(&mut follow), ["bcd", "e"]);
    }

    #[test]
    fn what_was_written_before_a_rename_comes_before_what_is_new() {
        let stage = Stage::new();
        let mut follow = stage.follow();
        let mut server = stage.opened();
        server.write_all(b"1\n").unwrap();
        assert_eq!(all(&mut follow), ["1"]);
        server.write_all(b"2\n3").unwrap();
        stage.rename("access.log.1");
        stage.write("5\n");
        server.write_all(b"\n4\n").unwrap();
        assert_eq!(all(&mut follow), ["2", "3", "4", "5"]);
        assert_eq!(all(&mut follow), [""; 0]);
        stage.write("6\n");
        assert_eq!(all(&mut follow), ["6"]);
    }

    #[test]
    fn a_server_that_still_writes_to_the_old_file_is_heard_for_a_while() {
        let stage = Stage::new();
        let mut follow = stage.follow();
        let mut server = stage.opened();
        assert_eq!(all(&mut follow), [""; 0]);
        stage.rename("access.log.1");
        stage.write("new\n");
        assert_eq!(all(&mut follow), ["new"]);
        server.write_all(b"late\nha").unwrap();
        assert_eq!(all(&mut follow), ["late"]);
        for _ in 2..MAX_IDLE_POLLS {
            assert_eq!(all(&mut follow), [""; 0]);
        }
        server.write_all(b"lf").unwrap();
        let rest: Vec<String> = (0..=MAX_IDLE_POLLS).flat_map(|_| all(&mut follow)).collect();
        assert_eq!(rest, ["!the end of the line is missing"]);
        assert!(follow.former.is_none());
    }

    #[test]
    fn a_file_that_is_cut_begins_anew() {
        let stage = Stage::new();
        let mut follow = stage.follow();
        stage.write("one\ntwo\nthr");
        assert_eq!(all(&mut follow), ["one", "two"]);
        stage.opened().set_len(0).unwrap();
        assert_eq!(all(&mut follow), ["!the end of the line is missing"]);
        stage.write("four\n");
        assert_eq!(all(&mut follow), ["four"]);
        stage.opened().set_len(0).unwrap();
        stage.write("5\n");
        assert_eq!(all(&mut follow), ["5"]);
    }

    #[test]
    fn a_file_that_is_gone_for_a_while_is_read_to_its_end_meanwhile() {
        let stage = Stage::new();
        let mut follow = stage.follow();
        let mut server = stage.opened();
        server.write_all(b"1\n").unwrap();
        assert_eq!(all(&mut follow), ["1"]);
        fs::remove_file(&stage.log).unwrap();
        server.write_all(b"2\n").unwrap();
        assert_eq!(all(&mut follow), ["2"]);
        assert_eq!(all(&mut follow), [""; 0]);
        stage.write("3\n");
        assert_eq!(all(&mut follow), ["3"]);
    }

    #[test]
    fn a_name_that_is_given_back_reads_nothing_twice() {
        let stage = Stage::new();
        let mut follow = stage.follow();
        stage.write("1\n");
        assert_eq!(all(&mut follow), ["1"]);
        stage.rename("aside");
        stage.write("2\n");
        assert_eq!(all(&mut follow), ["2"]);
        stage.rename("other");
        fs::rename(stage.folder.path().join("aside"), &stage.log).unwrap();
        stage.write("3\n");
        assert_eq!(all(&mut follow), ["3"]);
    }

    #[test]
    fn whoever_begins_at_the_end_sees_whole_lines_only() {
        let stage = Stage::new();
        stage.write("old\nbeg");
        let mut follow = Follow::from_end(&stage.log).unwrap();
        stage.write("un\nnew\n");
        assert_eq!(all(&mut follow), ["new"]);
        let mut follow = Follow::from_end(&stage.log).unwrap();
        stage.write("newer\n");
        assert_eq!(all(&mut follow), ["newer"]);
        let missing = stage.folder.path().join("not yet");
        assert_eq!(all(&mut Follow::from_end(missing).unwrap()), [""; 0]);
    }

    #[test]
    fn of_a_line_without_end_no_more_is_held_than_of_any() {
        let stage = Stage::new();
        let mut follow = stage.follow();
        stage.write(&"x".repeat(4 << 20));
        assert_eq!(all(&mut follow), [""; 0]);
        let held = follow.current.as_ref().map_or(0, |tail| tail.begun.capacity());
        assert!(held <= 2 * LONGEST, "{held}");
        stage.write("\nafter\n");
        assert_eq!(all(&mut follow), [format!("!{}", Flaw::TooLong), "after".to_owned()]);
    }

    #[test]
    fn what_is_no_file_is_an_error() {
        let stage = Stage::new();
        fs::create_dir(&stage.log).unwrap();
        let mut follow = stage.follow();
        assert!(follow.next_line().is_err());
        fs::remove_dir(&stage.log).unwrap();
        stage.write("1\n");
        assert_eq!(all(&mut follow), ["1"]);
    }
}
