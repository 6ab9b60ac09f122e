//! A scenario: what a file says, resolved (class names are indices, spans are spans) and consistent.
//!
//! How it is written is the private business of `written` and `base`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use bywash_units::{Rate, Span, Time, Utility};
use serde::{Deserialize, Serialize};

use crate::adversary::Adversary;
use crate::arrivals::Profile;
use crate::graph::Graph;
use crate::law::Law;
use crate::lines::Lines;
use crate::servers::Servers;
use crate::signal::Signal;
use crate::source::Source;
use crate::{base, written};

/// A load, ready to be played.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, as in the file.
    pub name: String,
    /// One line: what it is and where it comes from.
    pub about: String,
    /// Requests that the servers run at once.
    pub workers: u32,
    /// What else is known of the servers.
    pub servers: Servers,
    /// How long a request may wait for a worker; `None` for as long as its client does.
    pub max_wait: Option<Span>,
    /// Kinds of request, in the order of the file.
    pub classes: Vec<Class>,
    /// What sessions do.
    pub graph: Graph,
    /// From when sessions start at another class than the graph says, in the order of time.
    pub starts: Vec<(Span, usize)>,
    /// How load goes over time.
    pub profile: Profile,
    /// Where visitors come from.
    pub source: Source,
    /// The levels of ρ to run, one cell each.
    pub rho: Vec<f64>,
    /// How clients behave.
    pub client: Client,
    /// What some visitors show from their first request on, in the order of the file.
    pub signals: Vec<Signal>,
    /// Whether the server side can see a client leave; one cell each.
    pub closes: Vec<Closes>,
    /// Who means harm. Only the simulator can play them.
    pub adversaries: Vec<Adversary>,
    /// The policies to run, one cell each.
    pub policies: Vec<PolicyChoice>,
    /// Seeds to run and to average over.
    pub seeds: u32,
    /// The first of them; the others follow it.
    pub first_seed: u64,
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
    /// What an answer brings, if it is an order.
    pub earns: Utility,
    /// What it is worth, if that is not to be learned.
    pub pinned: Option<Utility>,
    /// How long a client waits for this; as for everything else if not given.
    pub patience: Option<Law>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

impl fmt::Display for Closes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
    /// Whether she waits, before that pause, as long as the refusal asked (`Retry-After`).
    pub keeps_retry_after: bool,
    /// Whether a repetition says that it is one.
    pub declares_retries: bool,
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
    /// What decides how many run at once; `servers.limit` if the file says nothing.
    pub limit: Option<LimitChoice>,
    /// Who answers for a request without a proven session.
    pub charge: Charge,
    /// Where it stands in the file, if there is one.
    pub line: Option<usize>,
}

/// Who answers for a request without a proven session: the gateway's `identify.charge`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Charge {
    /// Nobody: many visitors may share an address.
    #[default]
    Session,
    /// Its address. The simulator's visitors have one each, which is the best case for this.
    Address,
}

/// A limit to run, with the parameters that differ from their defaults.
#[derive(Clone, Debug)]
pub struct LimitChoice {
    /// Name in the catalogue.
    pub name: String,
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
    /// It is based on a scenario that is wrong.
    #[error("in its base {}: {source}", path.display())]
    Base {
        /// The base.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<Self>,
    },
}

impl Scenario {
    /// Reads a scenario file.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        Self::parse(&Self::text(path)?, path.parent().unwrap_or(Path::new(".")))
    }

    /// Reads the text of a scenario file, of a bounded size.
    pub fn text(path: &Path) -> Result<String, ScenarioError> {
        written::read_bounded(path)
    }

    /// Reads a scenario from text; a base and a file of arrival times are looked for in `folder`.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, ScenarioError> {
        written::resolve(base::read(text, folder)?, folder, &Lines::of(text))
    }

    /// The seeds to run.
    pub fn seed_numbers(&self) -> impl Iterator<Item = u64> + use<> {
        (self.first_seed..).take(self.seeds as usize)
    }

    /// Sessions per second that make ρ = 1.
    pub fn unit_rate(&self) -> Rate {
        let work = self.graph.work_per_session(&self.classes).unwrap_or(Span::MAX);
        Rate::per_second(f64::from(self.workers) / work.as_secs_f64())
    }

    /// Sessions that are expected to start in one seed of a run at level `rho`.
    pub fn sessions(&self, rho: f64) -> f64 {
        let duration = self.duration(rho);
        match &self.profile {
            Profile::Times(times) => {
                times.partition_point(|start| *start <= Time::ZERO + duration) as f64
            }
            profile => self.unit_rate().get() * profile.load(rho, duration),
        }
    }

    /// Sessions that start in a second at most; none where they are listed, as nothing is drawn.
    pub fn peak_rate(&self, rho: f64) -> Rate {
        match &self.profile {
            Profile::Times(_) => Rate::per_second(0.0),
            profile => Rate::per_second(self.unit_rate().get() * profile.peak(rho)),
        }
    }

    /// The class at which a session that starts at `now` starts.
    pub fn start_at(&self, now: Time) -> usize {
        let begun = self.starts.iter().rev().find(|(at, _)| Time::ZERO + *at <= now);
        begun.map_or(self.graph.start, |(_, class)| *class)
    }

    /// Whether servers or sessions change on the way, which only the simulator can play.
    pub fn changes(&self) -> bool {
        !self.servers.changes.is_empty() || !self.starts.is_empty()
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const SMALL: &str = r#"
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
    fn all_mistakes_are_told_at_once() {
        let mut text = SMALL
            .replace("main = 0.5", "main = 0.95")
            .replace("start = \"main\"", "start = \"home\"");
        text = text
            .replace("duration = \"10s\"", "duration = \"0s\"")
            .replace("workers = 2", "workers = 0");
        let error = Scenario::parse(&text, Path::new(".")).unwrap_err().to_string();
        for words in
            ["sum to at most 1", "`home`", "run.duration must be above 0", "servers.workers takes"]
        {
            assert!(error.contains(words), "{words}: {error}");
        }
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
        assert!(refused("rho = [1.5]", "rho = [1]\n seeds = 4000000000").contains("run.seeds"));
        assert!(refused("rho = [1.5]", "rho = [1]\n seeds = 0").contains("run.seeds"));
        assert!(refused("utility = 100", "utility = -1").contains("utility of `buy`"));
        let step = "shape = \"step\"\n base = nan\n at = \"1s\"";
        assert!(refused("shape = \"poisson\"", step).contains("arrivals.base"));
        assert!(refused("\"exponential\"", "\"exponentail\"").contains("exponentail"));
    }

    #[test]
    fn one_mistake_hides_no_other() {
        let text = SMALL
            .replace("main = 0.5, buy = 0.1", "hom = 0.9, byu = 0.8")
            .replace("retries = 2", "pause_after_timeout = \"5 parsecs\"")
            .replace("shape = \"poisson\"", "shape = \"step\"\nbase = -1\nat = \"soon\"");
        let change = "[[servers.change]]\nat = \"2s\"\nworkers = 1\n[[servers.change]]\nat = \"1s\"\nspeed = 2";
        let class = text.find("[[class]]").map(|at| text[at..].to_owned()).unwrap();
        let twice = class.find("[session]").map(|end| class[..end].to_owned()).unwrap();
        let text = text.replace("[session]", &format!("{twice}\n[session]")) + "\n" + change;
        let error =
            Scenario::parse(&text, Path::new(".")).expect_err("nothing is right").to_string();
        for words in [
            "class `main` stands twice",
            "`hom`",
            "`byu`",
            "sum to at most 1",
            "5 parsecs",
            "`soon` is not a span",
            "in the order of time",
        ] {
            assert!(error.contains(words), "{words:?} is not in {error}");
        }
        for line in error.lines() {
            assert!(line.starts_with("line "), "{line}");
        }
    }

    #[test]
    fn a_mistake_of_the_base_has_no_line_in_the_file_on_top() {
        let lines = Lines::of("name = 'over'\n[run]\nseeds = 4\n");
        let file = toml::from_str(&SMALL.replace("duration = \"10s\"", "orders = 0")).unwrap();
        let error =
            written::resolve(file, Path::new("."), &lines).expect_err("no orders").to_string();
        assert!(error.starts_with("line 2: run needs"), "{error}");
        let file = toml::from_str(&SMALL.replace("workers = 2", "workers = 0")).unwrap();
        let error =
            written::resolve(file, Path::new("."), &lines).expect_err("no workers").to_string();
        assert!(error.starts_with("servers.workers takes"), "{error}");
    }

    #[test]
    fn so_many_changes_that_nobody_can_read_them_are_refused_at_once() {
        let change = "\n[[servers.change]]\nat = \"1s\"\nworkers = 1";
        let text = SMALL.to_owned() + &change.repeat(20_000);
        let error = Scenario::parse(&text, Path::new(".")).expect_err("too many").to_string();
        assert!(error.contains("servers.change stands there more often"), "{error}");
    }

    #[test]
    fn mistakes_in_what_changes_are_named() {
        let change = |text: &str| refused("[run]", &format!("[[servers.change]]\n{text}\n[run]"));
        assert!(change("at = \"1s\"").contains("servers.change takes one of"));
        assert!(change("at = \"1s\"\nworkers = 1\nspeed = 2").contains("takes one of"));
        assert!(change("at = \"1s\"\nspeed = 0").contains("takes one of"));
        assert!(change("at = \"1s\"\nclass = \"home\"\nservice = 2").contains("`home`"));
        assert!(change("at = \"1\"\nworkers = 1").contains("number and a unit"));
        let two = "at = \"2s\"\nworkers = 1\n[[servers.change]]\nat = \"1s\"\nspeed = 2";
        assert!(change(two).contains("in the order of time"));
        assert!(refused("workers = 2", "workers = 2\nlimit = 0").contains("servers.limit"));
        assert!(refused("workers = 2", "workers = 2\ncontention = -1").contains("contention"));
        let start = "[[session.change]]\nat = \"1s\"\nstart = \"home\"\n[run]";
        assert!(refused("[run]", start).contains("`home`"));
    }

    #[test]
    fn sessions_start_where_the_last_change_says() {
        let change = "[[session.change]]\nat = \"5s\"\nstart = \"buy\"\n[run]";
        let scenario = Scenario::parse(&SMALL.replace("[run]", change), Path::new(".")).unwrap();
        let at = |seconds| scenario.start_at(Time::ZERO + Span::from_secs(seconds));
        assert_eq!([at(0), at(4), at(5), at(60)], [0, 0, 1, 1]);
    }

    #[test]
    fn a_policy_may_have_a_limit_of_its_own() {
        let policy = "[[policy]]\nname = \"x\"\nlimit = { name = \"aimd\", max = 50 }\n";
        let text = format!("{SMALL}\n{policy}");
        let scenario = Scenario::parse(&text, Path::new(".")).unwrap();
        let limit = scenario.policies[0].limit.clone().expect("it was given");
        assert_eq!((limit.name.as_str(), limit.parameters["max"].as_str()), ("aimd", "50"));
        assert!(scenario.policies[0].parameters.is_empty());
    }

    #[test]
    fn a_policy_charges_addresses_only_if_it_is_told_to() {
        let with = |charge: &str| {
            let text = format!("{SMALL}\n[[policy]]\nname = \"x\"\n{charge}");
            Scenario::parse(&text, Path::new(".")).map_err(|error| error.to_string())
        };
        assert_eq!(with("").unwrap().policies[0].charge, Charge::Session);
        let told = with("charge = \"address\"").unwrap();
        assert_eq!(told.policies[0].charge, Charge::Address);
        assert!(told.policies[0].parameters.is_empty());
        assert!(
            with("charge = \"sometimes\"").unwrap_err().contains("unknown variant `sometimes`")
        );
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
