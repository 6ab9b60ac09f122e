//! The arguments of `lab replay`.

use std::path::PathBuf;

use bywash_units::TimeSpan;
use clap::builder::RangedU64ValueParser;

const EXAMPLES: &str = "\
Examples:
  bywash lab replay access.log --config bywash.toml
  zcat access.log.*.gz | bywash lab replay - --config bywash.toml --workers 16 --speed 2
  bywash lab replay lab/logs/evening.log --config lab/logs/bywash.toml --report out/evening.html

Formats, which are recognised by the first lines:
  the log of bywash, and the output of `bywash tap --json`
  common and combined of nginx and Apache httpd, if possible with the times of nginx appended:
    rt=$request_time urt=$upstream_response_time
  JSON of nginx, with the names of its variables as keys
  httplog of HAProxy
  the access logs of Caddy and Envoy
  W3C extended, as IIS writes it

A file may be compressed with gzip. The output lists the assumptions about facts that the log does
not have.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Replay {
    /// The access log; `-` reads standard input
    pub(crate) log: PathBuf,
    /// The configuration file, for its classes
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// The policies to play, bywash's own or those of the peers
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    #[arg(default_value = "session-first,value-index,lifo-pri,single-queue")]
    pub(crate) policy: Vec<String>,
    /// Requests that the application works on at once [default: the configuration's fixed limit]
    #[arg(long, value_parser = RangedU64ValueParser::<u32>::new().range(1..=100_000))]
    pub(crate) workers: Option<u32>,
    /// Let the same visitors arrive this many times as fast
    #[arg(long, default_value_t = 1.0, value_parser = speed, allow_negative_numbers = true)]
    pub(crate) speed: f64,
    /// Do not tell the policies when a client leaves, as behind a proxy that hides disconnects
    #[arg(long)]
    pub(crate) hidden: bool,
    /// Maximum number of lines to read; a million take some 250 MB of memory
    #[arg(long, value_name = "LINES", default_value_t = 5_000_000)]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1..=1_000_000_000))]
    pub(crate) limit: u64,
    /// Service time of a class where the log has none; without a class, that of all classes
    #[arg(long, value_name = "[CLASS=]TIME")]
    pub(crate) service: Vec<ServiceOf>,
    /// Mean patience of visitors, exponentially distributed, in classes that set no `patience`
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = some_time)]
    pub(crate) patience: TimeSpan,
    /// How often visitors retry a request that was refused or that they gave up, each time after
    /// five seconds
    #[arg(long, default_value_t = 0, value_parser = RangedU64ValueParser::<u32>::new().range(0..=100))]
    pub(crate) retries: u32,
    /// Classes whose success is an order [default: those with `revenue`]
    #[arg(long, value_delimiter = ',', value_name = "CLASS,…")]
    pub(crate) order: Vec<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML report here
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// A service time for a class, or for all classes if none is named.
#[derive(Clone, Debug)]
pub(crate) struct ServiceOf {
    pub(crate) class: Option<String>,
    pub(crate) time: TimeSpan,
}

impl std::str::FromStr for ServiceOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((class, time)) => {
                Ok(Self { class: Some(class.to_owned()), time: some_time(time)? })
            }
            None => Ok(Self { class: None, time: some_time(text)? }),
        }
    }
}

/// Parses a time that is above 0 and at most a day.
fn some_time(text: &str) -> Result<TimeSpan, String> {
    let time: TimeSpan = text.parse().map_err(|error| format!("{error}"))?;
    let sensible = time > TimeSpan::ZERO && time <= TimeSpan::from_secs(86_400);
    if sensible {
        Ok(time)
    } else {
        Err("write a time above 0 and up to a day, as in 250ms".to_owned())
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed| (0.01..=1000.0).contains(speed));
    speed.ok_or_else(|| "write a number from 0.01 to 1000".to_owned())
}
