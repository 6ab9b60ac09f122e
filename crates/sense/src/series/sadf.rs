//! Reads recordings of `sar`, as `sadf -j FILE -- -u -d -n DEV` prints them: processors, disks and
//! interfaces of a host, from records that `sysstat` makes every ten minutes or at the configured
//! interval. Paper 5 took its series from such recordings [paper 5.1].
//!
//! A record contains the means over its interval, and the time of its end by the clock of the host.
//! That clock may have been set in either direction. A record that is not later than the preceding
//! one is left out. After a restart, `sadf` itself leaves out the first record. The file is parsed
//! as it is read, and only one record is kept in memory.
//!
//! Without `-t` and `-T`, the times are in UTC. With them, the times are in a zone that the file
//! does not name. Its field `timezone` is that of the recording host, even if `-T` has printed
//! times in the zone of the reader. So the operator has to state the zone.

use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use bywash_terminal::text::excerpt;
use bywash_units::{Time, TimeSpan};
use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use thiserror::Error;

use super::disks::is_whole_by_name;
use super::resource::{Resource, Unit, Use, may_be_part};
use super::source::MOST;
use crate::access_log::utc;

/// A reader of the output of `sadf -j`, with its settings.
#[derive(Clone, Debug)]
pub struct Sadf {
    /// The tier of the recorded host.
    pub tier: String,
    /// The number of the source, which is stored in each [`Use`].
    pub source: usize,
    /// The longest interval of a record that is used. A record with a longer one is left out as a
    /// gap.
    pub longest: TimeSpan,
    /// The seconds by which the times are ahead of UTC, for a file that was printed with `-t` or
    /// `-T`. `None` if the file was printed without them.
    pub ahead: Option<i64>,
}

/// The numbers of records of a file that were used and left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// The number of records whose uses were reported.
    pub records: u64,
    /// The number of records that were left out: their interval was too long, or they were not
    /// later than the preceding record.
    pub left_out: u64,
    /// The number of restarts of the host in the file.
    pub restarts: u64,
}

/// The reason why a file cannot be read.
#[derive(Debug, Error)]
pub enum NoSadf {
    /// The file is not output of `sadf -j`. Holds the message of the parser, shortened and
    /// escaped.
    #[error("the file is not what `sadf -j` prints: {0}")]
    Form(String),
    /// The times are local, and [`Sadf::ahead`] is not set.
    #[error(
        "the times are in a zone that the file does not name: print it without -t and -T, or give \
         the zone"
    )]
    Local,
    /// The number of processors changed, so the percentages would refer to another number than
    /// before.
    #[error(
        "the number of processors of the host changed at a restart: print the parts before and \
         after it separately (-s, -e)"
    )]
    Processors,
}

impl Sadf {
    /// Reads `file` and passes each use to `each`, in the order of the file. Returns the counts of
    /// records.
    ///
    /// # Errors
    /// Returns an error if the file is not valid. Uses that were already passed to `each` may then
    /// be wrong.
    pub fn read(&self, file: impl Read, mut each: impl FnMut(Use)) -> Result<RecordCounts, NoSadf> {
        let left = Rc::new(Cell::new(RECORD));
        let bounded = BufReader::new(Bounded { file, left: Rc::clone(&left) });
        let mut host = Host {
            settings: self,
            each: &mut each,
            left,
            processors: 0,
            last: Time::ZERO,
            counts: RecordCounts::default(),
            is_local: false,
            has_changed: false,
        };
        let mut json = serde_json::Deserializer::from_reader(bounded);
        let read = Within { key: "sysstat", then: Within { key: "hosts", then: Hosts(&mut host) } };
        let read = read.deserialize(&mut json).and_then(|()| json.end());
        let Host { counts, is_local, has_changed, .. } = host;
        match read {
            Err(_) if is_local => Err(NoSadf::Local),
            Err(error) => Err(NoSadf::Form(cut(&error))),
            Ok(()) if has_changed => Err(NoSadf::Processors),
            Ok(()) => Ok(counts),
        }
    }
}

/// Returns the message of the JSON parser, shortened and escaped, because it may quote the file.
fn cut(error: &serde_json::Error) -> String {
    excerpt(&error.to_string(), 200)
}

/// The maximum number of bytes from one record to the next. A record has 300 KiB with many
/// processors and a thousand disks.
const RECORD: u64 = 4 << 20;

/// A reader that fails after `left` bytes. `left` is set again at the start of each record.
struct Bounded<R> {
    file: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(self.left.get() as usize);
        if most == 0 && !into.is_empty() {
            return Err(io::Error::other("a record has more than 4 MiB"));
        }
        let read = self.file.read(&mut into[..most])?;
        self.left.set(self.left.get() - read as u64);
        Ok(read)
    }
}

/// The state while the host in a file is read. A file has exactly one host.
struct Host<'a> {
    settings: &'a Sadf,
    each: &'a mut dyn FnMut(Use),
    left: Rc<Cell<u64>>,
    processors: u32,
    /// The time at which the last record ended.
    last: Time,
    counts: RecordCounts,
    is_local: bool,
    has_changed: bool,
}

#[derive(Deserialize)]
struct Record {
    timestamp: Stamp,
    #[serde(rename = "cpu-load", alias = "cpu-load-all", default)]
    processors: Vec<Load>,
    #[serde(rename = "disk", default)]
    disks: Vec<Disk>,
    #[serde(default)]
    network: Network,
}

#[derive(Deserialize)]
struct Stamp {
    date: String,
    time: String,
    #[serde(default)]
    utc: u8,
    #[serde(default)]
    interval: u64,
}

/// The use of a processor in percent of the record's interval.
#[derive(Deserialize)]
struct Load {
    cpu: String,
    idle: f64,
    #[serde(default)]
    iowait: f64,
    #[serde(default)]
    steal: f64,
}

#[derive(Deserialize)]
struct Disk {
    #[serde(rename = "disk-device")]
    name: String,
    #[serde(rename = "util-percent", alias = "util")]
    busy: f64,
}

#[derive(Default, Deserialize)]
struct Network {
    #[serde(rename = "net-dev", default)]
    interfaces: Vec<Interface>,
}

/// The traffic of an interface, as means over the interval in KiB per second.
#[derive(Deserialize)]
struct Interface {
    #[serde(rename = "iface")]
    name: String,
    #[serde(rename = "rxkB")]
    received: f64,
    #[serde(rename = "txkB")]
    sent: f64,
}

#[derive(Deserialize)]
struct Restart {
    boot: Boot,
}

#[derive(Deserialize)]
struct Boot {
    cpu_count: Option<u32>,
}

impl Host<'_> {
    fn record(&mut self, record: &Record) -> Result<(), String> {
        self.left.set(RECORD);
        let Stamp { date, time, utc: is_utc, interval } = &record.timestamp;
        let (to, _) = utc(date, time).map_err(|flaw| flaw.to_string())?;
        let ahead = if *is_utc == 1 { Some(0) } else { self.settings.ahead };
        let Some(ahead) = ahead else {
            self.is_local = true;
            return Err("local time".to_owned());
        };
        let to = Time::ZERO + to;
        let ahead_by = TimeSpan::from_secs(ahead.unsigned_abs());
        let to = if ahead < 0 { to + ahead_by } else { to - ahead_by };
        match self.interval(to, TimeSpan::from_secs(*interval)) {
            Some(from) => {
                self.counts.records += 1;
                self.tell(record, from, to);
            }
            None => self.counts.left_out += 1,
        }
        self.last = to;
        Ok(())
    }

    /// Returns the start of the record that ended at `to`. Returns `None` if the record must be
    /// left out.
    fn interval(&self, to: Time, interval: TimeSpan) -> Option<Time> {
        // Times and intervals are whole seconds, so an interval may be one second too long.
        const ROUNDED: TimeSpan = TimeSpan::from_secs(1);
        let from = to - interval;
        let overlaps = self.last.since(from);
        let is_one = (TimeSpan::from_nanos(1)..=self.settings.longest).contains(&interval);
        (is_one && to > self.last && overlaps <= ROUNDED).then(|| from.max(self.last))
    }

    fn tell(&mut self, record: &Record, from: Time, to: Time) {
        let whole = f64::from(self.processors);
        for load in record.processors.iter().filter(|load| load.cpu == "all" && whole > 0.0) {
            let busy = (100.0 - load.idle - load.iowait - load.steal) / 100.0;
            // Percentages are rounded to two digits, so the busy share may be slightly below 0.
            let busy = if (-1e-3..0.0).contains(&busy) { 0.0 } else { busy };
            self.one("host/cpu".to_owned(), Unit::Seconds, Some(whole), busy * whole, (from, to));
        }
        let disks = record.disks.iter().filter(|disk| is_whole_by_name(&disk.name));
        for disk in disks.take(MOST) {
            let name = format!("host/disk/{}", disk.name);
            self.one(name, Unit::Seconds, Some(1.0), disk.busy / 100.0, (from, to));
        }
        let interfaces = record.network.interfaces.iter();
        let elsewhere = |one: &&Interface| one.name != "lo" && may_be_part(&one.name);
        for one in interfaces.filter(elsewhere).take(MOST) {
            for (direction, kib) in [("received", one.received), ("sent", one.sent)] {
                let name = format!("host/net/{}/{direction}", one.name);
                self.one(name, Unit::Bytes, None, kib * 1024.0, (from, to));
            }
        }
    }

    /// Reports the use of a resource at the mean rate `rate` in units per second. Reports nothing
    /// if the rate is impossible.
    fn one(
        &mut self,
        name: String,
        unit: Unit,
        capacity: Option<f64>,
        rate: f64,
        within: (Time, Time),
    ) {
        let (from, to) = within;
        // The reported use of a disk may slightly exceed its capacity.
        let most = capacity.map_or(unit.most(), |capacity| capacity * 1.1);
        if !(0.0..=most).contains(&rate) {
            return;
        }
        let used = rate.min(capacity.unwrap_or(most)) * to.since(from).as_secs_f64();
        let resource = Resource { tier: self.settings.tier.clone(), name, unit, capacity };
        (self.each)(Use { resource, source: self.settings.source, from, to, used });
    }

    fn restarts(&mut self, restarts: &[Restart]) {
        self.counts.restarts += restarts.len() as u64;
        let others =
            |restart: &Restart| restart.boot.cpu_count.is_some_and(|n| n != self.processors);
        self.has_changed |= restarts.iter().any(others);
    }
}

/// A deserializer of a JSON object, which passes the value of the key `key` to `then` and skips all
/// other keys.
struct Within<S> {
    key: &'static str,
    then: S,
}

impl<'de, S: DeserializeSeed<'de, Value = ()>> DeserializeSeed<'de> for Within<S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de, S: DeserializeSeed<'de, Value = ()>> Visitor<'de> for Within<S> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an object with `{}`", self.key)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut then = Some(self.then);
        while let Some(key) = map.next_key::<String>()? {
            match then.take_if(|_| key == self.key) {
                Some(then) => map.next_value_seed(then)?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if then.is_some() { Err(A::Error::missing_field(self.key)) } else { Ok(()) }
    }
}

/// A deserializer of the list of hosts. The list must have exactly one host.
struct Hosts<'a, 'b>(&'a mut Host<'b>);

impl<'de> DeserializeSeed<'de> for Hosts<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Hosts<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of one host")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut hosts: A) -> Result<(), A::Error> {
        let host = hosts.next_element_seed(OneHost(&mut *self.0))?;
        host.ok_or_else(|| A::Error::invalid_length(0, &"one host"))?;
        match hosts.next_element::<IgnoredAny>()? {
            Some(IgnoredAny) => Err(A::Error::invalid_length(2, &"one host")),
            None => Ok(()),
        }
    }
}

struct OneHost<'a, 'b>(&'a mut Host<'b>);

impl<'de> DeserializeSeed<'de> for OneHost<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OneHost<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a host with its statistics")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let host = self.0;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "number-of-cpus" => host.processors = map.next_value()?,
                "statistics" => map.next_value_seed(Records(&mut *host))?,
                "restarts" => host.restarts(&map.next_value::<Vec<Restart>>()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Records<'a, 'b>(&'a mut Host<'b>);

impl<'de> DeserializeSeed<'de> for Records<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Records<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut records: A) -> Result<(), A::Error> {
        while let Some(record) = records.next_element::<Record>()? {
            self.0.record(&record).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}
