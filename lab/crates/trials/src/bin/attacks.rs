//! Measures the damage that hostile clients do to honest ones, compared with HAProxy and nginx in
//! the same run.

use bywash_peer::child_guard;
use bywash_trials::attacks;
use clap::Parser;
use std::process::ExitCode;

/// Measure what hostile clients cost other clients, with bywash, HAProxy and nginx
#[derive(Debug, Parser)]
struct CommandLine {
    #[command(flatten)]
    options: attacks::Options,
}

fn main() -> ExitCode {
    let CommandLine { options } = CommandLine::parse();
    child_guard::start().and_then(|()| attacks::run(&options)).unwrap_or_else(|e| {
        eprintln!("attacks: {e}");
        ExitCode::FAILURE
    })
}
