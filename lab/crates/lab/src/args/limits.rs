//! The arguments of `lab limits`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use super::first_seed;

const EXAMPLES: &str = "\
Examples:
  bywash lab limits lab/scenarios/limits-capacity.toml
  bywash lab limits lab/scenarios/limits-start.toml --seeds 10 --json

workers   workers of the application, on average
slots     the concurrency limit, on average
settled   seconds after the change until the limit stays, for four fifths of the remaining time,
          between 0.9 × the workers and 1.5 × the workers + 2: the median over the seeds
lost      share of the workers' capacity that was not used
inside    requests that wait inside the application, per worker";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LimitsRun {
    /// The scenario file, whose queue should always be full
    pub(crate) scenario: PathBuf,
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
