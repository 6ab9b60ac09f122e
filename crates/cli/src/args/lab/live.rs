//! The arguments of `lab run`.

use std::path::PathBuf;

use super::level;

const EXAMPLES: &str = "\
Examples:
  bywash lab run lab/scenarios/flash-crowd.toml --target http://127.0.0.1:8080
  bywash lab run lab/scenarios/seed-1.toml --target http://127.0.0.1:8080 --rho 1.4 --json

Everybody in the scenario is a real client with a connection of her own. Load only what is yours.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
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
    /// Every visitor comes from an address of 127.0.0.0/8 of their own, where the target is on loopback
    #[arg(long)]
    pub(crate) own_addresses: bool,
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
