//! The arguments of `lab compare`.

use super::Narrow;

const EXAMPLES: &str = "\
Examples:
  bywash lab sim lab/scenarios/seed-1.toml --json > before.json
  bywash lab compare before.json after.json
  bywash lab compare lab/scenarios/seed-1.toml:8Q-LIFO-Pri lab/scenarios/seed-1.toml:session-first

A difference is called larger than chance when chance alone would exceed it less than once in twenty
times, by Student's t: with two seeds 12.7 standard errors, with five 2.8, with thirty 2.0. Where
both sides had the same visitors, seed by seed, their differences are compared, and much smaller
ones show.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compare {
    /// A result (--json of lab sim or lab run), or SCENARIO:LABEL, a policy of a scenario to play
    #[arg(value_name = "A")]
    pub(crate) left: String,
    /// The other side, in the same form
    #[arg(value_name = "B")]
    pub(crate) right: String,
    #[command(flatten)]
    pub(crate) narrow: Narrow,
    /// Print the differences as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
