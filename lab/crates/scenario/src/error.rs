//! The errors in a scenario file.

use std::path::PathBuf;

/// An error in a scenario file.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The text is not TOML, or has an unknown key or a value of the wrong type. The message has
    /// line and column.
    #[error("{0}")]
    Malformed(#[from] toml::de::Error),
    /// The values are well-formed but make no sense.
    #[error("{0}")]
    Senseless(String),
    /// The base of the scenario is invalid.
    #[error("in its base {}: {source}", path.display())]
    Base {
        /// The path of the base.
        path: PathBuf,
        /// The error in the base.
        source: Box<Self>,
    },
}
