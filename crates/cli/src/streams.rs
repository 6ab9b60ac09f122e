//! Standard output is data, standard error is talk.
//!
//! A reader that has seen enough (`| head`) is no failure of data, and nobody listening is no
//! failure of talk: neither may end a gateway in mid-flight, as `eprintln!` would.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::Duration;

use bywash_control::printable_json;
use bywash_gateway::talk;
use serde_json::Value;

use crate::failure::Failure;

/// How long the end of the process waits for whoever reads standard error.
pub(crate) const FLUSHED: Duration = Duration::from_secs(1);

/// Data.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    is_read(text).map(drop)
}

/// The same. Whether somebody still reads.
pub(crate) fn is_read(text: &str) -> Result<bool, Failure> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::running(format!("cannot write to standard output: {error}"))),
    }
}

/// A document, in which nothing is left that a terminal would obey.
pub(crate) fn print_json(value: &Value) -> Result<(), Failure> {
    print(&format!("{}\n", printable_json(&format!("{value:#}"))))
}

/// Talk: a line, or several.
pub(crate) fn say(text: impl Display) {
    draw(&format!("{text}\n"));
}

/// Talk that ends its lines itself.
pub(crate) fn draw(text: &str) {
    talk::write(text.to_owned());
}

/// Whether talk may be redrawn in place.
pub(crate) fn is_terminal() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether talk may be coloured (<https://no-color.org>).
pub(crate) fn has_colour() -> bool {
    is_terminal() && wants_colour()
}

/// Whether whoever looks has nothing against it.
pub(crate) fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
