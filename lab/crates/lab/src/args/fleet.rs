//! The arguments of `lab fleet`.

use clap::builder::RangedU64ValueParser;

const EXAMPLES: &str = "\
Examples:
  bywash lab fleet
  bywash lab fleet --seeds 10 --seconds 300 --json

Several gateways stand in front of one application. Requests take 50 ms on average, or 1 s in two
rows. Visitors have a patience of 2 s on average, and three times as many requests arrive as the
application can answer. A quarter of them are valuable. The busiest gateway gets ten times the
requests of the least busy one.

In rows with a fault, one gateway after the other has it, for 5 s unless the row says otherwise. The
one that leaves every 4 s is always the busiest, and comes back after 2 s. One queue has no fault.

Columns:
  one queue           share of the valuable requests that are answered in time by a single gateway
  even split          the same, if each gateway has an equal share of the slots
  leases by arrivals  the same, with leases by the work that arrives
  leases by rank      the same, with leases by the work of each rank
  of one queue        leases by rank, relative to one queue
  all answered        all requests that leases by rank answer in time, relative to one queue
  slots               most slots that the gateways had at once, with leases by rank
  running             most requests in the application at once, with leases by rank
  messages            messages a second between gateways, with leases by rank";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FleetRun {
    /// Number of runs of each row
    #[arg(long, default_value_t = 3, value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000))]
    pub(crate) seeds: u32,
    /// Seconds of each run
    #[arg(long, default_value_t = 60, value_parser = RangedU64ValueParser::<u32>::new().range(10..=86_400))]
    pub(crate) seconds: u32,
    /// Number of gateways: play only this fleet, with own mixes, and not those of the table
    #[arg(long, requires = "slots", value_parser = RangedU64ValueParser::<u32>::new().range(1..=2_000))]
    pub(crate) gateways: Option<u32>,
    /// Number of slots of that fleet
    #[arg(long, requires = "gateways", value_parser = RangedU64ValueParser::<u32>::new().range(1..=100_000))]
    pub(crate) slots: Option<u32>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
