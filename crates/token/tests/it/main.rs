//! Properties that must hold for every token and every signed level, tested on many.
#![allow(missing_docs, reason = "a test's name is what it says")]
#![allow(clippy::unwrap_used, reason = "what a test sets up itself may panic like the test")]

mod laws;
mod levels;
