//! From a file, a text or a URL to a [`Config`].

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::code;
use crate::config::Config;
use crate::document::Document;
use crate::problem::Problems;
use crate::report::{Finding, Report};
use crate::resolve;
use crate::sentry::Sentry;
use crate::source::{Source, shown};

/// Bytes of a file that are read; a configuration is far smaller.
const LARGEST: usize = 1024 * 1024;

impl Config {
    /// Reads a text; `name` stands for it in messages. With the configuration come the warnings.
    pub fn parse(text: &str, name: &str) -> Result<(Self, Problems), Problems> {
        if text.len() > LARGEST {
            return Err(unreadable(name, &too_large(LARGEST)));
        }
        let mut report = Report::new(Source::new(name, text));
        let document = Document::parse(text, &mut report);
        let config = resolve::config(&document, &mut report);
        report.finish(config)
    }

    /// Reads a file.
    pub fn read(path: impl AsRef<Path>) -> Result<(Self, Problems), Problems> {
        let name = path.as_ref().display().to_string();
        let file = File::open(path).map_err(|error| unreadable(&name, &error.to_string()))?;
        let text = text(file, LARGEST).map_err(|why| unreadable(&name, &why))?;
        Self::parse(&text, &name)
    }

    /// Reads what a stop daemon needs of a file, `[sentry]` and `[database.NAME]`: it may be the whole file of a
    /// gateway, or have these alone.
    pub fn read_sentry(path: impl AsRef<Path>) -> Result<(Sentry, Problems), Problems> {
        let name = path.as_ref().display().to_string();
        let file = File::open(path).map_err(|error| unreadable(&name, &error.to_string()))?;
        let text = text(file, LARGEST).map_err(|why| unreadable(&name, &why))?;
        let mut report = Report::new(Source::new(&name, &text));
        let document = Document::parse(&text, &mut report);
        let sentry = resolve::sentry_of(&document, &mut report);
        report.finish(sentry)
    }

    /// Every default, mode `observe` and the class `other` alone: what a gateway does that was
    /// told only where the application is.
    pub fn for_upstream(url: &str) -> Result<Self, Problems> {
        let mut report = Report::new(Source::new("--upstream", url));
        let config = resolve::config(&Document::for_upstream(url), &mut report);
        report.finish(config).map(|(config, _)| config)
    }
}

/// Bytes of a file of keys, for session tokens or for levels: two lines, and what somebody has to say about them.
pub const LARGEST_KEYS: usize = 4096;

/// The text of a file of keys.
///
/// # Errors
/// Why it cannot be used; nothing of what is in it.
pub fn read_keys(path: &Path) -> Result<String, String> {
    let file = regular(path)?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    let mode = found.mode() & 0o777;
    if mode & 0o007 != 0 {
        return Err(format!("every user may read or write it: its mode is {mode:03o}"));
    }
    text(file, LARGEST_KEYS)
}

/// The text of a file that the configuration names.
pub(crate) fn text_of(path: &Path, largest: usize) -> Result<String, String> {
    text(regular(path)?, largest)
}

/// A pipe that nobody writes to would hold up the start for ever.
fn regular(path: &Path) -> Result<File, String> {
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is no file".to_string());
    }
    File::open(path).map_err(|error| error.to_string())
}

/// At most one byte more than the largest file: whoever reads on sees that it is too large.
fn text(file: File, largest: usize) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = file.take(largest as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() > largest {
        return Err(too_large(largest));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count();
        format!("it is not UTF-8 in line {line}")
    })
}

fn too_large(largest: usize) -> String {
    format!("it has more than {largest} bytes")
}

fn unreadable(name: &str, why: &str) -> Problems {
    let message = format!("cannot read {}: {}", shown(name), shown(why));
    let report = Report::new(Source::new(name, ""));
    report.give_up(Finding::new(&code::UNREADABLE, 0..0, message))
}
