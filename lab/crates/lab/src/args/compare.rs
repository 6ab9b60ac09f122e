//! The arguments of `lab compare`.

use super::Narrow;

const EXAMPLES: &str = "\
Examples:
  bywash lab sim papers/1-lifo-pri/scenarios/paper-1.toml --json > before.json
  bywash lab compare before.json after.json
  bywash lab compare papers/1-lifo-pri/scenarios/paper-1.toml:8Q-LIFO-Pri papers/1-lifo-pri/scenarios/paper-1.toml:session-first

A difference is called larger than chance if chance alone would exceed it less than once in twenty
times, by Student's t: 12.7 standard errors with two seeds, 2.8 with five, 2.0 with thirty. If both
sides had the same visitors, they are compared seed by seed, which shows much smaller differences.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compare {
    /// A stored result (--json of lab sim or lab run), or SCENARIO:LABEL, a policy to play
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
