//! How a command fails: what it says and the exit code.

use std::fmt::Display;
use std::process::ExitCode;

use crate::streams::say;

/// A command that could not do what it was asked to.
#[derive(Debug)]
pub(crate) struct Failure {
    words: String,
    code: u8,
}

impl Failure {
    /// Something went wrong while running.
    pub(crate) fn running(words: impl Display) -> Self {
        Self { words: format!("bywash: {words}"), code: 1 }
    }

    /// It was called in a way that makes no sense.
    pub(crate) fn usage(words: impl Display) -> Self {
        Self { words: format!("bywash: {words}"), code: 2 }
    }

    /// The admin listener cannot be reached.
    pub(crate) fn unreachable(words: impl Display) -> Self {
        Self { words: format!("bywash: {words}"), code: 69 }
    }

    /// A file is wrong; `words` say where, in full.
    pub(crate) fn configuration(words: impl Display) -> Self {
        Self { words: words.to_string(), code: 78 }
    }

    /// A promise was not kept.
    #[cfg(feature = "lab")]
    pub(crate) fn promise(words: impl Display) -> Self {
        Self { words: format!("bywash: {words}"), code: 99 }
    }

    /// What it says.
    #[cfg(feature = "top")]
    pub(crate) fn words(&self) -> &str {
        self.words.strip_prefix("bywash: ").unwrap_or(&self.words)
    }

    pub(crate) fn tell(&self) {
        if !self.words.is_empty() {
            say(self.words.trim_end());
        }
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// The exit code, as a number.
    #[cfg(feature = "lab")]
    pub(crate) const fn number(&self) -> u8 {
        self.code
    }
}
