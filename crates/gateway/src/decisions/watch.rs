//! The thread that watches for elephants: it receives requests as they end, reads the use of
//! resources, and brings its findings to the rule store.
//!
//! The thread serves no request, and no request waits for it: if it is too slow, entries of the
//! request log are dropped and counted. If a resource cannot be read, that is logged once, and
//! again when it can be read. The other resources are still read. Without resources there is
//! nothing to find, but rules still end in time.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bywash_config::{ReadFrom, Resource};
use bywash_control::{
    self as control, Act, Client, Elephant, Entry, Gauge, RuleStore, Seen, Subject, Timestamp,
    Watch, Watched, What,
};
use bywash_engine::RuleId;
use bywash_engine::Tier;
use bywash_sense::series::{
    Clock, Disks, Exporter, Group, Network, Processes, Processors, Root, Sampler, Stalls, Step,
    Windows,
};
use bywash_terminal::stderr::say;
use bywash_terminal::text::escaped;
use bywash_units::{Time, TimeSpan};
use tokio::sync::{mpsc, watch};

use super::{elephants, overrides};
use crate::elephants::{ResourceReport, WatchReport};
use crate::process::lifecycle::Lifecycle;
use crate::process::secret::network;
use crate::process::wall_clock;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::state::stored::DecisionError;
use crate::telemetry::request_log;

/// The interval at which requests are taken from the request log.
const COLLECT_INTERVAL: Duration = Duration::from_millis(50);
/// The time over which the site's performance is measured before a rule begins, for a comparison
/// with the time under the rule.
pub(crate) const MINUTE: TimeSpan = TimeSpan::from_secs(60);
/// The interval at which resources are read.
const STEP: TimeSpan = TimeSpan::from_secs(1);
/// The maximum time between two readings of a resource that are compared. A longer time counts as
/// unobserved.
const LONGEST: TimeSpan = TimeSpan::from_millis(2500);
/// The time after the end of a window by which all sources have reported the use in that window.
const LATE: TimeSpan = TimeSpan::from_secs(3);
/// The interval at which findings are computed. A computation takes up to a fifth of a second if
/// there are very many routes.
const FIND_INTERVAL: TimeSpan = TimeSpan::from_secs(10);

/// Runs the watch while the gateway runs. It returns when the gateway drains, because then another
/// process may watch.
pub(crate) fn run(
    shared: &Arc<Shared>,
    mut settings: watch::Receiver<Arc<Settings>>,
    lifecycle: &watch::Receiver<Lifecycle>,
) {
    let current = Arc::clone(&settings.borrow_and_update());
    let mut watcher = Watcher::new(shared, current);
    while *lifecycle.borrow() < Lifecycle::Drains {
        std::thread::sleep(COLLECT_INTERVAL);
        if *lifecycle.borrow() != Lifecycle::Runs {
            continue;
        }
        if settings.has_changed().unwrap_or(false) {
            let current = Arc::clone(&settings.borrow_and_update());
            watcher.configured(shared, current);
        }
        watcher.take(shared);
        watcher.turn(shared);
    }
}

struct Watcher {
    settings: Arc<Settings>,
    /// The requests that have ended; `None` if there are no resources to compare them with.
    ended: Option<mpsc::Receiver<Arc<request_log::Entry>>>,
    sources: Sources,
    /// The time at which resources were last read.
    read: Time,
    /// The time at which findings were last computed; `None` if they never were.
    asked: Option<Time>,
}

impl Watcher {
    fn new(shared: &Shared, settings: Arc<Settings>) -> Self {
        let sources = Sources::new(shared, &settings.config.elephants.resources);
        shared.elephants.watch(watch_of(&settings, &sources.capacities));
        let counts = !settings.config.elephants.resources.is_empty();
        let ended = counts.then(|| shared.request_log.follow());
        Self { settings, ended, sources, read: Time::ZERO, asked: None }
    }

    /// Takes new settings. Observations are kept if the resources, the patterns that are always
    /// tracked and the half-life are unchanged. Otherwise the watch starts again without
    /// observations.
    fn configured(&mut self, shared: &Shared, settings: Arc<Settings>) {
        let (was, is) = (&self.settings.config.elephants, &settings.config.elephants);
        let same = (&was.resources, &was.always_track, was.half_life)
            == (&is.resources, &is.always_track, is.half_life);
        if same {
            self.settings = settings;
        } else {
            *self = Self::new(shared, settings);
        }
    }

    fn take(&mut self, shared: &Shared) {
        let Some(ended) = &mut self.ended else { return };
        let mut watch = shared.elephants.watched();
        while let Ok(entry) = ended.try_recv() {
            record(&mut watch, &entry, shared, &self.settings);
        }
    }

    fn turn(&mut self, shared: &Shared) {
        let now = shared.driver.now();
        // Read resources at the beginning of a window of the watch. A reading that spans the end of
        // a window would be attributed to both windows, and the costs of requests would come out
        // too low.
        let window = |at: Time| at.as_nanos() / STEP.as_nanos();
        if window(now) == window(self.read) {
            return;
        }
        self.read = now;
        self.sources.read(shared, now);
        shared.elephants.lanes.refresh();
        shared.elephants.watched().advance(now);
        end(shared, now);
        overrides::end(shared);
        if self.asked.is_none_or(|asked| now >= asked + FIND_INTERVAL) {
            self.asked = Some(now);
            self.ask(shared);
        }
    }

    fn ask(&self, shared: &Shared) {
        let config = &self.settings.config.elephants;
        let (slots, bytes) = capacities(shared);
        let asked: Vec<String> =
            shared.elephants.findings().store.get().asked().map(str::to_owned).collect();
        let (found, uses, watch_report) = {
            let watch = shared.elephants.watched();
            let found: Vec<Elephant> = if config.resources.is_empty() {
                Vec::new()
            } else {
                watch.elephants(slots, bytes)
            };
            let uses = asked.iter().filter_map(|name| watch.named(name, slots)).collect();
            (
                found,
                uses,
                self.sources.report(
                    &watch,
                    self.ended.is_some(),
                    slots,
                    shared.request_log.unfollowed(),
                ),
            )
        };
        shared.elephants.findings().set_watch_report(watch_report);
        let act = match config.act {
            bywash_config::Act::Propose => Act::Propose,
            bywash_config::Act::Auto => Act::Auto,
        };
        let now = shared.driver.now();
        let decided = elephants::decide(shared, |store| {
            store.uses(uses);
            let notes = store.found(wall_clock::now(), found, act);
            for note in notes.iter().filter(|note| note.what == What::Approved) {
                let Subject::Elephant { number, .. } = note.subject else { continue };
                let Ok(entry) = store.entry(number) else { continue };
                let before = before(&shared.elephants.watched(), entry, now, MINUTE);
                store.was_before(wall_clock::now(), number, before);
            }
            Ok(notes)
        });
        if let Err(why @ DecisionError::Refused(_)) = decided {
            say(format_args!("findings about elephants were not recorded: {why}"));
        }
    }
}

/// Returns the number of slots, and the capacity of this host's line in bytes per second; `None` if
/// the configuration does not state the capacity.
pub(crate) fn capacities(shared: &Shared) -> (f64, Option<f64>) {
    let settings = shared.settings();
    let is_line = |resource: &&Resource| consists_of(resource) == control::Resource::Bytes;
    let line = settings.config.elephants.resources.iter().find(is_line);
    let slots = f64::from(shared.driver.status().limit);
    (slots, line.and_then(|resource| resource.capacity))
}

/// Ends rules and trials whose time is over, and measures how the site performed during each trial.
fn end(shared: &Shared, now: Time) {
    let gauge = |entry: &Entry, from: Timestamp, to: Timestamp| {
        let lasted = to.duration_since(from).unsigned_abs();
        shared.elephants.watched().gauge(entry, now - TimeSpan::from(lasted), now)
    };
    let tick = |store: &mut RuleStore| store.tick(wall_clock::now(), gauge);
    elephants::end(shared, tick);
}

/// Measures how the site performed in the time `lasted` up to `now`, before there is a rule for
/// this entry's requests. Returns `None` if the watch cannot distinguish these requests from
/// others.
pub(crate) fn before(watch: &Watch, entry: &Entry, now: Time, lasted: TimeSpan) -> Option<Gauge> {
    watch.tells_apart(&entry.pattern).then(|| watch.gauge(entry, now - lasted, now))
}

fn client_of(shared: &Shared, address: IpAddr) -> Client {
    Client { key: shared.secret.address_key(address).0, network: network(address) }
}

fn record(watch: &mut Watch, entry: &request_log::Entry, shared: &Shared, settings: &Settings) {
    let Some(decided) = &entry.decided else { return };
    let Some((method, target)) = entry.whole_message() else { return };
    let worked = decided.runs_at.map(|from| (from, decided.ended));
    let answered = entry.status.is_some_and(|status| status.as_u16() < 500) && worked.is_some();
    watch.request(
        decided.ended,
        &Seen {
            method,
            target,
            client: client_of(shared, entry.client),
            worked,
            rule: decided.rule.map(|RuleId(number)| number),
            response: answered.then_some(decided.waited + decided.service),
            bytes: decided.received,
            // The class may be unknown here, because a reload has just added it.
            transacts: settings
                .config
                .classes
                .get(decided.class_id.index())
                .is_none_or(|class| class.class.tier == Tier::Transaction),
            is_good: answered && entry.status.is_some_and(|status| status.as_u16() < 400),
        },
    );
}

fn watch_of(settings: &Settings, capacities: &[f64]) -> Watch {
    let config = &settings.config.elephants;
    // All of these patterns parse, because the configuration was checked.
    let always_track =
        config.always_track.iter().filter_map(|pattern| pattern.parse().ok()).collect();
    let watched = |(resource, capacity): (&Resource, &f64)| Watched {
        name: resource.name.clone(),
        consists_of: consists_of(resource),
        capacity: *capacity,
        idle: resource.idle,
    };
    let read = config.resources.iter().filter(|resource| resource.is_read());
    let resources = read.zip(capacities).map(watched).collect();
    Watch::new(always_track, resources, config.half_life)
}

/// Returns whether a resource consists of processor time, of bytes, or of something else. It counts
/// as bytes only if a rule can bound it: this host must send the bytes, and the resource must have
/// a stated capacity.
fn consists_of(resource: &Resource) -> control::Resource {
    let is_line = resource.from.is_none() && resource.capacity.is_some();
    match resource.read.split('/').collect::<Vec<_>>().as_slice() {
        [.., "cpu"] => control::Resource::Processors,
        ["host", "net", _, "sent"] if is_line => control::Resource::Bytes,
        _ => control::Resource::Other,
    }
}

/// All sources of the use of resources.
struct Sources {
    sampler: Sampler,
    /// The resources that are read, in the order of the configuration file.
    read: Vec<Read>,
    /// The capacity of each resource in `read`, in units per second.
    capacities: Vec<f64>,
    /// The reasons why sources cannot be read at present, by the number of the source.
    troubles: BTreeMap<usize, String>,
}

struct Read {
    name: String,
    /// The number of the source in the sampler, or why it could not be opened.
    source: Result<usize, String>,
    windows: Option<Windows>,
}

impl Sources {
    fn new(shared: &Shared, resources: &[Resource]) -> Self {
        let mut sampler = Sampler::new(Clock::since(shared.driver.started()), LONGEST);
        let (mut read, mut capacities) = (Vec::new(), Vec::new());
        for resource in resources.iter().filter(|resource| resource.is_read()) {
            let source = add(&mut sampler, resource);
            if let Err(why) = &source {
                say(format_args!("resource {}: {why}", resource.name));
            }
            let windows =
                |source: &usize| Windows::new(STEP, vec![(*source, resource.read.clone())]);
            let windows = source.as_ref().ok().map(windows);
            read.push(Read { name: resource.name.clone(), source, windows });
            capacities.push(resource.capacity.unwrap_or_else(|| processors(&resource.read)));
        }
        Self { sampler, read, capacities, troubles: BTreeMap::new() }
    }

    fn read(&mut self, shared: &Shared, now: Time) {
        let Step { uses, changes, unread: _ } = self.sampler.step();
        for change in changes {
            let trouble = change.failed.map(|failed| failed.to_string());
            let words = trouble.as_deref().unwrap_or("it can be read again");
            say(format_args!("{}: {words}", escaped(&change.name)));
            match trouble {
                Some(trouble) => _ = self.troubles.insert(change.source, trouble),
                None => _ = self.troubles.remove(&change.source),
            }
        }
        let mut watch = shared.elephants.watched();
        for (number, read) in self.read.iter_mut().enumerate() {
            let Some(windows) = &mut read.windows else { continue };
            for one in &uses {
                windows.add(one);
            }
            while let Some(window) = windows.next_until(now - LATE) {
                let used = window.used.first().copied().unwrap_or(0.0);
                watch.used(number, window.from, window.to, used);
            }
        }
    }

    fn report(&self, watch: &Watch, is_counted: bool, slots: f64, missed: u64) -> WatchReport {
        let resource = |(read, (_, seen, used)): (&Read, (&Watched, TimeSpan, f64))| {
            let trouble = match &read.source {
                Ok(source) => self.troubles.get(source).cloned(),
                Err(why) => Some(why.clone()),
            };
            let used = (seen > TimeSpan::ZERO).then_some(used);
            ResourceReport { name: read.name.clone(), seen, used, trouble }
        };
        let mut resources: Vec<ResourceReport> =
            self.read.iter().zip(watch.resources()).map(resource).collect();
        if is_counted {
            let (seen, used) = watch.held(slots);
            let name = control::SLOTS.to_owned();
            resources.push(ResourceReport { name, seen, used: Some(used), trouble: None });
        }
        WatchReport { resources, missed }
    }
}

/// Adds the source that reports the use of a resource to the sampler, and returns its number.
/// Returns an error if the configured name has no source.
fn add(sampler: &mut Sampler, resource: &Resource) -> Result<usize, String> {
    let (read, name) = (resource.read.as_str(), resource.name.as_str());
    if let Some(ReadFrom::Exporter(url)) = &resource.from {
        let exporter = Exporter::new(url, STEP).map_err(|why| why.to_string())?;
        return Ok(sampler.add(name, exporter));
    }
    let none = || format!("there is nothing with the name {}", escaped(read));
    let parts: Vec<&str> = read.split('/').collect();
    Ok(match parts.as_slice() {
        ["host", "cpu"] => sampler.add(name, Processors::new(Root::host())),
        ["host", "disk", ..] => sampler.add(name, Disks::new(Root::host())),
        ["host", "net", "lo", ..] => sampler.add(name, Network::new(Root::host()).with_loopback()),
        ["host", "net", ..] => sampler.add(name, Network::new(Root::host())),
        ["host", "pressure", ..] => sampler.add(name, Stalls::host(Root::host())),
        ["process", process, "cpu"] => {
            let processes = match &resource.from {
                Some(ReadFrom::ProcessFile(file)) => Processes::led(Root::host(), process, file),
                _ => Processes::named(Root::host(), process),
            };
            sampler.add(name, processes.ok_or_else(none)?)
        }
        ["cgroup", path @ .., _] => {
            sampler.add(name, Group::new(Root::host(), &path.join("/")).ok_or_else(none)?)
        }
        _ => return Err(none()),
    })
}

/// Returns the default capacity of a resource in units per second. For processor time it is the
/// number of this host's processors, otherwise one.
fn processors(read: &str) -> f64 {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    if read.ends_with("/cpu") { cores() as f64 } else { 1.0 }
}
