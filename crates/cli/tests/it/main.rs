//! Tests of the binary from outside: its output and its exit code.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod advise;
mod advise_populations;
mod advise_several;
mod binary;
mod check;
mod compare;
mod demo;
mod doctor;
mod elephants;
mod expected;
mod folder;
mod gateway;
mod init;
mod judged;
mod life;
mod live;
mod operators;
mod paper;
mod peers;
mod replay;
mod run;
mod shaper;
mod sim;
mod status;
mod sweep;
#[cfg(feature = "top")]
mod terminal;
mod token_keys;
#[cfg(feature = "top")]
mod top;
mod trial;
mod trouble;
mod upstream;
mod words;
