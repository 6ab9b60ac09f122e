//! The scenario file: TOML to a checked [`Scenario`].
//!
//! The shapes that mirror the text are private; what leaves this room is resolved (class names
//! are indices, spans are spans) and consistent.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

use bywash_units::{Rate, Span, Time, Utility};
use serde::Deserialize;

use crate::arrivals::{self, Profile};
use crate::graph::Graph;
use crate::law::Law;

/// A load, ready to be played.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, as in the file.
    pub name: String,
    /// One line: what it is and where it comes from.
    pub about: String,
    /// Requests that the servers run at once.
    pub workers: u32,
    /// How long a request may wait for a worker; `None` for as long as its client does.
    pub max_wait: Option<Span>,
    /// Kinds of request, in the order of the file.
    pub classes: Vec<Class>,
    /// What sessions do.
    pub graph: Graph,
    /// How load goes over time.
    pub profile: Profile,
    /// The levels of ρ to run, one cell each.
    pub rho: Vec<f64>,
    /// How clients behave.
    pub client: Client,
    /// Whether the server side can see a client leave; one cell each.
    pub closes: Vec<Closes>,
    /// The policies to run, one cell each.
    pub policies: Vec<PolicyChoice>,
    /// Seeds to run and to average over.
    pub seeds: u32,
    /// How long arrivals go on.
    pub length: Length,
}

/// A kind of request.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// HTTP method of a live run.
    pub method: String,
    /// Path and query of a live run.
    pub path: String,
    /// Whether it earns or looks.
    pub tier: Tier,
    /// Worth, for the policies that use it.
    pub utility: Utility,
    /// Places in its queue, for the policies that have one per class.
    pub queue: Option<u32>,
    /// Indices of the classes of which a session must have been served one before this class
    /// counts as a transaction.
    pub after: Vec<usize>,
    /// Service demand.
    pub service: Law,
}

/// `transact` earns, `browse` looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Part of a purchase.
    Transact,
    /// Anything else.
    Browse,
}

/// Whether a client that closes its connection is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Closes {
    /// It is: its request can be taken out of the queue or stopped.
    Visible,
    /// A hop in between hides it (a CDN, a pooling proxy): its request looks like any other.
    Hidden,
}

impl Closes {
    /// The word for it in files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Hidden => "hidden",
        }
    }
}

/// Until when a client's patience counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitsFor {
    /// The whole answer.
    #[default]
    Answer,
    /// The beginning of service: whoever is being served stays. Only the simulator can play this.
    Service,
}

/// How clients behave.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Pause between a page and the next request.
    pub think: Law,
    /// How long a client waits for an answer.
    pub patience: Law,
    /// What she waits for.
    pub waits_for: WaitsFor,
    /// Attempts at a request beyond the first; then the session is abandoned.
    pub retries: u32,
    /// Of these, how many may follow a refusal or an error: a refused client who does not come
    /// again has 0.
    pub retries_after_refusal: u32,
    /// Pause before the retry of a request that timed out.
    pub pause_after_timeout: Span,
    /// Pause before the retry of a request that was refused.
    pub pause_after_refusal: Law,
    /// Probability that a disappointed client gives up although retries are left.
    pub abandon: f64,
}

/// A policy to run, with the parameters that differ from their defaults.
#[derive(Clone, Debug)]
pub struct PolicyChoice {
    /// Name in the catalogue.
    pub name: String,
    /// Name in the result; the policy's own where the file gives none.
    pub label: String,
    /// Parameters as text, by name.
    pub parameters: BTreeMap<String, String>,
}

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Arrivals for so long.
    Duration(Span),
    /// Arrivals until an ideal policy would have confirmed so many orders, over all seeds of a
    /// cell.
    Orders(u64),
}

/// What is wrong with a scenario file.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not TOML, an unknown key, a value of the wrong kind. The text has line and column.
    #[error("{0}")]
    Malformed(#[from] toml::de::Error),
    /// Well-formed, and makes no sense.
    #[error("{0}")]
    Senseless(String),
}

impl Scenario {
    /// Reads a scenario file.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text = read_bounded(path)?;
        Self::parse(&text, path.parent().unwrap_or(Path::new(".")))
    }

    /// Reads a scenario from text; a file of arrival times is looked for in `folder`.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, ScenarioError> {
        resolve(toml::from_str(text)?, folder)
    }

    /// Sessions per second that make ρ = 1.
    pub fn unit_rate(&self) -> Rate {
        let work = self.graph.work_per_session(&self.classes).unwrap_or(Span::MAX);
        Rate::per_second(f64::from(self.workers) / work.as_secs_f64())
    }

    /// How long arrivals go on in one seed of a run at level `rho`.
    pub fn duration(&self, rho: f64) -> Span {
        match self.length {
            Length::Duration(span) => span,
            Length::Orders(orders) => {
                let per_session = self.graph.orders_per_session().unwrap_or(0.0);
                let per_second = self.unit_rate().get() * rho.min(1.0) * per_session;
                let each = orders as f64 / f64::from(self.seeds.max(1));
                Span::from_secs_f64(each / per_second)
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    about: String,
    servers: Servers,
    class: Vec<WrittenClass>,
    session: Session,
    arrivals: arrivals::Written,
    client: WrittenClient,
    run: Run,
    #[serde(default)]
    policy: Vec<WrittenPolicy>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Servers {
    workers: u32,
    #[serde(default)]
    max_wait: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenClass {
    name: String,
    request: String,
    tier: Tier,
    utility: f64,
    #[serde(default)]
    queue: Option<u32>,
    #[serde(default)]
    after: Vec<String>,
    service: Law,
    #[serde(default)]
    next: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Session {
    start: String,
    order: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenClient {
    think: Law,
    patience: Law,
    #[serde(default)]
    waits_for: WaitsFor,
    #[serde(default)]
    retries: u32,
    #[serde(default)]
    retries_after_refusal: Option<u32>,
    #[serde(default)]
    pause_after_timeout: Option<String>,
    #[serde(default)]
    pause_after_refusal: Option<Law>,
    #[serde(default)]
    abandon: f64,
    #[serde(default)]
    closes: Option<Vec<Closes>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    rho: Vec<f64>,
    #[serde(default)]
    seeds: Option<u32>,
    #[serde(default)]
    duration: Option<String>,
    #[serde(default)]
    orders: Option<u64>,
}

#[derive(Deserialize)]
struct WrittenPolicy {
    name: String,
    #[serde(default)]
    label: Option<String>,
    #[serde(flatten)]
    parameters: BTreeMap<String, toml::Value>,
}

fn senseless<T>(why: impl Into<String>) -> Result<T, ScenarioError> {
    Err(ScenarioError::Senseless(why.into()))
}

fn resolve(file: File, folder: &Path) -> Result<Scenario, ScenarioError> {
    let index = class_index(&file.class)?;
    let graph = graph(&file, &index)?;
    let classes = file
        .class
        .iter()
        .map(|class| resolve_class(class, &index))
        .collect::<Result<Vec<_>, _>>()?;
    if graph.work_per_session(&classes).is_none() {
        return senseless("sessions of this graph never end: some class always leads to another");
    }
    let scenario = Scenario {
        workers: file.servers.workers,
        max_wait: file.servers.max_wait.as_deref().map(span).transpose()?,
        profile: profile(file.arrivals, folder)?,
        client: client(&file.client)?,
        closes: file.client.closes.unwrap_or_else(|| vec![Closes::Visible]),
        seeds: file.run.seeds.unwrap_or(1),
        length: length(&file.run)?,
        rho: file.run.rho,
        policies: file.policy.into_iter().map(choice).collect(),
        name: file.name,
        about: file.about,
        classes,
        graph,
    };
    check(scenario)
}

/// The rules that tie one part of a scenario to another.
fn check(scenario: Scenario) -> Result<Scenario, ScenarioError> {
    if !(1..=100_000).contains(&scenario.workers) {
        return senseless("servers.workers takes 1 to 100000");
    }
    let level = |rho: &f64| *rho > 0.0 && *rho <= 1000.0;
    if scenario.rho.is_empty() || !scenario.rho.iter().all(level) {
        return senseless("run.rho needs at least one level, each above 0 and at most 1000");
    }
    if !(0.0..=1000.0).contains(&scenario.profile.base()) {
        return senseless("arrivals.base is a level of load, from 0 to 1000");
    }
    if scenario.seeds == 0 || scenario.closes.is_empty() {
        return senseless("run.seeds and client.closes must not be empty");
    }
    if !(0.0..=1.0).contains(&scenario.client.abandon) {
        return senseless("client.abandon is a probability, from 0 to 1");
    }
    let orders = scenario.graph.orders_per_session().unwrap_or(0.0);
    if matches!(scenario.length, Length::Orders(_)) && orders <= 0.0 {
        return senseless("run.orders is given, and no session of this graph ever makes an order");
    }
    Ok(scenario)
}

fn class_index(classes: &[WrittenClass]) -> Result<HashMap<String, usize>, ScenarioError> {
    if classes.is_empty() || classes.len() > 64 {
        return senseless("a scenario has from 1 to 64 classes");
    }
    let mut index = HashMap::new();
    for (i, class) in classes.iter().enumerate() {
        if index.insert(class.name.clone(), i).is_some() {
            return senseless(format!("class `{}` stands twice", class.name));
        }
    }
    Ok(index)
}

fn find(index: &HashMap<String, usize>, name: &str, at: &str) -> Result<usize, ScenarioError> {
    match index.get(name) {
        Some(i) => Ok(*i),
        None => senseless(format!("{at} names class `{name}`, and there is none of that name")),
    }
}

fn graph(file: &File, index: &HashMap<String, usize>) -> Result<Graph, ScenarioError> {
    let next = file.class.iter().map(|class| row(class, index)).collect::<Result<_, _>>()?;
    let start = find(index, &file.session.start, "session.start")?;
    let order = find(index, &file.session.order, "session.order")?;
    Ok(Graph { start, next, order })
}

fn row(
    class: &WrittenClass,
    index: &HashMap<String, usize>,
) -> Result<Vec<(usize, f64)>, ScenarioError> {
    let sum: f64 = class.next.values().sum();
    if class.next.values().any(|p| !(0.0..=1.0).contains(p)) || sum > 1.0 + 1e-9 {
        return senseless(format!(
            "the chances under next of `{}` must sum to at most 1",
            class.name
        ));
    }
    let resolve = |(name, p): (&String, &f64)| Ok((find(index, name, &class.name)?, *p));
    class.next.iter().map(resolve).collect()
}

fn resolve_class(
    class: &WrittenClass,
    index: &HashMap<String, usize>,
) -> Result<Class, ScenarioError> {
    let Some((method, path)) = class.request.split_once(' ') else {
        return senseless(format!("request of `{}`: write a method and a path", class.name));
    };
    if !(class.utility >= 0.0 && class.utility.is_finite()) {
        return senseless(format!("utility of `{}` must be a number, 0 or above", class.name));
    }
    if class.service == Law::Never || class.service.mean() == Span::ZERO {
        return senseless(format!("service of `{}` must take some time, and end", class.name));
    }
    let after = class.after.iter().map(|name| find(index, name, &class.name));
    Ok(Class {
        name: class.name.clone(),
        method: method.into(),
        path: path.trim().into(),
        tier: class.tier,
        utility: Utility::new(class.utility),
        queue: class.queue,
        after: after.collect::<Result<_, _>>()?,
        service: class.service,
    })
}

fn span(text: &str) -> Result<Span, ScenarioError> {
    text.parse().or_else(|error: bywash_units::ParseSpanError| senseless(error.to_string()))
}

fn profile(written: arrivals::Written, folder: &Path) -> Result<Profile, ScenarioError> {
    use arrivals::Written;
    Ok(match written {
        Written::Poisson => Profile::Poisson,
        Written::Step { base, at } => Profile::Step { base, at: span(&at)? },
        Written::Pulse { base, at, lasts } => {
            Profile::Pulse { base, at: span(&at)?, lasts: span(&lasts)? }
        }
        Written::Ramp { base, at, over } => {
            Profile::Ramp { base, at: span(&at)?, over: span(&over)? }
        }
        Written::File { path } => times(&folder.join(path))?,
    })
}

/// A file of at most 64 MiB: some five million arrival times.
fn read_bounded(path: &Path) -> Result<String, ScenarioError> {
    const MOST: u64 = 64 << 20;
    let read = || {
        let mut text = String::new();
        let read = std::fs::File::open(path)?.take(MOST + 1).read_to_string(&mut text)?;
        if read as u64 > MOST {
            return Err(std::io::Error::other("it is larger than 64 MiB"));
        }
        Ok(text)
    };
    read().map_err(|source| ScenarioError::Unreadable { path: path.into(), source })
}

/// Reads arrival times: seconds since the start, one a line, in order; `#` starts a comment.
fn times(path: &Path) -> Result<Profile, ScenarioError> {
    let text = read_bounded(path)?;
    let mut times: Vec<Time> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let time = line.parse().ok().filter(|seconds: &f64| *seconds >= 0.0 && seconds.is_finite());
        let time = time.map(|seconds| Time::ZERO + Span::from_secs_f64(seconds));
        match time {
            Some(time) if times.last().is_none_or(|last| *last <= time) => times.push(time),
            _ => {
                let at = format!("{}:{}", path.display(), number + 1);
                return senseless(format!("{at}: not a time in seconds at or after the last one"));
            }
        }
    }
    Ok(Profile::Times(times))
}

fn client(written: &WrittenClient) -> Result<Client, ScenarioError> {
    let pause_after_timeout =
        written.pause_after_timeout.as_deref().map_or(Ok(Span::ZERO), span)?;
    if written.think == Law::Never || written.pause_after_refusal == Some(Law::Never) {
        return senseless("a client that thinks for ever makes no load: think and pauses must end");
    }
    Ok(Client {
        think: written.think,
        patience: written.patience,
        waits_for: written.waits_for,
        retries: written.retries,
        retries_after_refusal: written.retries_after_refusal.unwrap_or(written.retries),
        pause_after_timeout,
        pause_after_refusal: written.pause_after_refusal.unwrap_or(Law::Constant(Span::ZERO)),
        abandon: written.abandon,
    })
}

fn length(run: &Run) -> Result<Length, ScenarioError> {
    match (&run.duration, run.orders) {
        (Some(text), None) => match span(text)? {
            Span::ZERO => senseless("run.duration must be above 0"),
            duration => Ok(Length::Duration(duration)),
        },
        (None, Some(orders)) if orders > 0 => Ok(Length::Orders(orders)),
        _ => senseless("run needs either `duration` or `orders` (above 0)"),
    }
}

fn choice(written: WrittenPolicy) -> PolicyChoice {
    let text = |value: toml::Value| match value {
        toml::Value::String(text) => text,
        other => other.to_string(),
    };
    PolicyChoice {
        label: written.label.unwrap_or_else(|| written.name.clone()),
        parameters: written.parameters.into_iter().map(|(k, v)| (k, text(v))).collect(),
        name: written.name,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const SMALL: &str = r#"
        name = "small"
        [servers]
        workers = 2
        [[class]]
        name = "main"
        request = "GET /"
        tier = "browse"
        utility = 1
        service = { mean = "100ms", shape = "exponential" }
        next = { main = 0.5, buy = 0.1 }
        [[class]]
        name = "buy"
        request = "POST /buy"
        tier = "transact"
        utility = 100
        after = ["main"]
        service = { mean = "50ms", shape = "constant" }
        [session]
        start = "main"
        order = "buy"
        [arrivals]
        shape = "poisson"
        [client]
        think = { mean = "1s", shape = "exponential" }
        patience = { shape = "none" }
        retries = 2
        [run]
        rho = [1.5]
        duration = "10s"
    "#;

    pub(crate) fn small() -> Scenario {
        Scenario::parse(SMALL, Path::new(".")).expect("the small scenario is well-formed")
    }

    fn refused(from: &str, to: &str) -> String {
        assert!(SMALL.contains(from), "{from:?} is not in the small scenario");
        let text = SMALL.replacen(from, to, 1);
        Scenario::parse(&text, Path::new(".")).expect_err("this file makes no sense").to_string()
    }

    #[test]
    fn work_per_session_follows_the_graph() {
        // Two visits to main (a geometric loop of ½), 0.2 to buy: 2·100 ms + 0.2·50 ms.
        let unit = small().unit_rate().get();
        assert!((unit - 2.0 / 0.210).abs() < 1e-6, "{unit}");
    }

    #[test]
    fn mistakes_are_named() {
        assert!(refused("retries = 2", "retires = 2").contains("unknown field `retires`"));
        assert!(refused("start = \"main\"", "start = \"home\"").contains("`home`"));
        assert!(refused("main = 0.5", "main = 0.95").contains("sum to at most 1"));
        assert!(refused("buy = 0.1", "main = 1.0").contains("duplicate key"));
        assert!(refused("main = 0.5, buy = 0.1", "main = 1").contains("never end"));
        assert!(refused("\"10s\"", "\"10\"").contains("number and a unit"));
        assert!(refused("duration = \"10s\"", "").contains("either `duration` or `orders`"));
        assert!(refused("workers = 2", "workers = 0").contains("servers.workers"));
        assert!(refused("rho = [1.5]", "rho = [nan]").contains("run.rho"));
        assert!(refused("utility = 100", "utility = -1").contains("utility of `buy`"));
        let step = "shape = \"step\"\n base = nan\n at = \"1s\"";
        assert!(refused("shape = \"poisson\"", step).contains("arrivals.base"));
        assert!(refused("\"exponential\"", "\"exponentail\"").contains("exponentail"));
    }

    #[test]
    fn a_run_for_orders_is_as_long_as_an_ideal_policy_needs() {
        let text = SMALL.replace("duration = \"10s\"", "orders = 100");
        let scenario = Scenario::parse(&text, Path::new(".")).unwrap();
        let rate = scenario.unit_rate().get() * 0.2;
        assert!((scenario.duration(5.0).as_secs_f64() - 100.0 / rate).abs() < 1e-3);
        assert!((scenario.duration(0.5).as_secs_f64() - 200.0 / rate).abs() < 1e-3);
    }
}
