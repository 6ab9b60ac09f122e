//! The arguments of `lab paper`.

use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  bywash lab paper 1
  bywash lab paper 1 --report out/paper-1.html

The command needs no other files. Exit code 99 means that a figure deviates from the paper, and that
this run does not show the stated reason for the deviation either.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Paper {
    /// Number of the paper, from 1 to 5: 1 is LIFO-Pri (2004), 2 is SERT (2006)
    pub(crate) number: u32,
    /// Print the claims as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML report here
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}
