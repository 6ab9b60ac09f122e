//! Reads the output of `sadf -j`: the use of a host's resources in the time that a log covers.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use bywash_advise::{Load, Used, Watched};
use bywash_command::Failure;
use bywash_sense::series::{NoSadf, RecordCounts, Sadf, Use};
use bywash_units::{Time, TimeSpan};
use serde_json::{Value, json};

/// The maximum number of resources. Each needs some megabytes of memory.
const MOST: usize = 16;
/// The maximum number of records in memory. It is enough for sixteen resources over a year, with
/// one record per five minutes.
const MOST_USES: usize = 2_000_000;
/// The maximum interval that a record may cover. A longer interval is a gap in the records, and the
/// record is not used.
const LONGEST: TimeSpan = TimeSpan::from_secs(3600);

/// The metrics in one file.
#[derive(Debug)]
pub(super) struct Metrics {
    watched: Vec<Watched>,
    uses: Vec<Used>,
    counts: RecordCounts,
    /// The number of seconds by which the metrics' clock is ahead of UTC, as `--metrics-offset`
    /// says.
    offset: Option<i64>,
    /// Whether the times in the file are in UTC.
    is_utc: bool,
    /// The number of resources that were left out because there were more than the maximum.
    left_out: usize,
    is_cut: bool,
    from: Time,
    to: Time,
}

/// The records of one resource. First the records of all resources are collected. Then at most
/// [`MOST`] resources are kept.
#[derive(Debug, Default)]
struct Gathered {
    capacity: Option<f64>,
    /// The highest use in a record, in units of the resource per second.
    most: f64,
    share: f64,
    uses: Vec<(Time, Time, f64)>,
}

/// Reads a file that `sadf -j` has printed. `offset` is the number of seconds by which the metrics'
/// clock is ahead of UTC.
///
/// # Errors
/// If the file has another format, or a time zone that is not known.
pub(super) fn read(path: &Path, offset: Option<i64>) -> Result<Metrics, Failure> {
    let name = path.display();
    let wrong =
        |why: &dyn std::fmt::Display| Failure::configuration(format!("bywash: {name}: {why}"));
    let (mut gathered, mut is_utc) = (Gathering::default(), true);
    let counts = match gathered.read(path, None) {
        Err(NoSadf::Local) => {
            let Some(offset) = offset else {
                let why = "its times are in a zone that it does not name: print it without -t and \
                           -T, or give the zone with --metrics-offset, as +02:00";
                return Err(wrong(&why));
            };
            is_utc = false;
            gathered = Gathering::default();
            gathered.read(path, Some(offset))
        }
        counts => counts,
    };
    let counts = counts.map_err(|error| wrong(&error))?;
    if gathered.all.is_empty() {
        return Err(wrong(
            &"it has no record of a processor, a disk or an interface: print it with -u -d -n DEV",
        ));
    }
    let shift = offset.filter(|_| is_utc).unwrap_or(0);
    Ok(gathered.metrics(counts, offset, is_utc, shift))
}

#[derive(Debug, Default)]
struct Gathering {
    all: BTreeMap<String, Gathered>,
    uses: usize,
    is_cut: bool,
}

impl Gathering {
    fn read(&mut self, path: &Path, ahead: Option<i64>) -> Result<RecordCounts, NoSadf> {
        let file = File::open(path).map_err(|error| NoSadf::Form(error.to_string()))?;
        let sadf = Sadf { tier: String::new(), source: 0, longest: LONGEST, ahead };
        sadf.read(file, |one| self.one(one))
    }

    fn one(&mut self, one: Use) {
        if self.uses >= MOST_USES {
            self.is_cut = true;
            return;
        }
        self.uses += 1;
        let seconds = one.to.since(one.from).as_secs_f64();
        let of = self.all.entry(one.resource.name).or_default();
        of.capacity = one.resource.capacity.or(of.capacity);
        of.most = of.most.max(one.used / seconds);
        of.share += one.used;
        of.uses.push((one.from, one.to, one.used));
    }

    fn metrics(
        self,
        counts: RecordCounts,
        offset: Option<i64>,
        is_utc: bool,
        shift: i64,
    ) -> Metrics {
        let by = TimeSpan::from_secs(shift.unsigned_abs());
        let moved = |time: Time| if shift < 0 { time + by } else { time - by };
        let mut all: Vec<(String, Gathered)> =
            self.all.into_iter().filter(|(_, of)| of.most > 0.0).collect();
        // Processors come first, then disks, then networks; within each kind, those with most use
        // come first.
        let kind = |name: &str| {
            ["host/cpu", "host/disk", "host/net"].iter().position(|kind| name.starts_with(kind))
        };
        all.sort_by(|(a, of_a), (b, of_b)| {
            kind(a).cmp(&kind(b)).then(of_b.share.total_cmp(&of_a.share)).then_with(|| a.cmp(b))
        });
        let left_out = all.len().saturating_sub(MOST);
        let (mut watched, mut uses) = (Vec::new(), Vec::new());
        for (resource, (name, of)) in all.into_iter().take(MOST).enumerate() {
            // The capacity of a network interface is not recorded. So its highest use counts as its
            // capacity.
            watched.push(Watched { name, capacity: of.capacity.unwrap_or(of.most) });
            uses.extend(of.uses.into_iter().map(|(from, to, used)| Used {
                resource,
                from: moved(from),
                to: moved(to),
                used,
            }));
        }
        let from = uses.iter().map(|one| one.from).min().unwrap_or(Time::ZERO);
        let to = uses.iter().map(|one| one.to).max().unwrap_or(Time::ZERO);
        Metrics { watched, uses, counts, offset, is_utc, left_out, is_cut: self.is_cut, from, to }
    }
}

impl Metrics {
    /// Moves the records into a [`Load`], for a summary. Call this once.
    pub(super) fn load(&mut self) -> Load {
        Load::new(std::mem::take(&mut self.watched), std::mem::take(&mut self.uses))
    }

    fn zone(&self) -> String {
        let offset = self.offset.unwrap_or(0);
        let (sign, of) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
        let ahead = format!("{sign}{:02}:{:02}:{:02}", of / 3600, of / 60 % 60, of % 60);
        match (self.is_utc, self.offset) {
            (true, None) => "UTC, as the file says".into(),
            (true, Some(_)) => format!(
                "UTC, as the file says, with a clock that is {ahead} ahead, as --metrics-offset \
                 says"
            ),
            (false, _) => {
                format!("local time that is {ahead} ahead of UTC, as --metrics-offset says")
            }
        }
    }

    /// Returns notes on the metrics for a log that lasts from `from` to `to`, in seconds since
    /// 1970.
    pub(super) fn notes(&self, from: u64, to: u64) -> Vec<String> {
        let mut notes = vec![format!(
            "Metrics: {} records, with times in {}.",
            self.counts.records,
            self.zone()
        )];
        if self.counts.left_out > 0 || self.counts.restarts > 0 {
            notes.push(format!(
                "{} records of the metrics were left out as gaps. The host started {} times.",
                self.counts.left_out, self.counts.restarts
            ));
        }
        let second = 1_000_000_000;
        let (first, last) = (self.from.as_nanos() / second, self.to.as_nanos() / second);
        if first > to || last < from {
            notes.push(format!(
                "The metrics ({first} to {last}, seconds since 1970) are of another time than the \
                 log ({from} to {to}), so nothing was found. If a clock or a zone is wrong, \
                 correct it with --metrics-offset."
            ));
        } else if first > from + 60 || last + 60 < to {
            notes.push(
                "The metrics cover only a part of the log's time. Costs are for that part.".into(),
            );
        }
        if self.left_out > 0 {
            notes.push(format!("{} more resources were left out.", self.left_out));
        }
        if self.is_cut {
            notes.push(
                "The metrics have more records than fit into memory. The rest was left out.".into(),
            );
        }
        notes
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "records": self.counts.records,
            "left_out": self.counts.left_out,
            "restarts": self.counts.restarts,
            "zone": self.zone(),
        })
    }
}
