//! Sources of readings. A source is read as a whole, or returns the reason why it cannot be read.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use bywash_terminal::text::escaped;
use bywash_units::{Time, TimeSpan};
use thiserror::Error;

use super::resource::Reading;

/// A group of resources that is read as a whole.
pub trait Source: Send {
    /// Returns the name of the source for error messages.
    fn name(&self) -> &str;

    /// Reads the source. Returns its present readings, or `None` if there are no new ones since the
    /// last call.
    ///
    /// # Errors
    /// Returns the reason why the source cannot be read at present. The caller may try again.
    fn read(&mut self, clock: &Clock) -> Result<Option<Taken>, Unreadable>;
}

/// The readings of a source at one point in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The time at which the readings were taken.
    pub at: Time,
    /// The readings, one for each resource. There are at most [`MOST`].
    pub readings: Vec<Reading>,
}

/// The maximum number of resources of one source. Further disks and interfaces of a host are
/// ignored.
pub const MOST: usize = 1000;

/// The reason why a source cannot be read.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// The operating system returned an error.
    #[error("{path}: {error}")]
    File {
        /// The path of the file.
        path: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The content of a file has another form than expected.
    #[error("{path}: unexpected content; expected: {expected}")]
    Form {
        /// The path of the file.
        path: String,
        /// The expected form.
        expected: &'static str,
    },
    /// The source exceeds a limit of this crate.
    #[error("{path} has more than {most} {what}")]
    TooMuch {
        /// The path of the file.
        path: String,
        /// The limit that the source exceeds, as a number of objects.
        most: usize,
        /// The kind of objects whose number is limited.
        what: &'static str,
    },
    /// There is no process with this name, or this user may not see it.
    #[error(
        "no process {0}: check that it runs, that `ps -eo comm` shows this name, and that this \
         user may see it (hidepid)"
    )]
    NoProcess(String),
    /// An exporter returned an error.
    #[error("{0}")]
    Exporter(#[from] super::exporter::Failed),
}

/// A monotonic clock for the times of readings.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    at: Time,
}

impl Clock {
    /// Creates a clock whose times count from `started`.
    pub const fn since(started: Instant) -> Self {
        Self { started, at: Time::ZERO }
    }

    /// Creates a clock whose times count from 1970, to compare them with those of logs. The
    /// machine's clock is read only once, so setting it later does not change this clock.
    pub fn since_1970() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { started: Instant::now(), at: Time::ZERO + TimeSpan::from(now) }
    }

    /// Returns the present time, since the start that was chosen when the clock was created.
    pub fn now(&self) -> Time {
        self.at + TimeSpan::from(self.started.elapsed())
    }
}

/// The folder that contains the `proc` and `sys` folders of a host.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

/// The maximum size in bytes of a file of `proc` or `sys` that is read. `/proc/stat` of 500
/// processors has 100 KiB.
const LARGEST: u64 = 1 << 20;

impl Root {
    /// Returns the root folder `/` of this host.
    pub fn host() -> Self {
        Self(PathBuf::from("/"))
    }

    /// Returns the root at `folder`, in which the `proc` and `sys` folders of another host are
    /// mounted, or those of a test.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    pub(super) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path)
    }

    /// Returns the text of the file at `path` in the root folder. Invalid UTF-8 is replaced,
    /// because names of processes and interfaces may contain any bytes. A file of more than
    /// [`LARGEST`] bytes is an error.
    pub(super) fn text(&self, path: impl AsRef<Path>) -> Result<String, Unreadable> {
        let path = self.path(path);
        let read = || -> io::Result<Vec<u8>> {
            // The kernel does not tell the length of these files. Most fit into this capacity.
            let mut bytes = Vec::with_capacity(4096);
            File::open(&path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|error| Unreadable::File { path: shown(&path), error })?;
        if bytes.len() as u64 > LARGEST {
            let most = LARGEST as usize;
            return Err(Unreadable::TooMuch { path: shown(&path), most, what: "bytes" });
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the text of a file like [`Self::text`], or `None` if the file does not exist.
    pub(super) fn text_if_any(&self, path: impl AsRef<Path>) -> Result<Option<String>, Unreadable> {
        match self.text(path) {
            Ok(text) => Ok(Some(text)),
            Err(Unreadable::File { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn form(&self, path: impl AsRef<Path>, expected: &'static str) -> Unreadable {
        Unreadable::Form { path: shown(&self.path(path)), expected }
    }
}

/// Returns a path as text for messages, with unsafe characters escaped.
pub(super) fn shown(path: &Path) -> String {
    escaped(&path.display().to_string())
}
