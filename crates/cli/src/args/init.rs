//! The arguments of `init`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;

use super::cores;
use crate::presets::PRESETS;

const EXAMPLES: &str = "\
Examples:
  bywash init
  bywash init woocommerce --upstream http://127.0.0.1:8000 --out bywash.toml

The file sets the mode to observe. Read its classes, add the paths that only your site has, and run
`bywash check`. If you have access logs, compare the file with the proposal of `bywash advise`.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Init {
    /// The application; without one, list the known applications
    #[arg(value_parser = PossibleValuesParser::new(PRESETS.map(|(name, _)| name)), hide_possible_values = true)]
    pub(crate) preset: Option<String>,
    /// The application's URL, for the configuration
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:3000")]
    pub(crate) upstream: String,
    /// Worker processes or threads of the application
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) workers: Option<u32>,
    /// Cores of the machine that runs the application; `local`: those of this machine, the default
    /// for an application here
    #[arg(long, value_name = "N", value_parser = cores::read)]
    pub(crate) cores: Option<u32>,
    /// Write the configuration here instead of printing it
    #[arg(short, long, value_name = "FILE", requires = "preset")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}
