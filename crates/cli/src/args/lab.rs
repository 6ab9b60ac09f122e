//! The arguments of `demo` and `lab`; each command of the lab has a file of its own.

mod compare;
mod elephants;
mod learn;
mod limits;
mod live;
mod narrow;
mod paper;
mod peers;
mod replay;
mod sim;
mod sweep;

use std::path::PathBuf;

use clap::Subcommand;
use clap::builder::RangedU64ValueParser;

pub(crate) use compare::Compare;
pub(crate) use elephants::ElephantsRun;
pub(crate) use learn::LearnRun;
pub(crate) use limits::LimitsRun;
pub(crate) use live::LiveRun;
pub(crate) use narrow::Narrow;
pub(crate) use paper::Paper;
pub(crate) use peers::PeersRun;
pub(crate) use replay::{Replay, ServiceOf};
pub(crate) use sim::Sim;
pub(crate) use sweep::{Sweep, Vary};

#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Where the HTML report goes
    #[arg(long, value_name = "FILE", default_value = "out/demo.html")]
    pub(crate) report: PathBuf,
    /// Print the result as JSON when it is over
    #[arg(long)]
    pub(crate) json: bool,
    /// Which crowd: another number, other visitors
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Whether the shop stays open afterwards, with a crawler in it, for an operator at the console: until Ctrl-C, half an
    /// hour at most (auto: on a terminal)
    #[arg(long, value_enum, default_value_t = Stay::Auto)]
    pub(crate) stay: Stay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Stay {
    Auto,
    Yes,
    No,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Play a scenario in virtual time, every policy and level of load in it
    Sim(Sim),
    /// See how fast, and how well, the worth of classes is learned
    Learn(LearnRun),
    /// Judge what decides how many requests run at once, while the servers change
    Limits(LimitsRun),
    /// Look for the elephants of a site whose elephants are known
    Elephants(ElephantsRun),
    /// Play a scenario in real time against a URL
    Run(LiveRun),
    /// Compare two results, or two policies of scenarios
    Compare(Compare),
    /// Play a scenario over the product of some of its values
    Sweep(Sweep),
    /// Play a scenario in real time against bywash and against what others run
    Peers(PeersRun),
    /// Play an access log again, in virtual time, with other policies
    Replay(Replay),
    /// Play a paper whole and print what it printed beside what comes out here
    Paper(Paper),
}

/// A seed to begin with; 0 is that of lessons.
fn first_seed() -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(1..=1_000_000_000)
}

/// A level of load.
fn level(text: &str) -> Result<f64, String> {
    let level = text.parse().ok().filter(|level| *level > 0.0 && *level <= 1000.0);
    level.ok_or_else(|| "a level of load is a number above 0 and at most 1000".to_owned())
}
