//! `survival floods`: floods that cost a client little. One client or a thousand clients send them.
//!
//! There are three parts: `frames.rs` (floods of HTTP/2 frames on one connection), `slow.rs` (heads
//! that never end) and `descriptors.rs` (more connections than the process may have open).

mod client;
mod descriptors;
mod frames;
mod slow;

use std::io;
use std::process::ExitCode;

use bywash_harness::machine::LOAD_CORE;
use bywash_harness::peer::PeerKind;
use bywash_harness::report::{Bench, Common};
use bywash_harness::sys;

/// Parts, programs and number of connections
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Run only this part; may be repeated
    #[arg(long, value_enum)]
    part: Vec<Part>,
    /// Measure only this program; may be repeated
    #[arg(long, value_enum)]
    only: Vec<PeerKind>,
    /// Connections with slow heads; fewer if the descriptors do not suffice
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
}

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Floods of HTTP/2 frames
    Frames,
    /// Heads that never end
    Slow,
    /// More connections than descriptors
    Descriptors,
}

/// Measures all selected parts and publishes the report.
pub fn run(options: &Options) -> io::Result<ExitCode> {
    let limit = sys::raise_descriptor_limit()?;
    let kinds = if options.only.is_empty() { &PeerKind::ALL[..] } else { &options.only };
    let programs = &options.common.programs;
    let bench = Bench::set(kinds, programs);
    sys::pin_to(LOAD_CORE)?;
    let kinds: Vec<PeerKind> = bench.kinds().collect();
    let all = [Part::Frames, Part::Slow, Part::Descriptors];
    let parts = if options.part.is_empty() { &all[..] } else { &options.part };
    let measure = |part: &Part| match part {
        Part::Frames => frames::measure(&kinds, programs),
        Part::Slow => slow::measure(&kinds, programs, options.connections, limit),
        Part::Descriptors => descriptors::measure(&kinds, programs),
    };
    let reports = parts.iter().map(measure).collect::<io::Result<Vec<_>>>()?;
    bench.publish(&reports, &options.common)
}
