//! `bywash elephants`: what an operator may ask and decide.

use std::str::FromStr;

use bywash_control::{Change, Limit};
use bywash_units::Span;
use clap::Subcommand;

use super::Which;

const EXAMPLES: &str = "\
Examples:
  bywash elephants list
  bywash elephants show 3
  bywash elephants try 3 --for 1m --why 'is it the search?'
  bywash elephants approve 3 --at-once 2 --for 2h --why 'election night: search may be slow'
  bywash elephants ask '/search?q' --why 'the database is full of it'
  bywash elephants undo 3 --why 'the crowd has gone'
  bywash export --write bywash.toml

Resources to look at stand in the file: [resource.NAME]. Whoever decides is named in the audit log:
--by, or the name of whoever is logged in.";

/// What is asked or decided.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Elephants {
    /// Which requests cause the load, and what was decided of them
    List(List),
    /// One of them, with its evidence
    Show(Show),
    /// Ask for a kind by its name, found or not, so that a rule can be tried or approved
    Ask(Ask),
    /// Hold such requests back: they wait until no other does
    Approve(Decision),
    /// Hold them back for a while and measure what comes of it
    Try(Trial),
    /// Leave them alone, and propose them no more for a while
    Reject(Rejection),
    /// Take back what was decided; act = "auto" leaves it alone for --for
    Undo(Undoing),
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// Its number
    pub(crate) number: u32,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who decides, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct Author {
    /// Who decides [default: who is logged in]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Why: whoever comes next decides by that
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: String,
}

/// What of the rule is to be otherwise than proposed.
#[derive(Debug, clap::Args)]
pub(crate) struct Otherwise {
    /// How many may run at once
    #[arg(long, value_name = "N")]
    pub(crate) at_once: Option<u32>,
    /// How many may start in a second; none: as many as there is room for
    #[arg(long, value_name = "N|none", value_parser = limit::<f64>)]
    pub(crate) rate: Option<Limit<f64>>,
    /// How many may wait
    #[arg(long, value_name = "N")]
    pub(crate) queue: Option<u32>,
    /// Who would have to wait longer is refused
    #[arg(long, value_name = "SPAN")]
    pub(crate) wait: Option<Span>,
    /// Bytes a second of all their answers together; none: as many as go out
    #[arg(long, value_name = "N|none", value_parser = limit::<u64>)]
    pub(crate) bytes: Option<Limit<u64>>,
}

fn limit<T: FromStr>(text: &str) -> Result<Limit<T>, String> {
    if text == "none" {
        return Ok(Limit::Gone);
    }
    // Some numbers are none.
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    match text.parse() {
        Ok(limit) if is_number => Ok(Limit::At(limit)),
        _ => Err("it is a number, or none".into()),
    }
}

impl Otherwise {
    /// As it is said to a gateway.
    pub(crate) fn change(&self) -> Change {
        let Self { at_once, rate, queue, wait, bytes } = *self;
        Change { at_once, rate, queue, wait_ms: wait.map(Span::as_millis), bytes }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    /// Its name, as the console's list of all kinds has it: '/search?q'
    pub(crate) pattern: String,
    #[command(flatten)]
    pub(crate) author: Author,
    #[command(flatten)]
    pub(crate) which: Which,
}

/// About which, by whom and why, at which gateway.
#[derive(Debug, clap::Args)]
pub(crate) struct Word {
    /// Its number
    pub(crate) number: u32,
    #[command(flatten)]
    pub(crate) author: Author,
    #[command(flatten)]
    pub(crate) which: Which,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Decision {
    #[command(flatten)]
    pub(crate) word: Word,
    /// For how long: 30m, 2h [default: until when somebody has said before, else 1h]
    #[arg(long = "for", value_name = "SPAN")]
    pub(crate) lasts: Option<Span>,
    #[command(flatten)]
    pub(crate) otherwise: Otherwise,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Trial {
    #[command(flatten)]
    pub(crate) word: Word,
    /// For how long: up to 10m
    #[arg(long = "for", value_name = "SPAN", default_value = "1m")]
    pub(crate) lasts: Span,
    #[command(flatten)]
    pub(crate) otherwise: Otherwise,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Rejection {
    #[command(flatten)]
    pub(crate) word: Word,
    /// For how long it is not proposed again
    #[arg(long = "for", value_name = "SPAN", default_value = "24h")]
    pub(crate) lasts: Span,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Undoing {
    #[command(flatten)]
    pub(crate) word: Word,
    /// For how long act = "auto" does not hold it back
    #[arg(long = "for", value_name = "SPAN", default_value = "24h")]
    pub(crate) lasts: Span,
}
