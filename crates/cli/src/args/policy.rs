//! The arguments of `bywash policy` and `bywash export`, about settings that override the
//! configuration file for a limited time.

use std::path::PathBuf;

use bywash_units::TimeSpan;
use clap::Subcommand;

use super::Which;
use super::elephants::Author;

const EXAMPLES: &str = "\
Examples:
  bywash policy show
  bywash policy enforce search --percent 10 --for 30m --why 'the first try on real visitors'
  bywash policy enforce search --for 4h --why 'ten percent went well'
  bywash policy rank 1f0c9e3a77d2b845 7 --for 4h --why 'it reads the whole catalogue'
  bywash policy undo 3 --why 'enough for today'
  bywash export --write bywash.toml

An override has an author, a reason and an end. It survives a restart if state.directory is set. The
audit log records it.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  bywash export
  bywash export --write /etc/bywash/bywash.toml

--write changes only the keys of the overrides and rules: comments, order and spelling of the file
stay. If the result would not be a valid configuration, nothing is written.";

/// A query or a decision.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Policy {
    /// Show the policy in force, and the overrides of the file in it
    Show(super::Read),
    /// Enforce the decisions about a class, for a while
    Enforce(Enforce),
    /// Only record the decisions about a class, for a while
    Observe(OfClass),
    /// Set the level of a population of clients, for a while
    Rank(Rank),
    /// End an override, so that the file applies again
    Undo(Undone),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Enforce {
    #[command(flatten)]
    pub(crate) class: OfClass,
    /// Percentage of clients to enforce for, picked by address [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) percent: Option<u8>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OfClass {
    /// Name of the class
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) terms: Terms,
}

/// The author, the reason and the duration of an override, and the gateway that gets it.
#[derive(Debug, clap::Args)]
pub(crate) struct Terms {
    #[command(flatten)]
    pub(crate) author: Author,
    /// How long the override applies: 30m, 2h [default: until the end that is set already, else 1h]
    #[arg(long = "for", value_name = "SPAN")]
    pub(crate) lasts: Option<TimeSpan>,
    #[command(flatten)]
    pub(crate) which: Which,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Rank {
    /// Name of the population, from `bywash populations`
    pub(crate) population: String,
    /// Level by which its first requests rank: 0 first, 7 last
    #[arg(value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) level: u8,
    #[command(flatten)]
    pub(crate) terms: Terms,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Undone {
    /// Number of the override
    pub(crate) number: u32,
    #[command(flatten)]
    pub(crate) author: Author,
    #[command(flatten)]
    pub(crate) which: Which,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct Export {
    /// Write the overrides and rules into this configuration file
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) which: Which,
}
