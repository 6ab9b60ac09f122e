//! The TOML form of a scenario, and its conversion into a checked [`Scenario`].
//!
//! The structs have a field for each key of a scenario file. Unknown keys are errors. The functions
//! convert the structs: class names become indices, texts become durations, and invalid values are
//! errors.

mod class;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use bywash_units::TimeSpan;
use serde::Deserialize;

use crate::adversary::{self, Distinguished};
use crate::arrivals;
use crate::class::Tier;
use crate::client::{Client, Closes, WaitsFor};
use crate::distribution::Distribution;
use crate::error::ScenarioError;
use crate::file::{Length, Scenario};
use crate::graph::Graph;
use crate::lines::Lines;
use crate::policies;
use crate::problems::Problems;
use crate::servers::{self, Departures, Discipline};
use crate::service::Service;
use crate::sets;
use crate::shift;
use crate::signal;
use crate::source::Source;
use crate::stations;
use crate::text::span;
use crate::threads;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    name: String,
    #[serde(default)]
    about: String,
    servers: Servers,
    class: Vec<RawClass>,
    session: Session,
    arrivals: arrivals::RawSpec,
    client: RawClient,
    #[serde(default)]
    signal: Vec<signal::RawSpec>,
    #[serde(default)]
    set: Vec<sets::RawSpec>,
    run: Run,
    #[serde(default)]
    adversary: Vec<adversary::RawSpec>,
    #[serde(default)]
    policy: Vec<policies::RawSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Servers {
    workers: u32,
    max_wait: Option<String>,
    sessions: Option<u32>,
    #[serde(default)]
    discipline: Discipline,
    #[serde(default)]
    contention: f64,
    limit: Option<u32>,
    #[serde(default)]
    departures: Departures,
    #[serde(default)]
    change: Vec<servers::RawSpec>,
    #[serde(default)]
    station: Vec<stations::RawSpec>,
    threads: Option<threads::RawSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClass {
    name: String,
    request: String,
    #[serde(default)]
    form: String,
    status: Option<u16>,
    tier: Tier,
    utility: f64,
    queue: Option<u32>,
    #[serde(default)]
    requires: Vec<String>,
    service: Service,
    shift: Option<shift::RawSpec>,
    think: Option<Distribution>,
    station: Option<String>,
    #[serde(default)]
    parallel: threads::Parallel,
    terminate: Option<RawBounds>,
    #[serde(default)]
    next: BTreeMap<String, f64>,
}

/// The minimum and the maximum time for which a request of a class runs before the policy stops it.
/// The policy may stop the request from `min` on, and must stop it at `max`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBounds {
    min: String,
    max: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Session {
    start: String,
    order: String,
    #[serde(default)]
    change: Vec<SessionChange>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionChange {
    at: String,
    start: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClient {
    think: Distribution,
    patience: Distribution,
    #[serde(default)]
    waits_for: WaitsFor,
    #[serde(default)]
    retries: u32,
    retries_after_refusal: Option<u32>,
    pause_after_timeout: Option<String>,
    pause_after_refusal: Option<Distribution>,
    #[serde(default)]
    obeys_retry_after: bool,
    #[serde(default)]
    declares_retries: bool,
    #[serde(default)]
    abandon: f64,
    #[serde(default = "returns_cookies")]
    returns_cookies: bool,
    #[serde(default)]
    shapes: u32,
    #[serde(default)]
    targets: u32,
    closes: Option<Vec<Closes>>,
}

impl RawClient {
    /// Returns the properties by which the gateway tells requests apart.
    const fn distinguished(&self) -> Distinguished {
        Distinguished { shapes: self.shapes > 0, targets: self.targets > 0 }
    }
}

const fn returns_cookies() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    rho: Vec<f64>,
    seeds: Option<u32>,
    duration: Option<String>,
    orders: Option<u64>,
}

fn senseless<T>(why: impl Into<String>) -> Result<T, ScenarioError> {
    Err(ScenarioError::Invalid(why.into()))
}

/// Converts a parsed scenario file into a scenario. `folder` is the base of relative paths in the
/// file. `lines` gives the line numbers for error messages. Returns all errors of the file at once.
pub(crate) fn resolve(
    file: File,
    folder: &Path,
    lines: &Lines<'_>,
) -> Result<Scenario, ScenarioError> {
    let mut problems = Problems::default();
    let index = class_index(&file.class, lines, &mut problems);
    check_numbers(&file, lines, &mut problems);
    let stations = stations::resolve(&file.servers.station, lines, &mut problems);
    let mut classes = Vec::new();
    for (i, class) in file.class.iter().enumerate() {
        let class = class::resolve_class(class, &file.session.order, &index, &stations);
        classes.extend(problems.at(lines.nth("class", i)).part(class));
    }
    let classes = (classes.len() == file.class.len()).then_some(classes);
    let graph = graph(&file, &index, lines, &mut problems);
    let servers = servers_of(&file.servers, &index, stations, lines, &mut problems);
    let starts = starts(&file.session, &index, lines, &mut problems);
    let max_wait = file.servers.max_wait.as_deref().map(span).transpose();
    let max_wait = problems.at(lines.key("servers.max_wait")).part(max_wait);
    let some = file.servers.sessions.is_none_or(|sessions| sessions > 0);
    problems.at(lines.key("servers.sessions")).require(some, "sessions must be at least 1");
    let profile = file.arrivals.resolve(folder, lines, &mut problems);
    let client = client(&file.client, lines, &mut problems);
    let signals = signal::resolve(file.signal, lines, &mut problems);
    let sets = sets::resolve(file.set, lines, &mut problems);
    let thinks = sets.is_empty() || file.client.think.mean() > TimeSpan::ZERO;
    let why = "clients of a [[set]] need a `think` above 0: otherwise they request without a pause";
    problems.at(lines.key("client.think")).require(thinks, why);
    let length = length(&file.run, lines, &mut problems);
    let distinguished = file.client.distinguished();
    let adversaries =
        adversary::resolve(file.adversary, &index, distinguished, lines, &mut problems);
    let mut policies = Vec::new();
    for (i, policy) in file.policy.into_iter().enumerate() {
        let line = lines.nth("policy", i);
        let policy = policy.resolve(line, |name| find(&index, name, "policy.throttle"));
        policies.extend(problems.at(line).part(policy));
    }
    let whole = || {
        Some(Scenario {
            workers: file.servers.workers,
            servers,
            starts,
            max_wait: max_wait?,
            sessions: file.servers.sessions,
            profile: profile?,
            source: Source::Drawn,
            client: client?,
            signals,
            sets,
            closes: file.client.closes.unwrap_or_else(|| vec![Closes::Visible]),
            seeds: file.run.seeds.unwrap_or(1),
            first_seed: 1,
            length: length?,
            rho: file.run.rho,
            adversaries,
            policies,
            name: file.name,
            about: file.about,
            classes: classes?,
            graph: graph?,
        })
    };
    let scenario = whole();
    if let Some(scenario) = &scenario {
        check_whole(scenario, lines, &mut problems);
    }
    problems.whole(scenario)
}

/// Reports every number that is outside its fixed range, whatever the other keys are.
fn check_numbers(file: &File, lines: &Lines<'_>, problems: &mut Problems) {
    let File { servers, client, run, .. } = file;
    let mut require = |right: bool, key: &str, takes: &str| {
        problems.at(lines.key(key)).require(right, format!("{key} {takes}"));
    };
    let many = |count: u32| (1..=100_000).contains(&count);
    require(many(servers.workers), "servers.workers", "must be 1 to 100000");
    require((0.0..=10.0).contains(&servers.contention), "servers.contention", "must be 0 to 10");
    require(servers.limit.is_none_or(many), "servers.limit", "must be 1 to 100000");
    let level = |rho: &f64| *rho > 0.0 && *rho <= 1000.0;
    let levels = !run.rho.is_empty() && run.rho.iter().all(level);
    require(levels, "run.rho", "needs at least one level, each above 0 and at most 1000");
    let seeds = run.seeds.is_none_or(|seeds| (1..=10_000).contains(&seeds));
    require(seeds, "run.seeds", "must be 1 to 10000");
    let closes = client.closes.as_ref().is_none_or(|closes| !closes.is_empty());
    require(closes, "client.closes", "needs at least one");
    let abandon = (0.0..=1.0).contains(&client.abandon);
    require(abandon, "client.abandon", "must be a probability from 0 to 1");
    require(client.shapes <= 10_000, "client.shapes", "must be 0 to 10000");
    let targets = client.targets == 0 || client.shapes > 0 && client.targets <= 100_000_000;
    require(
        targets,
        "client.targets",
        "must be 0 to 100000000, and has no effect without `shapes`",
    );
    for (key, many) in [
        ("policy", file.policy.len()),
        ("servers.change", servers.change.len()),
        ("session.change", file.session.change.len()),
        ("servers.station", servers.station.len()),
        ("set", file.set.len()),
    ] {
        require(many <= MOST, key, "has more than 1000 entries");
    }
}

/// The maximum number of entries in each list of a scenario file. Classes, signals and adversaries
/// have lower limits of their own.
const MOST: usize = 1000;

/// Reports violated conditions that involve several parts of a scenario.
fn check_whole(scenario: &Scenario, lines: &Lines<'_>, problems: &mut Problems) {
    let ends = scenario.graph.work_per_session(&scenario.classes).is_some();
    problems
        .at(None)
        .require(ends, "sessions of this graph never end: some class always leads to another");
    let orders = scenario.graph.orders_per_session().unwrap_or(0.0);
    let ordered = !ends || !matches!(scenario.length, Length::Orders(_)) || orders > 0.0;
    let why = "run.orders is set, but no session of this graph makes an order";
    problems.at(lines.key("run.orders")).require(ordered, why);
    check_threads(scenario, lines, problems);
}

/// Reports settings that cannot be combined with `servers.threads`. Also reports classes that set
/// `parallel` although the scenario has no threads.
fn check_threads(scenario: &Scenario, lines: &Lines<'_>, problems: &mut Problems) {
    let line = lines.key("servers.threads");
    let servers = &scenario.servers;
    if servers.threads.is_none() {
        let tasks =
            scenario.classes.iter().all(|class| class.parallel == threads::Parallel::default());
        let why = "a class has `parallel`, but there is no [servers.threads] to run it";
        problems.at(None).require(tasks, why);
        return;
    }
    let plain = servers.changes.is_empty() && servers.contention == 0.0;
    let why = "servers.threads cannot be combined with servers.change or servers.contention";
    problems.at(line).require(plain, why);
}

fn class_index(
    classes: &[RawClass],
    lines: &Lines<'_>,
    problems: &mut Problems,
) -> HashMap<String, usize> {
    let some = (1..=64).contains(&classes.len());
    problems.at(None).require(some, "a scenario has from 1 to 64 classes");
    let mut index = HashMap::new();
    for (i, class) in classes.iter().enumerate().take(64) {
        let is_first = index.insert(class.name.clone(), i).is_none();
        let why = format!("class `{}` is defined twice", class.name);
        problems.at(lines.nth("class", i)).require(is_first, why);
    }
    index
}

fn find(index: &HashMap<String, usize>, name: &str, at: &str) -> Result<usize, ScenarioError> {
    match index.get(name) {
        Some(i) => Ok(*i),
        None => senseless(format!("{at} names class `{name}`, which does not exist")),
    }
}

fn graph(
    file: &File,
    index: &HashMap<String, usize>,
    lines: &Lines<'_>,
    problems: &mut Problems,
) -> Option<Graph> {
    let mut next = Vec::new();
    for (i, class) in file.class.iter().enumerate() {
        next.extend(problems.at(lines.nth("class", i)).part(row(class, index)));
    }
    let mut class =
        |name: &str, key: &str| problems.at(lines.key(key)).part(find(index, name, key));
    let start = class(&file.session.start, "session.start");
    let order = class(&file.session.order, "session.order");
    let graph = Graph { start: start?, next, order: order? };
    (graph.next.len() == file.class.len()).then_some(graph)
}

const IN_ORDER: &str = "changes must be in the order of their times";

fn servers_of(
    raw: &Servers,
    index: &HashMap<String, usize>,
    stations: Vec<servers::Station>,
    lines: &Lines<'_>,
    problems: &mut Problems,
) -> servers::Servers {
    const CHANGE: &str = "servers.change";
    let mut changes = Vec::new();
    for (i, change) in raw.change.iter().enumerate() {
        let change = change.resolve(|name| find(index, name, CHANGE));
        changes.extend(problems.at(lines.nth(CHANGE, i)).part(change));
    }
    let in_order = changes.is_sorted_by_key(|change| change.at);
    problems.at(lines.nth(CHANGE, 0)).require(in_order, IN_ORDER);
    let find = |name: &str| find(index, name, "servers.threads.goal");
    let threads = raw.threads.as_ref().map(|threads| threads.resolve(find)).transpose();
    let threads = problems.at(lines.key("servers.threads")).part(threads).flatten();
    servers::Servers {
        threads,
        discipline: raw.discipline,
        contention: raw.contention,
        limit: raw.limit,
        departures: raw.departures,
        changes,
        stations,
    }
}

fn starts(
    session: &Session,
    index: &HashMap<String, usize>,
    lines: &Lines<'_>,
    problems: &mut Problems,
) -> Vec<(TimeSpan, usize)> {
    const CHANGE: &str = "session.change";
    let resolve =
        |change: &SessionChange| Ok((span(&change.at)?, find(index, &change.start, CHANGE)?));
    let mut changes = Vec::new();
    for (i, change) in session.change.iter().enumerate() {
        changes.extend(problems.at(lines.nth(CHANGE, i)).part(resolve(change)));
    }
    let in_order = changes.is_sorted_by_key(|(at, _)| *at);
    problems.at(lines.nth(CHANGE, 0)).require(in_order, IN_ORDER);
    changes
}

fn row(
    class: &RawClass,
    index: &HashMap<String, usize>,
) -> Result<Vec<(usize, f64)>, ScenarioError> {
    let mut problems = Problems::default();
    let sum: f64 = class.next.values().sum();
    let chances = class.next.values().all(|p| (0.0..=1.0).contains(p)) && sum <= 1.0 + 1e-9;
    let why = format!("the probabilities in next of `{}` must sum to at most 1", class.name);
    problems.require(chances, why);
    let resolve = |(name, p): (&String, &f64)| Ok((find(index, name, &class.name)?, *p));
    let row = problems.parts(class.next.iter().map(resolve));
    problems.whole(Some(row))
}

fn client(raw: &RawClient, lines: &Lines<'_>, problems: &mut Problems) -> Option<Client> {
    let pause = raw.pause_after_timeout.as_deref().map_or(Ok(TimeSpan::ZERO), span);
    let pause_after_timeout = problems.at(lines.key("client.pause_after_timeout")).part(pause);
    for (key, distribution) in
        [("client.think", Some(raw.think)), ("client.pause_after_refusal", raw.pause_after_refusal)]
    {
        let ends = distribution != Some(Distribution::Never);
        let why = format!("{key} must be finite: a client that waits forever makes no load");
        problems.at(lines.key(key)).require(ends, why);
    }
    Some(Client {
        think: raw.think,
        patience: raw.patience,
        waits_for: raw.waits_for,
        retries: raw.retries,
        retries_after_refusal: raw.retries_after_refusal.unwrap_or(raw.retries),
        pause_after_timeout: pause_after_timeout?,
        pause_after_refusal: raw
            .pause_after_refusal
            .unwrap_or(Distribution::Constant(TimeSpan::ZERO)),
        obeys_retry_after: raw.obeys_retry_after,
        declares_retries: raw.declares_retries,
        abandon: raw.abandon,
        returns_cookies: raw.returns_cookies,
        shapes: raw.shapes,
        targets: raw.targets,
    })
}

fn length(run: &Run, lines: &Lines<'_>, problems: &mut Problems) -> Option<Length> {
    let (key, length) = match (&run.duration, run.orders) {
        (Some(text), None) => ("run.duration", duration(text).map(Length::Duration)),
        (None, Some(orders)) if orders > 0 => ("run.orders", Ok(Length::Orders(orders))),
        _ => ("run", senseless("run needs exactly one of `duration` and `orders` (above 0)")),
    };
    problems.at(lines.key(key)).part(length)
}

fn duration(text: &str) -> Result<TimeSpan, ScenarioError> {
    match span(text)? {
        TimeSpan::ZERO => senseless("run.duration must be above 0"),
        duration if duration > Scenario::LONGEST => {
            senseless("run.duration must be at most a year")
        }
        duration => Ok(duration),
    }
}
