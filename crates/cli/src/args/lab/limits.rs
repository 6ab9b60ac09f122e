//! The arguments of `lab limits`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use super::first_seed;

const EXAMPLES: &str = "\
Examples:
  bywash lab limits lab/scenarios/limits-capacity.toml
  bywash lab limits lab/scenarios/limits-start.toml --seeds 10 --json

slots     the mean, beside the workers that there were
settled   seconds after the change until the limit lay between nine tenths of the workers and half
          as many more and two, for four fifths of the rest: the median of the seeds
lost      of what the workers could have done
inside    requests that waited inside the application, for each worker";

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
