//! Where readings come from: a source is read as a whole, and says why it cannot be.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use bywash_units::{Span, Time};
use thiserror::Error;

use super::resource::Reading;

/// Something that is read as a whole.
pub trait Source: Send {
    /// What is read, for whoever is told that it cannot be.
    fn name(&self) -> &str;

    /// What it says now; `None` if it has nothing new.
    ///
    /// # Errors
    /// When it cannot be read this time. It may be tried again.
    fn read(&mut self, clock: &Clock) -> Result<Option<Taken>, Unreadable>;
}

/// What was read at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// When.
    pub at: Time,
    /// Of one resource each; at most [`MOST`].
    pub readings: Vec<Reading>,
}

/// Resources of one source. A host with so many disks and interfaces is none that one looks at.
pub const MOST: usize = 1000;

/// Why a source cannot be read.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// The system says why.
    #[error("{path}: {error}")]
    File {
        /// What was to be read.
        path: String,
        /// Why it was not.
        error: io::Error,
    },
    /// It can be read, and says something else.
    #[error("{path} is not as expected: {expected}")]
    Form {
        /// What was read.
        path: String,
        /// What was expected of it.
        expected: &'static str,
    },
    /// It has more than is looked at.
    #[error("{path} has more than {most} {what}")]
    TooMuch {
        /// What was read.
        path: String,
        /// How many are looked at.
        most: usize,
        /// Of what.
        what: &'static str,
    },
    /// There is none, or this user may not see it.
    #[error(
        "no process {0}: is it running, is it called so in `ps -eo comm`, and may this user see it (hidepid)?"
    )]
    NoProcess(String),
    /// An exporter does not answer as one.
    #[error("{0}")]
    Exporter(#[from] super::exporter::Failed),
}

/// The moments of readings, on one clock that never jumps.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    at: Time,
}

impl Clock {
    /// Moments since then.
    pub const fn since(started: Instant) -> Self {
        Self { started, at: Time::ZERO }
    }

    /// Moments since 1970, to compare with those of logs. What the machine's clock says is asked
    /// once: if it is set later, this one is not.
    pub fn since_1970() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { started: Instant::now(), at: Time::ZERO + Span::from(now) }
    }

    /// This moment.
    pub fn now(&self) -> Time {
        self.at + Span::from(self.started.elapsed())
    }
}

/// The folder in which `proc` and `sys` are.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

/// Bytes of a file that are read: `/proc/stat` of 500 processors has 100 KiB.
const LARGEST: u64 = 1 << 20;

impl Root {
    /// Those of this host.
    pub fn host() -> Self {
        Self(PathBuf::from("/"))
    }

    /// Those in that folder: another host's that are mounted there, or a test's.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    pub(super) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path)
    }

    /// What stands in a file. Names of processes and interfaces may be any bytes.
    pub(super) fn text(&self, path: impl AsRef<Path>) -> Result<String, Unreadable> {
        let path = self.path(path);
        let read = || -> io::Result<Vec<u8>> {
            // The kernel does not say how long they are; most are no longer than that.
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

    /// As [`Self::text`]; `None` if there is no such file.
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

/// Nothing that a terminal would take for a command.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string().escape_debug().to_string()
}
