//! The standard streams: standard output is for data, standard error for messages.
//!
//! A reader that closes standard output early (`| head`) is not a failure, and neither is a closed
//! standard error. Neither may end a running gateway, but `eprintln!` would panic.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::Duration;

use bywash_terminal::stderr;
use bywash_terminal::text::printable_json;
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;

/// The maximum time that the process waits at its end until its messages are written to standard
/// error.
pub const FLUSHED: Duration = Duration::from_secs(1);

/// Prints data to standard output. If the reader has closed standard output, the data is dropped
/// without an error.
///
/// # Errors
/// If the data cannot be written for another reason.
pub fn print(text: &str) -> Result<(), Failure> {
    print_while_read(text).map(drop)
}

/// Prints data to standard output. Returns whether standard output still has a reader.
pub fn print_while_read(text: &str) -> Result<bool, Failure> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::running(format!("cannot write to standard output: {error}"))),
    }
}

/// Prints a JSON document to standard output, without characters that a terminal would interpret.
pub fn print_json(value: &Value) -> Result<(), Failure> {
    print(&format!("{}\n", printable_json(&format!("{value:#}"))))
}

/// Returns a value as a JSON document.
pub fn to_json(value: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(Failure::running)
}

/// Writes a message of one or several lines to standard error.
pub fn say(text: impl Display) {
    draw(&format!("{text}\n"));
}

/// Writes text that has its own line ends to standard error, unchanged.
pub fn draw(text: &str) {
    stderr::write(text.to_owned());
}

/// Returns whether standard error is a terminal, on which lines can be redrawn in place.
pub fn is_terminal() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Returns whether messages on standard error may be coloured (<https://no-color.org>).
pub fn has_colour() -> bool {
    is_terminal() && wants_colour()
}

/// Returns whether the user permits colours. They do if the environment variable `NO_COLOR` is not
/// set or is empty.
pub fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
