//! The arguments of `bywash top`.

use bywash_command::which::Which;
use bywash_units::TimeSpan;
use clap::ValueEnum;
use clap::builder::PossibleValue;

const EXAMPLES: &str = "\
Examples:
  bywash top
  bywash top --window 10s --by ana
  bywash top -n 1
  bywash top --json --interval 10s | jq .transactions_per_min

On a terminal it shows a screen; press ? for its keys. Elsewhere, and with --json or -n, it prints a
table or a JSON document (one line) every --interval. Exit code 69 means that no gateway answers. A
screen that is open waits until the gateway answers again.";

/// The arguments of `bywash top`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Top {
    /// Time window of rates and shares (key: w)
    #[arg(long, value_enum, default_value = "60s")]
    pub(crate) window: Window,
    /// Print this many tables or documents, then end
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Time between two tables or documents
    #[arg(long, value_name = "SPAN", default_value = "1s")]
    pub(crate) interval: TimeSpan,
    /// Print a JSON document on each line
    #[arg(long)]
    pub(crate) json: bool,
    /// Author of decisions [default: the login name]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    #[command(flatten)]
    pub(crate) which: Which,
}

/// The time window over which rates and shares are computed. The API's history has a window for
/// each variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Ten,
    Minute,
    Quarter,
}

impl ValueEnum for Window {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Ten, Self::Minute, Self::Quarter]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.value()))
    }
}

impl Window {
    /// Returns the corresponding window of the history.
    const fn of(self) -> bywash_history::Window {
        match self {
            Self::Ten => bywash_history::Window::TenSeconds,
            Self::Minute => bywash_history::Window::Minute,
            Self::Quarter => bywash_history::Window::QuarterHour,
        }
    }

    /// Returns the nominal length of the window in seconds.
    pub(crate) const fn seconds(self) -> u64 {
        self.of().span().as_millis() / 1000
    }

    /// Returns the value of the option `--window` for this window, which is also the value of
    /// `window` in the API.
    pub(crate) const fn value(self) -> &'static str {
        self.of().name()
    }

    /// Returns the name of the window on the screen.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ten => "10 s",
            Self::Minute => "60 s",
            Self::Quarter => "15 min",
        }
    }

    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Ten => Self::Minute,
            Self::Minute => Self::Quarter,
            Self::Quarter => Self::Ten,
        }
    }
}
