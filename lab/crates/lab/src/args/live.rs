//! The arguments of `lab run`.

use std::path::PathBuf;

use super::level;

const EXAMPLES: &str = "\
Examples:
  bywash lab run lab/scenarios/flash-crowd.toml --target http://127.0.0.1:8080
  bywash lab run papers/1-lifo-pri/scenarios/paper-1.toml --target http://127.0.0.1:8080 --rho 1.4 --json

Every visitor is a real client with their own connection. Load only a site that you own.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct LiveRun {
    /// The scenario file
    pub(crate) scenario: PathBuf,
    /// Send the load to this URL: a loopback address unless --anywhere
    #[arg(long, value_name = "URL")]
    pub(crate) target: String,
    /// Level of load, if the scenario has several; 1 is the capacity of the scenario's servers
    #[arg(long, value_parser = level, allow_negative_numbers = true)]
    pub(crate) rho: Option<f64>,
    /// Seed of the visitors
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Keep connections open when clients lose patience, as a proxy that hides disconnects does
    #[arg(long)]
    pub(crate) hidden: bool,
    /// Give every visitor their own address in 127.0.0.0/8, if the target is on loopback
    #[arg(long)]
    pub(crate) own_addresses: bool,
    /// URL of the shop itself; its /-/stats give the time that its workers were busy
    #[arg(long, value_name = "URL")]
    pub(crate) shop: Option<String>,
    /// Label of the run in the result
    #[arg(long, default_value = "live")]
    pub(crate) label: String,
    /// Allow a target on another machine: load it only with its owner's permission
    #[arg(long)]
    pub(crate) anywhere: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML report here
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}
