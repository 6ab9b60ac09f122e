//! The arguments of `advise`.

use std::path::PathBuf;

use bywash_engine::classify::Pattern;
use bywash_sense::access_log::Format;
use clap::builder::RangedU64ValueParser;

use super::cores;

const EXAMPLES: &str = "\
Examples:
  bywash advise /var/log/nginx/access.log* --out bywash.toml
  bywash advise access.log --workers 16 --cores local --out bywash.toml
  bywash advise access.log --order 'POST /checkout/done' --json | jq .classes
  sadf -j -- -u -d -n DEV > sadf.json && bywash advise access.log --metrics sadf.json
  bywash advise access.log --format '%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %D %X'

The command reads logs in the order of their times, and merges logs that overlap. A log may be
compressed with gzip. The use of memory is bounded, however long the logs are. The formats are those
of `bywash lab replay`, detected from the first lines of each file. The proposal is a guess from the
words of URLs and from what visitors did: read it before you use it.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Advise {
    /// Access logs; `-` reads standard input
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    /// Log format: usual, nginx, haproxy, caddy, envoy, w3c, or Apache httpd's own `LogFormat`
    /// [default: detected from the first lines]
    #[arg(long)]
    pub(crate) format: Option<Format>,
    /// Output of `sadf -j FILE -- -u -d -n DEV` of the same time, to find which requests used the
    /// resources
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics: Option<PathBuf>,
    /// How far the clock of the metrics is ahead of UTC, as +02:00 or -00:00:07
    #[arg(long, value_name = "OFFSET", requires = "metrics", value_parser = offset)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) metrics_offset: Option<i64>,
    /// Requests whose success is an order, as 'POST /checkout/done' [default: guessed]
    #[arg(long, value_name = "PATTERN")]
    pub(crate) order: Option<Pattern>,
    /// Worker processes or threads of the application: the upper bound of the limit, and the number
    /// in the forecast [default: the proposed limit]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u32>::new().range(1..=100_000))]
    pub(crate) workers: Option<u32>,
    /// Cores of the machine that runs the application; `local`: those of this machine [default:
    /// those of this machine if --upstream names it]
    #[arg(long, value_name = "N", value_parser = cores::read)]
    pub(crate) cores: Option<u32>,
    /// The application's URL, for the configuration [default: port 3000 of this machine]
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// Write the configuration here; without this nothing is written
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Print all findings as JSON, the configuration as `toml`
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses `+HH:MM` or `-HH:MM:SS`, at most a day. Returns the offset in seconds.
fn offset(text: &str) -> Result<i64, String> {
    let wrong = || {
        "write how far the clock is ahead of UTC, as +02:00 or -00:00:07, up to a day".to_owned()
    };
    let (sign, rest) = match text.split_at_checked(1) {
        Some(("+", rest)) => (1, rest),
        Some(("-", rest)) => (-1, rest),
        _ => return Err(wrong()),
    };
    let two = |part: &str| {
        let is_two = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        is_two.then(|| part.parse::<i64>().ok()).flatten()
    };
    let parts: Option<Vec<i64>> = rest.split(':').map(two).collect();
    match parts.as_deref() {
        Some([hours @ 0..=23, minutes @ 0..=59]) => Ok(sign * (hours * 3600 + minutes * 60)),
        Some([hours @ 0..=23, minutes @ 0..=59, seconds @ 0..=59]) => {
            Ok(sign * (hours * 3600 + minutes * 60 + seconds))
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_hours_minutes_and_perhaps_seconds() {
        assert_eq!(offset("+02:00"), Ok(7200));
        assert_eq!(offset("-00:00:07"), Ok(-7));
        for wrong in ["", "2", "02:00", "+2:00", "+24:00", "+00:60", "+1", "+é0:00", "+00:00:00:00"]
        {
            assert!(offset(wrong).is_err(), "{wrong}");
        }
    }
}
