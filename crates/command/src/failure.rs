//! Failures of commands: each has a message and an exit code.

use std::fmt::Display;
use std::process::ExitCode;

use bywash_terminal::stderr;

/// The failure of a command that could not do its work.
#[derive(Debug)]
pub struct Failure {
    words: String,
    code: u8,
}

impl Failure {
    /// Creates the failure of a command that ran into an error (exit code 1).
    pub fn running(words: impl Display) -> Self {
        Self { words: format!("bywash: {words}"), code: 1 }
    }

    /// Creates the failure for an invalid command line (exit code 2).
    pub fn usage(words: impl Display) -> Self {
        Self { words: format!("bywash: {words}"), code: 2 }
    }

    /// Creates the failure for an admin listener that cannot be reached (exit code 69).
    pub fn unreachable(words: impl Display) -> Self {
        Self { words: format!("bywash: {words}"), code: 69 }
    }

    /// Creates the failure for an invalid file (exit code 78). `words` is the whole message and
    /// says where the error is.
    pub fn configuration(words: impl Display) -> Self {
        Self { words: words.to_string(), code: 78 }
    }

    /// Creates the failure for a measurement that did not meet its criteria (exit code 99).
    pub fn promise(words: impl Display) -> Self {
        Self { words: format!("bywash: {words}"), code: 99 }
    }

    /// Returns the message without the program's name.
    pub fn words(&self) -> &str {
        self.words.strip_prefix("bywash: ").unwrap_or(&self.words)
    }

    /// Writes the message to standard error.
    pub fn tell(&self) {
        if !self.words.is_empty() {
            stderr::write(format!("{}\n", self.words.trim_end()));
        }
    }

    /// Returns the exit code of the process for this failure.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// Returns the exit code of the process as a number.
    pub const fn number(&self) -> u8 {
        self.code
    }
}
