//! Tests whether the gateway survives floods, faults and upgrades, continues to serve, and loses no
//! state.
//!
//! The exit code is 99 if a promise was broken.

use bywash_peer::child_guard;
use bywash_trials::{faults, floods, hostile, pulse, updown};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Measure how the gateway copes with floods, faults, upgrades and overload
#[derive(Debug, Parser)]
struct CommandLine {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Floods of HTTP/2 frames, slow heads, more connections than descriptors
    Floods(floods::Options),
    /// Reloads and upgrades under load, and the start after a kill
    Updown(updown::Options),
    /// Failures of the upstream and of the machine
    Faults(faults::Options),
    /// Memory per hostile connection, and ten thousand of them in a control group
    Memory(hostile::Options),
    /// Ten times the load for a minute, and the time until recovery
    Pulse(pulse::Options),
}

fn main() -> ExitCode {
    let CommandLine { what } = CommandLine::parse();
    let result = child_guard::start().and_then(|()| match &what {
        What::Floods(options) => floods::run(options),
        What::Updown(options) => updown::run(options),
        What::Faults(options) => faults::run(options),
        What::Memory(options) => hostile::run(options),
        What::Pulse(options) => pulse::run(options),
    });
    result.unwrap_or_else(|e| {
        eprintln!("survival: {e}");
        ExitCode::FAILURE
    })
}
