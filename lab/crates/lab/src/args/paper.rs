//! The arguments of `lab paper`.

use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  bywash lab paper 1
  bywash lab paper 1 --report out/paper-1.html

The program contains all scenarios that it needs. Exit code 99 means that a figure is off and that
the run does not confirm the reason given for it.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Paper {
    /// The paper: 1 is LIFO-Pri (2004), 2 is SERT (2006)
    pub(crate) number: u32,
    /// Print the claims as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML report here
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}
