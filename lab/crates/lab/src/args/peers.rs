//! The arguments of `lab peers`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use super::limit::Limit;
use super::peer::Peer;
use super::{first_seed, level};

const EXAMPLES: &str = "\
Examples:
  bywash lab peers lab/scenarios/peers.toml
  bywash lab peers lab/scenarios/peers.toml --rho 5 --peers bywash,haproxy-expert --limit 2x
  bywash lab peers lab/scenarios/peers.toml --envoy \"$(scripts/envoy)\" --report out/peers.html

Every visitor is a real client. Every peer is a process with one worker, in front of a shop with its
own database, all on loopback. All processes end when this command ends, for any reason. The command
leaves out a peer that is not installed, and says so. It finds HAProxy and nginx in PATH.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PeersRun {
    /// The scenario file
    pub(crate) scenario: PathBuf,
    /// Levels of load, instead of the scenario's; 1 is the capacity of the shop
    #[arg(long, value_delimiter = ',', value_name = "RHO,…", value_parser = level)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) rho: Vec<f64>,
    /// Number of seeds, instead of the scenario's
    #[arg(long, value_parser = RangedU64ValueParser::<u32>::new().range(1..=100))]
    pub(crate) seeds: Option<u32>,
    /// First seed [default: 1]
    #[arg(long, value_name = "SEED", value_parser = first_seed())]
    pub(crate) first_seed: Option<u64>,
    /// Play only these peers
    #[arg(long, value_delimiter = ',', value_name = "PEER,…", value_enum)]
    pub(crate) peers: Vec<Peer>,
    /// Concurrency limit at the shop, the same for all peers: a number, or `2x` for twice its
    /// workers
    #[arg(long, value_name = "LIMIT")]
    pub(crate) limit: Option<Limit>,
    /// Keep connections open when clients lose patience, as a proxy that hides disconnects does
    #[arg(long)]
    pub(crate) hidden: bool,
    /// The Envoy program; `scripts/envoy` downloads one
    #[arg(long, value_name = "PROGRAM", default_value = "envoy")]
    pub(crate) envoy: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML report here
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}
