//! The arguments of `lab elephants`.

use clap::builder::RangedU64ValueParser;

const EXAMPLES: &str = "\
Examples:
  bywash lab elephants
  bywash lab elephants --urls 2000 --minutes 30 --seeds 20 --json

The site has a closed loop of 400 visitors and a database with two processors. Two pages use nearly
all of the database's time, in shares of 70 and 30 %. The loads are light (10 % of its capacity),
steady (60 %), varying (60 %, half more and half less in waves) and saturated (150 %). Shared and
strained are light and saturated on a machine whose speed changes. 28 pages are those of RUBiS;
other numbers are flows of eight pages.

Columns:
  precision   share of the pages found that are elephants
  recall      share of the elephants that were found
  cost error  mean relative error of the elephants' costs
  covered     share of the costs' intervals that contain the true cost (goal: 0.95)
  Pearson     the same for the paper's method (Pearson's coefficient, p < 0.05), which has no costs";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ElephantsRun {
    /// Number of pages of the site: 28 (those of the auction), or a multiple of 8
    #[arg(long, value_delimiter = ',', default_values_t = [28, 200, 2000], value_parser = urls)]
    pub(crate) urls: Vec<u32>,
    /// Minutes for which the site is observed
    #[arg(long, value_delimiter = ',', default_values_t = [5, 30, 120],
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_440))]
    pub(crate) minutes: Vec<u32>,
    /// Number of runs of each combination
    #[arg(long, default_value_t = 5, value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000))]
    pub(crate) seeds: u32,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn urls(text: &str) -> Result<u32, String> {
    let urls = text
        .parse()
        .ok()
        .filter(|urls| *urls == 28 || (urls % 8 == 0 && (16..=100_000).contains(urls)));
    urls.ok_or_else(|| "write 28, or a multiple of 8 from 16 to 100000".to_owned())
}
