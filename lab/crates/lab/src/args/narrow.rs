//! The arguments that restrict a scenario to some of its parts.

use clap::builder::RangedU64ValueParser;

use super::{first_seed, level};

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Narrow {
    /// Levels of load, instead of the scenario's; 1 is the capacity of the servers
    #[arg(long, value_delimiter = ',', value_name = "RHO,…", value_parser = level)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) rho: Vec<f64>,
    /// Only policies with these labels
    #[arg(long, value_delimiter = ',', value_name = "LABEL,…")]
    pub(crate) policy: Vec<String>,
    /// Number of seeds, instead of the scenario's
    #[arg(long, value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000))]
    pub(crate) seeds: Option<u32>,
    /// First seed; use one that no policy was tuned with [default: 1]
    #[arg(long, value_name = "SEED", value_parser = first_seed())]
    pub(crate) first_seed: Option<u64>,
    /// Play as long as an ideal policy needs for this many orders, instead of the scenario's length
    #[arg(long, value_parser = RangedU64ValueParser::<u64>::new().range(1..=10_000_000))]
    pub(crate) orders: Option<u64>,
}
