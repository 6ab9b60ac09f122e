//! The arguments of `demo` and `lab`.

use std::path::PathBuf;

use clap::Subcommand;
use clap::builder::RangedU64ValueParser;

const SIM_EXAMPLES: &str = "\
Examples:
  bywash lab sim lab/scenarios/seed-1.toml
  bywash lab sim lab/scenarios/seed-1.toml --rho 1.4,5 --policy SQ,session-first --seeds 2
  bywash lab sim lab/scenarios/flash-crowd.toml --report out/crowd.html

The same scenario gives the same numbers, whenever and wherever it is played.";

const LIVE_EXAMPLES: &str = "\
Examples:
  bywash lab run lab/scenarios/flash-crowd.toml --target http://127.0.0.1:8080
  bywash lab run lab/scenarios/seed-1.toml --target http://127.0.0.1:8080 --rho 1.4 --json

Everybody in the scenario is a real client with a connection of her own. Load only what is yours.";

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
}

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Play a scenario in virtual time, every policy and level of load in it
    Sim(Sim),
    /// Play a scenario in real time against a URL
    Run(LiveRun),
}

#[derive(Debug, clap::Args)]
#[command(after_help = SIM_EXAMPLES)]
pub(crate) struct Sim {
    /// The scenario file
    pub(crate) scenario: PathBuf,
    /// These levels of load instead of the scenario's; 1 is what the servers can just do
    #[arg(long, value_delimiter = ',', value_name = "RHO,…", value_parser = level)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) rho: Vec<f64>,
    /// Only policies with these labels
    #[arg(long, value_delimiter = ',', value_name = "LABEL,…")]
    pub(crate) policy: Vec<String>,
    /// So many seeds instead of the scenario's
    #[arg(long, value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000))]
    pub(crate) seeds: Option<u32>,
    /// As long as an ideal policy needs for so many orders, instead of the scenario's length
    #[arg(long, value_parser = RangedU64ValueParser::<u64>::new().range(1..=10_000_000))]
    pub(crate) orders: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a table for each class as well
    #[arg(long)]
    pub(crate) classes: bool,
    /// Write an HTML report here
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = LIVE_EXAMPLES)]
pub(crate) struct LiveRun {
    /// The scenario file
    pub(crate) scenario: PathBuf,
    /// Where to send the load: a loopback address unless --anywhere
    #[arg(long, value_name = "URL")]
    pub(crate) target: String,
    /// Level of load, if the scenario has several; 1 is what the scenario's servers can just do
    #[arg(long, value_parser = level, allow_negative_numbers = true)]
    pub(crate) rho: Option<f64>,
    /// Which visitors
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Clients that lose patience keep their connection open, as behind a hop that hides closes
    #[arg(long)]
    pub(crate) hidden: bool,
    /// The shop itself (its /-/stats), to know how much it worked in vain
    #[arg(long, value_name = "URL")]
    pub(crate) shop: Option<String>,
    /// What to call it in the result
    #[arg(long, default_value = "live")]
    pub(crate) label: String,
    /// The target need not be on this machine: you may load it with somebody's leave only
    #[arg(long)]
    pub(crate) anywhere: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML report here
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

fn level(text: &str) -> Result<f64, String> {
    let level = text.parse().ok().filter(|level| *level > 0.0 && *level <= 1000.0);
    level.ok_or_else(|| "a level of load is a number above 0 and at most 1000".to_owned())
}
