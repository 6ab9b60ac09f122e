//! What `sar` has written down, as `sadf -j FILE -- -u -d -n DEV` prints it: processors, disks and
//! interfaces of a host, from records that `sysstat` has made once in ten minutes, or however often it
//! was told to. The seed had its series from it [seed 5.1].
//!
//! A record holds means over its interval and says when that ended. Moments are since 1970, by the clock
//! of the host at that time, which may have been set either way: a record that does not lie behind the
//! one before it is left out. After a restart `sadf` leaves out the first record itself. The file is read
//! as it comes; no more is held than a record.
//!
//! Without `-t` and `-T` moments are UTC. With them they are of some zone, and the file does not say of which:
//! its `timezone` is that of whoever made it, also when `-T` has printed that of whoever looks at it. So the
//! operator has to.

use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use bywash_units::{Span, Time};
use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use thiserror::Error;

use super::disks::is_whole_by_name;
use super::resource::{Resource, Unit, Use, may_be_part};
use super::source::MOST;
use crate::access_log::utc;

/// How a file is read.
#[derive(Clone, Debug)]
pub struct Sadf {
    /// Of which tier the host is.
    pub tier: String,
    /// The number by which its uses are known.
    pub source: usize,
    /// Records over a longer time are a gap.
    pub longest: Span,
    /// Seconds by which its moments are ahead of UTC, for a file that was printed with `-t` or `-T`.
    pub ahead: Option<i64>,
}

/// What a file has told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Records whose uses were told.
    pub records: u64,
    /// Records that were a gap, or not behind those before them.
    pub left_out: u64,
    /// How often the host was started meanwhile.
    pub restarts: u64,
}

/// Why a file cannot be read.
#[derive(Debug, Error)]
pub enum NoSadf {
    /// It is not what `sadf -j` prints; as the parser says it, without what a terminal would obey.
    #[error("it is not what `sadf -j` prints: {0}")]
    Form(String),
    /// Its moments are local.
    #[error(
        "its moments are of a zone that it does not name: print it without -t and -T, or say the zone"
    )]
    Local,
    /// Its percents would be of another number.
    #[error(
        "the host was started with another number of processors: print both parts by themselves (-s, -e)"
    )]
    Processors,
}

impl Sadf {
    /// Tells each use, in the order of the file.
    ///
    /// # Errors
    /// When it is something else. Uses that were told before may be wrong then.
    pub fn read(&self, file: impl Read, mut each: impl FnMut(Use)) -> Result<Told, NoSadf> {
        let left = Rc::new(Cell::new(RECORD));
        let bounded = BufReader::new(Bounded { file, left: Rc::clone(&left) });
        let mut host = Host {
            settings: self,
            each: &mut each,
            left,
            processors: 0,
            last: Time::ZERO,
            told: Told::default(),
            is_local: false,
            has_changed: false,
        };
        let mut json = serde_json::Deserializer::from_reader(bounded);
        let read = Within { key: "sysstat", then: Within { key: "hosts", then: Hosts(&mut host) } };
        let read = read.deserialize(&mut json).and_then(|()| json.end());
        let Host { told, is_local, has_changed, .. } = host;
        match read {
            Err(_) if is_local => Err(NoSadf::Local),
            Err(error) => Err(NoSadf::Form(cut(&error))),
            Ok(()) if has_changed => Err(NoSadf::Processors),
            Ok(()) => Ok(told),
        }
    }
}

/// What a parser says may quote the file.
fn cut(error: &serde_json::Error) -> String {
    const SHOWN: usize = 200;
    let shown: String = error.to_string().chars().take(SHOWN).collect();
    shown.escape_debug().to_string()
}

/// Bytes from one record to the next. With every processor and a thousand disks it has 300 KiB.
const RECORD: u64 = 4 << 20;

/// A file of which no more is read than may be held.
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

/// The host whose file it is, as far as it is read.
struct Host<'a> {
    settings: &'a Sadf,
    each: &'a mut dyn FnMut(Use),
    left: Rc<Cell<u64>>,
    processors: u32,
    /// The end of the last record.
    last: Time,
    told: Told,
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

/// In percent.
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

/// In KiB a second.
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
        let ahead_by = Span::from_secs(ahead.unsigned_abs());
        let to = if ahead < 0 { to + ahead_by } else { to - ahead_by };
        match self.interval(to, Span::from_secs(*interval)) {
            Some(from) => {
                self.told.records += 1;
                self.tell(record, from, to);
            }
            None => self.told.left_out += 1,
        }
        self.last = to;
        Ok(())
    }

    /// When a record began that has ended then.
    fn interval(&self, to: Time, interval: Span) -> Option<Time> {
        // Moments are whole seconds, and so are intervals: either may be one too many.
        const ROUNDED: Span = Span::from_secs(1);
        let from = to - interval;
        let overlaps = self.last.since(from);
        let is_one = (Span::from_nanos(1)..=self.settings.longest).contains(&interval);
        (is_one && to > self.last && overlaps <= ROUNDED).then(|| from.max(self.last))
    }

    fn tell(&mut self, record: &Record, from: Time, to: Time) {
        let whole = f64::from(self.processors);
        for load in record.processors.iter().filter(|load| load.cpu == "all" && whole > 0.0) {
            let busy = (100.0 - load.idle - load.iowait - load.steal) / 100.0;
            // Percents have two digits.
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
            for (way, kib) in [("received", one.received), ("sent", one.sent)] {
                let name = format!("host/net/{}/{way}", one.name);
                self.one(name, Unit::Bytes, None, kib * 1024.0, (from, to));
            }
        }
    }

    /// So much in a second of it, if that can be.
    fn one(
        &mut self,
        name: String,
        unit: Unit,
        capacity: Option<f64>,
        rate: f64,
        within: (Time, Time),
    ) {
        let (from, to) = within;
        // A disk may be said to be busier than it can be.
        let most = capacity.map_or(unit.most(), |capacity| capacity * 1.1);
        if !(0.0..=most).contains(&rate) {
            return;
        }
        let used = rate.min(capacity.unwrap_or(most)) * to.since(from).as_secs_f64();
        let resource = Resource { tier: self.settings.tier.clone(), name, unit, capacity };
        (self.each)(Use { resource, source: self.settings.source, from, to, used });
    }

    fn restarts(&mut self, restarts: &[Restart]) {
        self.told.restarts += restarts.len() as u64;
        let others =
            |restart: &Restart| restart.boot.cpu_count.is_some_and(|n| n != self.processors);
        self.has_changed |= restarts.iter().any(others);
    }
}

/// What stands under a key of an object, whatever else does.
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

/// The list of hosts, which has one.
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
