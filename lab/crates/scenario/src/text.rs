//! Reads files of bounded size, and parses durations.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use bywash_units::TimeSpan;

use crate::error::ScenarioError;

/// Parses a duration with its unit, such as `250ms`.
pub(crate) fn span(text: &str) -> Result<TimeSpan, ScenarioError> {
    text.parse()
        .map_err(|error: bywash_units::ParseSpanError| ScenarioError::Invalid(error.to_string()))
}

/// Reads a file of at most 64 MiB, which holds about five million arrival times. Fails if the file
/// is larger.
pub(crate) fn read_bounded(path: &Path) -> Result<String, ScenarioError> {
    const MOST: u64 = 64 << 20;
    let read = || {
        let mut text = String::new();
        let read = File::open(path)?.take(MOST + 1).read_to_string(&mut text)?;
        if read as u64 > MOST {
            return Err(std::io::Error::other("the file is larger than 64 MiB"));
        }
        Ok(text)
    };
    read().map_err(|source| ScenarioError::Unreadable { path: path.into(), source })
}
