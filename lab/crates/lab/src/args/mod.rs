//! The arguments of `bywash demo` and `bywash lab`. Each command of the lab has a module of its
//! own.

mod compare;
mod elephants;
mod fleet;
mod learn;
mod limit;
mod limits;
mod live;
mod narrow;
mod paper;
mod peer;
mod peers;
mod replay;
mod sim;
mod sweep;

use std::path::PathBuf;

use clap::Subcommand;
use clap::builder::RangedU64ValueParser;

pub(crate) use compare::Compare;
pub(crate) use elephants::ElephantsRun;
pub(crate) use fleet::FleetRun;
pub(crate) use learn::LearnRun;
pub(crate) use limit::Limit;
pub(crate) use limits::LimitsRun;
pub(crate) use live::LiveRun;
pub(crate) use narrow::Narrow;
pub(crate) use paper::Paper;
pub(crate) use peer::Peer;
pub(crate) use peers::PeersRun;
pub(crate) use replay::{Replay, ServiceOf};
pub(crate) use sim::Sim;
pub(crate) use sweep::{Sweep, Vary};

/// The arguments of `bywash demo`.
#[derive(Debug, clap::Args)]
pub struct Demo {
    /// Show a wiki with readers and scrapers instead of a shop with a flash crowd
    #[arg(long, conflicts_with = "stay")]
    pub(crate) scrape: bool,
    /// Write the HTML report here
    #[arg(long, value_name = "FILE", default_value = "out/demo.html")]
    pub(crate) report: PathBuf,
    /// Write each figure of the report as an SVG file into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) figures: Option<PathBuf>,
    /// Print the result as JSON when it is over
    #[arg(long)]
    pub(crate) json: bool,
    /// Seed of the visitors
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Keep the shop open afterwards, with a crawler in it that you throttle in the console: until
    /// Ctrl-C, half an hour at most (auto: on a terminal)
    #[arg(long, value_enum, default_value_t = Stay::Auto)]
    pub(crate) stay: Stay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Stay {
    Auto,
    Yes,
    No,
}

/// The arguments of `bywash lab`.
#[derive(Debug, clap::Args)]
pub struct Lab {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Play a scenario in virtual time, every policy and level of load in it
    Sim(Sim),
    /// Measure how fast and how well bywash learns the worth of classes
    Learn(LearnRun),
    /// Compare concurrency limiters while the servers change
    Limits(LimitsRun),
    /// Measure how well bywash finds elephants on a site whose elephants are known
    Elephants(ElephantsRun),
    /// Compare ways to divide the slots of an application among several gateways
    Fleet(FleetRun),
    /// Play a scenario in real time against a URL
    Run(LiveRun),
    /// Compare two results, or two policies of scenarios
    Compare(Compare),
    /// Play a scenario with every combination of some of its values
    Sweep(Sweep),
    /// Play a scenario in real time against bywash and against other proxies
    Peers(PeersRun),
    /// Replay an access log in virtual time with other policies
    Replay(Replay),
    /// Play all scenarios of a paper and print its figures next to the measured ones
    Paper(Paper),
}

/// Returns the parser of a first seed, which must be at least 1. Seed 0 is reserved for learning
/// runs.
fn first_seed() -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(1..=1_000_000_000)
}

/// Parses an offered load ρ. It must be above 0 and at most 1000.
fn level(text: &str) -> Result<f64, String> {
    let level = text.parse().ok().filter(|level| *level > 0.0 && *level <= 1000.0);
    level.ok_or_else(|| "write a level of load: a number above 0 and at most 1000".to_owned())
}
