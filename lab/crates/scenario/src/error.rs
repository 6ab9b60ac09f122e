//! The errors in a scenario file.

use std::path::PathBuf;

/// An error in a scenario file.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A file could not be read: the scenario, its base, or its file of arrival times.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The path of the file that could not be read.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The text is not TOML, or has an unknown key or a value of the wrong type. The message has
    /// the line and the column.
    #[error("{0}")]
    Malformed(#[from] toml::de::Error),
    /// The values have the right types, but are out of range or contradict each other. The message
    /// lists all errors.
    #[error("{0}")]
    Invalid(String),
    /// The base of the scenario has an error.
    #[error("in its base {}: {source}", path.display())]
    Base {
        /// The path of the base, as the scenario file gives it.
        path: PathBuf,
        /// The error in the base file.
        source: Box<Self>,
    },
}
