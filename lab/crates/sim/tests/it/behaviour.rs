//! Invariants of every run, whatever the policy.

use std::path::Path;

use bywash_engine::catalog::{self, LimitPolicy, TerminationSettings};
use bywash_engine::limit::{Ended, Limit, Load};
use bywash_scenario::{
    Closes, Departures, Distribution, Mode, PartChoice, PolicyChoice, PrincipalKind, ResultRow,
    RunResult, Scenario,
};
use bywash_sim::{Case, peers, play};
use bywash_units::{Time, TimeSpan};

fn paper_1(rho: f64, closes: Closes, minutes: u64) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../papers/1-lifo-pri/scenarios/paper-1.toml");
    let mut scenario = Scenario::read(&path).expect("the seed's scenario is well-formed");
    scenario.rho = vec![rho];
    scenario.closes = vec![closes];
    scenario.seeds = 2;
    let span = TimeSpan::from_secs(minutes * 60);
    scenario.length = bywash_scenario::file::Length::Duration(span);
    scenario
}

fn run(scenario: &Scenario) -> RunResult {
    bywash_sim::run(scenario, &|_, _| ()).expect("the scenario can be simulated").0
}

fn cell<'a>(result: &'a RunResult, policy: &str) -> &'a ResultRow {
    result.cells.iter().find(|cell| cell.policy == policy).expect("the scenario lists it")
}

#[test]
fn every_request_ends_exactly_once_under_every_policy_and_peer() {
    for closes in [Closes::Visible, Closes::Hidden] {
        let mut scenario = paper_1(2.0, closes, 20);
        let choice = |policy: &catalog::Policy| PolicyChoice {
            concurrency: (policy.name == "envoy-adaptive").then(envoy_gradient),
            principal: PrincipalKind::Address,
            ..PolicyChoice::of(policy.name, [].into())
        };
        let policies = catalog::POLICIES.iter().chain(&peers::POLICIES);
        scenario.policies = policies.map(choice).collect();
        scenario.max_wait = Some(TimeSpan::from_secs(30));
        for cell in run(&scenario).cells {
            let failed = cell.failed + cell.terminated;
            let ended = cell.completed + cell.timed_out + cell.dropped + failed;
            assert_eq!(cell.generated, ended, "{} with {} closes", cell.policy, cell.closes);
            let worked = cell.useful_work + cell.wasted_work.unwrap_or(0.0);
            assert!(worked < 1.02, "{}: {worked} of capacity was worked", cell.policy);
        }
    }
}

fn envoy_gradient() -> PartChoice {
    PartChoice { name: "envoy-gradient".into(), parameters: [].into() }
}

/// Checks that a peer's concurrency limit can be used by its name. The peer has no queue and one
/// worker, so it admits a second request only if its limit grows above one.
#[test]
fn the_limit_of_a_peer_is_found_by_name_and_grows_beyond_the_workers() {
    let mut scenario = paper_1(1.4, Closes::Visible, 60);
    let choice = |label: &str, concurrency| PolicyChoice {
        label: label.into(),
        concurrency,
        ..PolicyChoice::of("envoy-adaptive", [].into())
    };
    scenario.policies = vec![choice("without", None), choice("with", Some(envoy_gradient()))];
    let result = run(&scenario);
    let useful = ["without", "with"].map(|policy| cell(&result, policy).useful_work);
    assert!(useful[0] < 0.7 && useful[1] > 0.8, "{useful:?}");
    scenario.policies[1].concurrency =
        Some(PartChoice { name: "gradient".into(), ..envoy_gradient() });
    let error = bywash_sim::run(&scenario, &|_, _| ()).expect_err("there is none of that name");
    let text = error.to_string();
    assert!(text.contains("vegas") && text.contains("the peers' are envoy-gradient"), "{text}");
    let numbers = [("initial", "3"), ("max", "2")].map(|(name, text)| (name.into(), text.into()));
    let limit = PartChoice { name: "slope".into(), parameters: numbers.into() };
    scenario.policies[1].concurrency = Some(limit);
    let error = bywash_sim::run(&scenario, &|_, _| ()).expect_err("3 is above 2");
    assert!(error.to_string().contains("`initial` 3 is not between 1 and 2"), "{error}");
}

#[test]
fn a_peer_never_has_the_name_of_a_policy_of_the_product() {
    let peers: Vec<&str> = peers::POLICIES.iter().map(|policy| policy.name).collect();
    for (number, name) in peers.iter().enumerate() {
        assert!(catalog::find(name).is_none(), "{name} is in the catalogue");
        assert!(!peers[..number].contains(name), "{name} stands twice");
    }
}

#[test]
fn an_unknown_policy_is_told_the_names_of_policies_and_peers() {
    let mut scenario = paper_1(1.0, Closes::Visible, 1);
    scenario.policies[0].name = "haproxy".into();
    let error = bywash_sim::run(&scenario, &|_, _| ()).expect_err("there is none of that name");
    let text = error.to_string();
    assert!(text.contains("`haproxy`; did you mean `haproxy-expert`?"), "{text}");
    assert!(text.contains("the names are session-first, value-index, lifo-pri"), "{text}");
    assert!(text.contains("and the peers' are haproxy-expert, haproxy-ordinary"), "{text}");
    scenario.policies[1].parameters.insert("places".into(), "7".into());
    let error = bywash_sim::run(&scenario, &|_, _| ()).expect_err("two policies are wrong");
    let text = error.to_string();
    assert!(text.contains("`haproxy`") && text.contains("no parameter `places`"), "{text}");
}

#[test]
fn the_same_seed_gives_the_same_run_to_the_last_digit() {
    let scenario = paper_1(1.4, Closes::Hidden, 10);
    let twice = [run(&scenario), run(&scenario)].map(|result| format!("{result:?}"));
    assert_eq!(twice[0], twice[1]);
}

/// Checks scenarios with more runs than fit into one batch.
#[test]
fn many_scenarios_at_once_give_what_each_gives_alone() {
    let scenarios: Vec<Scenario> =
        (1..=40_u32).map(|i| paper_1(f64::from(i) / 10.0, Closes::Hidden, 1)).collect();
    let last = std::sync::Mutex::new((0, 0));
    let progress = |done: usize, all: usize| {
        let mut last = last.lock().unwrap();
        *last = (last.0.max(done), all);
    };
    let (results, _) = bywash_sim::run_all(&scenarios, &progress).unwrap();
    let runs = scenarios.iter().map(bywash_sim::runs).sum();
    assert!(runs > 256, "{runs}");
    assert_eq!(*last.lock().unwrap(), (runs, runs));
    for (scenario, result) in scenarios.iter().zip(&results) {
        assert_eq!(format!("{result:?}"), format!("{:?}", run(scenario)));
    }
    assert_eq!(results.len(), scenarios.len());
}

/// A concurrency policy with one slot that asks for a timer after each dispatch.
#[derive(Debug, Default)]
struct Restless(Option<Time>);

static RESTLESS: LimitPolicy = LimitPolicy {
    name: "restless",
    source: "this test",
    about: "",
    parameters: &[],
    build: |_| Box::new(Restless::default()),
};

impl Limit for Restless {
    fn slots(&self) -> u32 {
        1
    }

    fn dispatched(&mut self, now: Time, _: Load) {
        self.0 = Some(now + TimeSpan::from_millis(10));
    }

    fn ended(&mut self, _: Time, _: Load, _: Ended) {}

    fn next_timer(&self) -> Option<Time> {
        self.0
    }

    fn on_timer(&mut self, now: Time) {
        self.0 = self.0.filter(|at| *at > now);
    }
}

/// Checks that a replaced timer does not schedule another timer. Otherwise the number of events
/// would grow with time.
#[test]
fn events_are_as_many_as_requests_however_long_the_run() {
    let each = |minutes| {
        let mut scenario = paper_1(2.0, Closes::Visible, minutes);
        scenario.max_wait = Some(TimeSpan::from_secs(20));
        let settings = catalog::find("single-queue").unwrap().settings([]).unwrap();
        let limit = RESTLESS.settings([]).unwrap();
        let (settings, limit, principal) = (&settings, &limit, PrincipalKind::Session);
        let (scenario, closes) = (&scenario, Closes::Visible);
        let (termination, rho) = (&TerminationSettings::default(), 2.0);
        let out = play(Case {
            scenario,
            settings,
            limit,
            termination,
            throttles: &[],
            principal,
            departures: Departures::Noticed,
            mode: Mode::Enforce,
            rho,
            closes,
            seed: 1,
            trace: None,
        });
        out.events as f64 / out.started as f64
    };
    let (short, long) = (each(5), each(30));
    assert!(long < 1.2 * short, "events for each request: {short}, then {long}");
}

#[test]
fn every_policy_faces_the_same_visitors() {
    let result = run(&paper_1(5.0, Closes::Visible, 10));
    let planned: Vec<u64> = result.cells.iter().map(|cell| cell.orders_planned).collect();
    assert!(planned.windows(2).all(|pair| pair[0] == pair[1]), "{planned:?}");
}

/// Compares the policies with paper 1, «Overall Throughput Data» at ρ = 1.4. The paper has 29.9 %
/// completed requests (SQ), 36.6 % (8Q-AF) and 57.5 % (LIFO-Pri), and 8, 15 and 50 confirmed orders
/// [paper 1.5] [paper 1.6]. `bywash lab paper 1` compares the whole table.
#[test]
fn at_1_4_the_policies_of_the_seed_stand_in_its_order_by_orders() {
    let result = run(&paper_1(1.4, Closes::Hidden, 240));
    let orders = ["SQ", "8Q-AF", "8Q-LIFO-Pri"].map(|policy| cell(&result, policy).orders);
    assert!(orders[0] < orders[1] && orders[1] < orders[2], "{orders:?}");
    assert!(orders[2] >= 5 * orders[0], "the seed's six- to sevenfold increase: {orders:?}");
}

#[test]
fn session_first_has_more_revenue_than_lifo_pri_when_most_visitors_cannot_be_served() {
    let result = run(&paper_1(5.0, Closes::Visible, 240));
    let share = |policy| cell(&result, policy).revenue_share;
    assert!(share("session-first") > share("8Q-LIFO-Pri"), "{:?}", result.cells);
}

#[test]
fn below_capacity_nearly_everything_is_served_and_nothing_refused() {
    let result = run(&paper_1(0.5, Closes::Visible, 60));
    let cell = cell(&result, "session-first");
    assert_eq!(cell.dropped, 0);
    assert!(cell.useful_work > 0.99, "{}", cell.useful_work);
}

/// Runs bywash's policy and a peer. Their visitors retry immediately, or after `Retry-After`, as
/// `change` sets.
fn storm(change: impl FnOnce(&mut Scenario)) -> RunResult {
    let mut scenario = paper_1(2.0, Closes::Visible, 5);
    let policy = |label: &str, name: &str, retries: &[(&str, &str)]| PolicyChoice {
        label: label.into(),
        ..PolicyChoice::of(
            name,
            retries.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        )
    };
    scenario.policies = vec![
        policy("declared", "session-first", &[]),
        policy("none", "session-first", &[("retries", "none")]),
        policy("ordinary", "haproxy-ordinary", &[]),
        policy("expert", "haproxy-expert", &[]),
    ];
    scenario.client.retries = 1000;
    scenario.client.retries_after_refusal = 1000;
    scenario.client.pause_after_refusal = Distribution::Constant(TimeSpan::from_millis(100));
    change(&mut scenario);
    run(&scenario)
}

#[test]
fn who_keeps_retry_after_comes_less_often_where_there_is_one() {
    let [hasty, patient] = [false, true].map(|keeps| {
        let result = storm(|scenario| scenario.client.obeys_retry_after = keeps);
        ["declared", "expert", "ordinary"].map(|policy| cell(&result, policy).generated)
    });
    assert!(2 * patient[0] < hasty[0], "{patient:?} and {hasty:?}");
    assert!(2 * patient[1] < hasty[1], "{patient:?} and {hasty:?}");
    assert_eq!(patient[2], hasty[2], "HAProxy in ordinary hands asks for nothing");
}

#[test]
fn only_a_repetition_that_says_so_is_treated_as_one() {
    for declares in [false, true] {
        let result = storm(|scenario| scenario.client.declares_retries = declares);
        let [declared, none] = ["declared", "none"].map(|policy| cell(&result, policy).completed);
        assert_eq!(declared == none, !declares, "{declared}, {none}");
    }
}

/// Checks a slot that is held although the client of its request has left, with an application that
/// works on to the end. If the gateway frees the slot immediately, more requests are in the
/// application than the limit allows.
#[test]
fn a_slot_that_is_held_until_the_application_is_done_serves_more_where_departures_go_unnoticed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/departed.toml");
    let mut scenario = Scenario::read(&path).expect("the scenario is well-formed");
    scenario.rho = vec![2.5];
    scenario.length = bywash_scenario::file::Length::Duration(TimeSpan::from_secs(300));
    let completed = |scenario: &Scenario| {
        let result = run(scenario);
        ["free at once", "held"].map(|policy| cell(&result, policy).completed as f64)
    };
    let [free, held] = completed(&scenario);
    assert!(held > 1.15 * free, "{held} beside {free}");
    scenario.servers.departures = Departures::Noticed;
    let [free, held] = completed(&scenario);
    assert!((held / free - 1.0).abs() < 1e-9, "{held} beside {free}");
}
