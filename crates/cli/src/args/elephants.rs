//! The arguments of `bywash elephants`: queries and decisions of an operator.

use std::str::FromStr;

use bywash_control::{Change, Limit};
use bywash_units::TimeSpan;
use clap::Subcommand;

use super::Which;

const EXAMPLES: &str = "\
Examples:
  bywash elephants list
  bywash elephants show 3
  bywash elephants try 3 --for 1m --why 'is it the search?'
  bywash elephants approve 3 --max-concurrency 2 --for 2h --why 'election night: search may be slow'
  bywash elephants ask '/search?q' --why 'the database is full of it'
  bywash elephants undo 3 --why 'the crowd has gone'
  bywash export --write bywash.toml

The configuration file names the resources to observe: [resource.NAME]. The audit log names the
author of each decision: --by, or the login name.";

/// A query or a decision.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Elephants {
    /// List the requests that cause the load, and the decisions about them
    List(super::Read),
    /// Show one elephant with its evidence
    Show(Show),
    /// Name a route, found or not, so that a rule for it can be tried or approved
    Ask(Ask),
    /// Throttle an elephant: its requests wait until no other request waits
    Approve(Decision),
    /// Throttle an elephant for a while and measure the effect
    Try(Trial),
    /// Leave an elephant alone, and do not propose it again for a while
    Reject(Rejection),
    /// Undo a decision; `act = "auto"` leaves the elephant alone for --for
    Undo(Undoing),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// Number of the elephant
    pub(crate) number: u32,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Print the elephant as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The author and the reason of a decision.
#[derive(Debug, clap::Args)]
pub(crate) struct Author {
    /// Author of the decision [default: the login name]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Reason, for the operator who decides next
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: String,
}

/// The limits of a rule that an operator sets in place of the proposed ones.
#[derive(Debug, clap::Args)]
pub(crate) struct Otherwise {
    /// Maximum number of its requests that run at the same time
    #[arg(long, value_name = "N")]
    pub(crate) max_concurrency: Option<u32>,
    /// Maximum number of its requests that start per second; none: no limit
    #[arg(long, value_name = "N|none", value_parser = limit::<f64>)]
    pub(crate) rate: Option<Limit<f64>>,
    /// Maximum number of its requests that wait
    #[arg(long, value_name = "N")]
    pub(crate) queue: Option<u32>,
    /// Refuse its requests that would have to wait longer
    #[arg(long, value_name = "SPAN")]
    pub(crate) wait: Option<TimeSpan>,
    /// Maximum bytes per second of all its answers together; none: no limit
    #[arg(long, value_name = "N|none", value_parser = limit::<u64>)]
    pub(crate) bytes: Option<Limit<u64>>,
}

fn limit<T: FromStr>(text: &str) -> Result<Limit<T>, String> {
    if text == "none" {
        return Ok(Limit::Gone);
    }
    // `f64` also parses NaN and infinity, which are no limits.
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    match text.parse() {
        Ok(limit) if is_number => Ok(Limit::At(limit)),
        _ => Err("write a number, or none".into()),
    }
}

impl Otherwise {
    /// Returns the changed limits in the form that the gateway's API reads.
    pub(crate) fn change(&self) -> Change {
        let Self { max_concurrency, rate, queue, wait, bytes } = *self;
        Change { max_concurrency, rate, queue, wait_ms: wait.map(TimeSpan::as_millis), bytes }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    /// Name of the route, as in the console's list of all routes: '/search?q'
    pub(crate) pattern: String,
    #[command(flatten)]
    pub(crate) author: Author,
    #[command(flatten)]
    pub(crate) which: Which,
}

/// The elephant, the author, the reason and the gateway of a decision.
#[derive(Debug, clap::Args)]
pub(crate) struct DecisionMeta {
    /// Number of the elephant
    pub(crate) number: u32,
    #[command(flatten)]
    pub(crate) author: Author,
    #[command(flatten)]
    pub(crate) which: Which,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Decision {
    #[command(flatten)]
    pub(crate) meta: DecisionMeta,
    /// How long the rule applies: 30m, 2h [default: until the end that is set already, else 1h]
    #[arg(long = "for", value_name = "SPAN")]
    pub(crate) lasts: Option<TimeSpan>,
    #[command(flatten)]
    pub(crate) otherwise: Otherwise,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Trial {
    #[command(flatten)]
    pub(crate) meta: DecisionMeta,
    /// How long to throttle the elephant: up to 10m
    #[arg(long = "for", value_name = "SPAN", default_value = "1m")]
    pub(crate) lasts: TimeSpan,
    #[command(flatten)]
    pub(crate) otherwise: Otherwise,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Rejection {
    #[command(flatten)]
    pub(crate) meta: DecisionMeta,
    /// How long not to propose the elephant again
    #[arg(long = "for", value_name = "SPAN", default_value = "24h")]
    pub(crate) lasts: TimeSpan,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Undoing {
    #[command(flatten)]
    pub(crate) meta: DecisionMeta,
    /// How long `act = "auto"` does not throttle the elephant
    #[arg(long = "for", value_name = "SPAN", default_value = "24h")]
    pub(crate) lasts: TimeSpan,
}
