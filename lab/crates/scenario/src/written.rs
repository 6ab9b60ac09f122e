//! The TOML form of a scenario, and its conversion into a checked [`Scenario`].
//!
//! The structs mirror the text key for key; unknown keys are errors. The functions below them
//! resolve: class names become indices, texts become durations, and senseless values are refused.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use bywash_units::{Span, Utility};
use serde::Deserialize;

use crate::adversary;
use crate::arrivals;
use crate::class::{Class, Tier};
use crate::client::{Client, Closes, WaitsFor};
use crate::distribution::Distribution;
use crate::error::ScenarioError;
use crate::file::{Length, Scenario};
use crate::graph::Graph;
use crate::lines::Lines;
use crate::policies;
use crate::servers::{self, Departures, Discipline};
use crate::service::Service;
use crate::sets;
use crate::shift;
use crate::signal;
use crate::source::Source;
use crate::stations;
use crate::text::span;
use crate::threads;
use crate::wrong::Wrong;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    name: String,
    #[serde(default)]
    about: String,
    servers: Servers,
    class: Vec<WrittenClass>,
    session: Session,
    arrivals: arrivals::Written,
    client: WrittenClient,
    #[serde(default)]
    signal: Vec<signal::Written>,
    #[serde(default)]
    set: Vec<sets::Written>,
    run: Run,
    #[serde(default)]
    adversary: Vec<adversary::Written>,
    #[serde(default)]
    policy: Vec<policies::Written>,
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
    change: Vec<servers::Written>,
    #[serde(default)]
    station: Vec<stations::Written>,
    threads: Option<threads::Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenClass {
    name: String,
    request: String,
    #[serde(default)]
    form: String,
    status: Option<u16>,
    tier: Tier,
    utility: f64,
    queue: Option<u32>,
    #[serde(default)]
    after: Vec<String>,
    service: Service,
    shift: Option<shift::Written>,
    think: Option<Distribution>,
    station: Option<String>,
    #[serde(default)]
    parallel: threads::Parallel,
    terminate: Option<WrittenBounds>,
    #[serde(default)]
    next: BTreeMap<String, f64>,
}

/// The running time granted to requests that may be stopped.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBounds {
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
struct WrittenClient {
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
    keeps_retry_after: bool,
    #[serde(default)]
    declares_retries: bool,
    #[serde(default)]
    abandon: f64,
    closes: Option<Vec<Closes>>,
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
    Err(ScenarioError::Senseless(why.into()))
}

/// Resolves a file whose keys stand in these `lines`.
pub(crate) fn resolve(
    file: File,
    folder: &Path,
    lines: &Lines<'_>,
) -> Result<Scenario, ScenarioError> {
    let mut wrong = Wrong::default();
    let index = class_index(&file.class, lines, &mut wrong);
    check_numbers(&file, lines, &mut wrong);
    let stations = stations::resolve(&file.servers.station, lines, &mut wrong);
    let mut classes = Vec::new();
    for (i, class) in file.class.iter().enumerate() {
        let class = resolve_class(class, &file.session.order, &index, &stations);
        classes.extend(wrong.at(lines.nth("class", i)).part(class));
    }
    let classes = (classes.len() == file.class.len()).then_some(classes);
    let graph = graph(&file, &index, lines, &mut wrong);
    let servers = servers_of(&file.servers, &index, stations, lines, &mut wrong);
    let starts = starts(&file.session, &index, lines, &mut wrong);
    let max_wait = file.servers.max_wait.as_deref().map(span).transpose();
    let max_wait = wrong.at(lines.key("servers.max_wait")).part(max_wait);
    let some = file.servers.sessions.is_none_or(|sessions| sessions > 0);
    wrong.at(lines.key("servers.sessions")).unless(some, "sessions must be at least 1");
    let profile = file.arrivals.resolve(folder, lines, &mut wrong);
    let client = client(&file.client, lines, &mut wrong);
    let signals = signal::resolve(file.signal, lines, &mut wrong);
    let sets = sets::resolve(file.set, lines, &mut wrong);
    let thinks = sets.is_empty() || file.client.think.mean() > Span::ZERO;
    let why = "clients of a [[set]] need a `think` above 0: otherwise they request without a pause";
    wrong.at(lines.key("client.think")).unless(thinks, why);
    let length = length(&file.run, lines, &mut wrong);
    let adversaries = adversary::resolve(file.adversary, &index, lines, &mut wrong);
    let mut policies = Vec::new();
    for (i, policy) in file.policy.into_iter().enumerate() {
        let line = lines.nth("policy", i);
        let policy = policy.resolve(line, |name| find(&index, name, "policy.throttle"));
        policies.extend(wrong.at(line).part(policy));
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
        check_whole(scenario, lines, &mut wrong);
    }
    wrong.whole(scenario)
}

/// Checks numbers that are independent of the rest.
fn check_numbers(file: &File, lines: &Lines<'_>, wrong: &mut Wrong) {
    let File { servers, client, run, .. } = file;
    let mut unless = |right: bool, key: &str, takes: &str| {
        wrong.at(lines.key(key)).unless(right, format!("{key} {takes}"));
    };
    let many = |count: u32| (1..=100_000).contains(&count);
    unless(many(servers.workers), "servers.workers", "must be 1 to 100000");
    unless((0.0..=10.0).contains(&servers.contention), "servers.contention", "must be 0 to 10");
    unless(servers.limit.is_none_or(many), "servers.limit", "must be 1 to 100000");
    let level = |rho: &f64| *rho > 0.0 && *rho <= 1000.0;
    let levels = !run.rho.is_empty() && run.rho.iter().all(level);
    unless(levels, "run.rho", "needs at least one level, each above 0 and at most 1000");
    let seeds = run.seeds.is_none_or(|seeds| (1..=10_000).contains(&seeds));
    unless(seeds, "run.seeds", "must be 1 to 10000");
    let closes = client.closes.as_ref().is_none_or(|closes| !closes.is_empty());
    unless(closes, "client.closes", "needs at least one");
    let abandon = (0.0..=1.0).contains(&client.abandon);
    unless(abandon, "client.abandon", "must be a probability from 0 to 1");
    for (key, many) in [
        ("policy", file.policy.len()),
        ("servers.change", servers.change.len()),
        ("session.change", file.session.change.len()),
        ("servers.station", servers.station.len()),
        ("set", file.set.len()),
    ] {
        unless(many <= MOST, key, "has more than 1000 entries");
    }
}

/// The most policies, and the most changes.
const MOST: usize = 1000;

/// Checks rules between the parts of a scenario.
fn check_whole(scenario: &Scenario, lines: &Lines<'_>, wrong: &mut Wrong) {
    let ends = scenario.graph.work_per_session(&scenario.classes).is_some();
    wrong
        .at(None)
        .unless(ends, "sessions of this graph never end: some class always leads to another");
    let orders = scenario.graph.orders_per_session().unwrap_or(0.0);
    let ordered = !ends || !matches!(scenario.length, Length::Orders(_)) || orders > 0.0;
    let why = "run.orders is set, but no session of this graph makes an order";
    wrong.at(lines.key("run.orders")).unless(ordered, why);
    check_threads(scenario, lines, wrong);
}

/// Reports settings of a scenario that are incompatible with threads.
fn check_threads(scenario: &Scenario, lines: &Lines<'_>, wrong: &mut Wrong) {
    let line = lines.key("servers.threads");
    let servers = &scenario.servers;
    if servers.threads.is_none() {
        let tasks =
            scenario.classes.iter().all(|class| class.parallel == threads::Parallel::default());
        let why = "a class has `parallel`, but there is no [servers.threads] to run it";
        wrong.at(None).unless(tasks, why);
        return;
    }
    let plain = servers.changes.is_empty() && servers.contention == 0.0;
    let why = "servers.threads cannot be combined with servers.change or servers.contention";
    wrong.at(line).unless(plain, why);
}

fn class_index(
    classes: &[WrittenClass],
    lines: &Lines<'_>,
    wrong: &mut Wrong,
) -> HashMap<String, usize> {
    let some = (1..=64).contains(&classes.len());
    wrong.at(None).unless(some, "a scenario has from 1 to 64 classes");
    let mut index = HashMap::new();
    for (i, class) in classes.iter().enumerate().take(64) {
        let is_first = index.insert(class.name.clone(), i).is_none();
        let why = format!("class `{}` is defined twice", class.name);
        wrong.at(lines.nth("class", i)).unless(is_first, why);
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
    wrong: &mut Wrong,
) -> Option<Graph> {
    let mut next = Vec::new();
    for (i, class) in file.class.iter().enumerate() {
        next.extend(wrong.at(lines.nth("class", i)).part(row(class, index)));
    }
    let mut class = |name: &str, key: &str| wrong.at(lines.key(key)).part(find(index, name, key));
    let start = class(&file.session.start, "session.start");
    let order = class(&file.session.order, "session.order");
    let graph = Graph { start: start?, next, order: order? };
    (graph.next.len() == file.class.len()).then_some(graph)
}

const IN_ORDER: &str = "changes must be in the order of their times";

fn servers_of(
    written: &Servers,
    index: &HashMap<String, usize>,
    stations: Vec<servers::Station>,
    lines: &Lines<'_>,
    wrong: &mut Wrong,
) -> servers::Servers {
    const CHANGE: &str = "servers.change";
    let mut changes = Vec::new();
    for (i, change) in written.change.iter().enumerate() {
        let change = change.resolve(|name| find(index, name, CHANGE));
        changes.extend(wrong.at(lines.nth(CHANGE, i)).part(change));
    }
    let in_order = changes.is_sorted_by_key(|change| change.at);
    wrong.at(lines.nth(CHANGE, 0)).unless(in_order, IN_ORDER);
    let find = |name: &str| find(index, name, "servers.threads.goal");
    let threads = written.threads.as_ref().map(|threads| threads.resolve(find)).transpose();
    let threads = wrong.at(lines.key("servers.threads")).part(threads).flatten();
    servers::Servers {
        threads,
        discipline: written.discipline,
        contention: written.contention,
        limit: written.limit,
        departures: written.departures,
        changes,
        stations,
    }
}

fn starts(
    session: &Session,
    index: &HashMap<String, usize>,
    lines: &Lines<'_>,
    wrong: &mut Wrong,
) -> Vec<(Span, usize)> {
    const CHANGE: &str = "session.change";
    let resolve =
        |change: &SessionChange| Ok((span(&change.at)?, find(index, &change.start, CHANGE)?));
    let mut changes = Vec::new();
    for (i, change) in session.change.iter().enumerate() {
        changes.extend(wrong.at(lines.nth(CHANGE, i)).part(resolve(change)));
    }
    let in_order = changes.is_sorted_by_key(|(at, _)| *at);
    wrong.at(lines.nth(CHANGE, 0)).unless(in_order, IN_ORDER);
    changes
}

fn row(
    class: &WrittenClass,
    index: &HashMap<String, usize>,
) -> Result<Vec<(usize, f64)>, ScenarioError> {
    let mut wrong = Wrong::default();
    let sum: f64 = class.next.values().sum();
    let chances = class.next.values().all(|p| (0.0..=1.0).contains(p)) && sum <= 1.0 + 1e-9;
    let why = format!("the probabilities in next of `{}` must sum to at most 1", class.name);
    wrong.unless(chances, why);
    let resolve = |(name, p): (&String, &f64)| Ok((find(index, name, &class.name)?, *p));
    let row = wrong.parts(class.next.iter().map(resolve));
    wrong.whole(Some(row))
}

fn resolve_class(
    class: &WrittenClass,
    order: &str,
    index: &HashMap<String, usize>,
    stations: &[servers::Station],
) -> Result<Class, ScenarioError> {
    let mut wrong = Wrong::default();
    let name = &class.name;
    let request = wrong.part(class.request.split_once(' ').ok_or_else(|| {
        ScenarioError::Senseless(format!("request of `{name}`: write METHOD PATH, as in GET /item"))
    }));
    let has_content = class.form.is_empty() || class.request.starts_with("POST ");
    wrong.unless(has_content, format!("form of `{name}`: only a POST can have one"));
    let known = class.status.is_none_or(|status| (200..600).contains(&status));
    wrong.unless(known, format!("status of `{name}` must be 200 to 599"));
    let worth = class.utility >= 0.0 && class.utility.is_finite();
    wrong.unless(worth, format!("utility of `{name}` must be a number, 0 or above"));
    let stop = class.terminate.as_ref().map(|bounds| bounds_of(name, bounds)).transpose();
    let stop = wrong.part(stop);
    let shift = class.shift.as_ref().map(|shift| shift.resolve(name)).transpose();
    let shift = wrong.part(shift);
    wrong.unless(class.service.ends(), format!("service of `{name}` must be above 0 and finite"));
    let why =
        format!("think of `{name}` must be finite: a client that waits forever makes no load");
    wrong.unless(class.think != Some(Distribution::Never), why);
    let station = wrong.part(stations::of_class(stations, class.station.as_deref(), name));
    wrong.part(threads::check(class.parallel, name));
    let after = wrong.parts(class.after.iter().map(|other| find(index, other, name)));
    let class = request.map(|(method, path)| Class {
        name: name.clone(),
        method: method.into(),
        path: path.trim().into(),
        form: class.form.clone(),
        status: class.status,
        tier: class.tier,
        utility: Utility::new(class.utility),
        queue: class.queue,
        after,
        service: class.service.clone(),
        shift: shift.flatten(),
        stop: stop.flatten(),
        earns: Utility::new(if name == order { 1.0 } else { 0.0 }),
        pinned: None,
        think: class.think,
        patience: None,
        station: station.flatten(),
        parallel: class.parallel,
    });
    wrong.whole(class)
}

fn bounds_of(class: &str, bounds: &WrittenBounds) -> Result<(Span, Span), ScenarioError> {
    let (min, max) = (span(&bounds.min)?, span(&bounds.max)?);
    if min > max {
        return senseless(format!("terminate of `{class}`: min {min} is above max {max}"));
    }
    Ok((min, max))
}

fn client(written: &WrittenClient, lines: &Lines<'_>, wrong: &mut Wrong) -> Option<Client> {
    let pause = written.pause_after_timeout.as_deref().map_or(Ok(Span::ZERO), span);
    let pause_after_timeout = wrong.at(lines.key("client.pause_after_timeout")).part(pause);
    for (key, distribution) in [
        ("client.think", Some(written.think)),
        ("client.pause_after_refusal", written.pause_after_refusal),
    ] {
        let ends = distribution != Some(Distribution::Never);
        let why = format!("{key} must be finite: a client that waits forever makes no load");
        wrong.at(lines.key(key)).unless(ends, why);
    }
    Some(Client {
        think: written.think,
        patience: written.patience,
        waits_for: written.waits_for,
        retries: written.retries,
        retries_after_refusal: written.retries_after_refusal.unwrap_or(written.retries),
        pause_after_timeout: pause_after_timeout?,
        pause_after_refusal: written
            .pause_after_refusal
            .unwrap_or(Distribution::Constant(Span::ZERO)),
        keeps_retry_after: written.keeps_retry_after,
        declares_retries: written.declares_retries,
        abandon: written.abandon,
    })
}

fn length(run: &Run, lines: &Lines<'_>, wrong: &mut Wrong) -> Option<Length> {
    let (key, length) = match (&run.duration, run.orders) {
        (Some(text), None) => ("run.duration", duration(text).map(Length::Duration)),
        (None, Some(orders)) if orders > 0 => ("run.orders", Ok(Length::Orders(orders))),
        _ => ("run", senseless("run needs exactly one of `duration` and `orders` (above 0)")),
    };
    wrong.at(lines.key(key)).part(length)
}

fn duration(text: &str) -> Result<Span, ScenarioError> {
    match span(text)? {
        Span::ZERO => senseless("run.duration must be above 0"),
        duration if duration > Scenario::LONGEST => {
            senseless("run.duration must be at most a year")
        }
        duration => Ok(duration),
    }
}
