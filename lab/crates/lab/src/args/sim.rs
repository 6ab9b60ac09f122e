//! The arguments of `lab sim`.

use std::path::PathBuf;

use super::Narrow;

const EXAMPLES: &str = "\
Examples:
  bywash lab sim papers/1-lifo-pri/scenarios/paper-1.toml
  bywash lab sim papers/1-lifo-pri/scenarios/paper-1.toml --rho 1.4,5 --policy SQ,session-first --seeds 2
  bywash lab sim lab/scenarios/flash-crowd.toml --report out/crowd.html
  bywash lab sim lab/scenarios/main-table.toml --first-seed 1001

The same scenario gives the same numbers every time and on every machine.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sim {
    /// The scenario file
    pub(crate) scenario: PathBuf,
    #[command(flatten)]
    pub(crate) narrow: Narrow,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a table for each class as well
    #[arg(long)]
    pub(crate) classes: bool,
    /// Write an HTML report here
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write each figure of the report as an SVG file into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) figures: Option<PathBuf>,
}
