//! The arguments of `lab limits`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use super::first_seed;

const EXAMPLES: &str = "\
Examples:
  bywash lab limits lab/scenarios/limits-capacity.toml
  bywash lab limits lab/scenarios/limits-start.toml --seeds 10 --json

slots     mean number, next to the number of workers
settled   seconds after the change until the limit lay in the band for four fifths of the remaining
          time: the median of the seeds. The band is 0.9 x the workers to 1.5 x the workers + 2
lost      share of the work that the workers could have done and did not do
inside    requests that waited inside the application, per worker";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LimitsRun {
    /// The scenario file; its queue should always be full
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
