//! Measures the cost of a request, compared with HAProxy, nginx and Envoy in the same run.
//!
//! The cost is CPU time (the default), latency, or memory.

use bywash_bench::cost::cpu;
use bywash_bench::{latency, memory};
use bywash_peer::child_guard;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Measure what a request costs with bywash, HAProxy, nginx and Envoy
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    cpu: cpu::Options,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Time that a proxy adds to a request at a light load
    Latency(latency::Options),
    /// Memory of an idle connection and of a waiting request
    Memory(memory::Options),
}

fn main() -> ExitCode {
    let options = CommandLine::parse();
    let result = child_guard::start().and_then(|()| match &options.what {
        None => cpu::run(&options.cpu),
        Some(What::Latency(options)) => latency::run(options),
        Some(What::Memory(options)) => memory::run(options),
    });
    result.unwrap_or_else(|e| {
        eprintln!("cost: {e}");
        ExitCode::FAILURE
    })
}
