//! The arguments of `lab learn`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use super::{first_seed, level};

const EXAMPLES: &str = "\
Examples:
  bywash lab learn lab/scenarios/learning.toml
  bywash lab learn lab/scenarios/learning.toml --rho 5 --seeds 10 --json

within 10 %   hours until the worth of every class is within 10 % of the truth and stays there to
              the end: the median over the seeds, and the number of seeds in which it does
error         at the end of the run: the mean over classes and seeds, and the largest";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LearnRun {
    /// The scenario file
    pub(crate) scenario: PathBuf,
    /// Levels of load, instead of the scenario's
    #[arg(long, value_delimiter = ',', value_name = "RHO,…", value_parser = level)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) rho: Vec<f64>,
    /// Number of seeds, instead of the scenario's
    #[arg(long, value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000))]
    pub(crate) seeds: Option<u32>,
    /// First seed [default: 1]
    #[arg(long, value_name = "SEED", value_parser = first_seed())]
    pub(crate) first_seed: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
