//! The arguments of `lab sim`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use super::level;

const EXAMPLES: &str = "\
Examples:
  bywash lab sim lab/scenarios/seed-1.toml
  bywash lab sim lab/scenarios/seed-1.toml --rho 1.4,5 --policy SQ,session-first --seeds 2
  bywash lab sim lab/scenarios/flash-crowd.toml --report out/crowd.html

The same scenario gives the same numbers, whenever and wherever it is played.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
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
