//! What is said to whoever reads standard error.

use std::fmt::Display;
use std::io::Write;

/// One line, in one piece. Nobody listening is no failure: a journal that is gone ends no gateway, as `eprintln!` would.
pub(crate) fn say(text: impl Display) {
    let _ = std::io::stderr().write_all(format!("bywash: {text}\n").as_bytes());
}
