//! Failures of commands: the message and the exit code.

use std::fmt::Display;
use std::process::ExitCode;

use bywash_terminal::stderr;

/// A command that could not do its work.
#[derive(Debug)]
pub struct Failure {
    words: String,
    code: u8,
}

impl Failure {
    /// A failure while the command ran (exit code 1).
    pub fn running(words: impl Display) -> Self {
        Self { words: format!("bywash: {words}"), code: 1 }
    }

    /// A command line that makes no sense (exit code 2).
    pub fn usage(words: impl Display) -> Self {
        Self { words: format!("bywash: {words}"), code: 2 }
    }

    /// An admin listener that cannot be reached (exit code 69).
    pub fn unreachable(words: impl Display) -> Self {
        Self { words: format!("bywash: {words}"), code: 69 }
    }

    /// A wrong file (exit code 78); `words` is the whole message and says where the error is.
    pub fn configuration(words: impl Display) -> Self {
        Self { words: words.to_string(), code: 78 }
    }

    /// A promise that was not kept (exit code 99).
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

    /// Returns the exit code for the process.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// Returns the exit code as a number.
    pub const fn number(&self) -> u8 {
        self.code
    }
}
