//! Scenarios for the tests, and a function that runs one.

use std::path::Path;

use bywash_load::{Options, Progress, Run, run};
use bywash_scenario::{Profile, ResultRow, Scenario};
use bywash_units::{Time, TimeSpan};

/// A scenario with two requests per session, `GET /` and then `POST /buy`, with 100 ms between
/// them. Clients have infinite patience and two immediate retries.
const TWO_STEPS: &str = r#"
    name = "two steps"
    [servers]
    workers = 1
    [[class]]
    name = "main"
    request = "GET /"
    tier = "browsing"
    utility = 1
    service = { mean = "6ms", shape = "constant" }
    next = { buy = 1.0 }
    [[class]]
    name = "buy"
    request = "POST /buy"
    tier = "transaction"
    utility = 100
    service = { mean = "4ms", shape = "constant" }
    [session]
    start = "main"
    order = "buy"
    [arrivals]
    shape = "poisson"
    [client]
    think = { mean = "100ms", shape = "constant" }
    patience = { shape = "none" }
    retries = 2
    [run]
    rho = [1.0]
    duration = "300ms"
"#;

/// Returns a scenario with about thirty sessions in 300 ms.
pub(crate) fn crowd() -> Scenario {
    Scenario::parse(TWO_STEPS, Path::new(".")).expect("the scenario is well-formed")
}

/// Returns a scenario with one session that starts immediately.
pub(crate) fn alone() -> Scenario {
    Scenario { profile: Profile::Times(vec![Time::ZERO]), ..crowd() }
}

/// Returns `scenario` with clients that have the patience `patience` and make at most `retries`
/// retries.
pub(crate) fn impatient(mut scenario: Scenario, patience: TimeSpan, retries: u32) -> Scenario {
    scenario.client.patience = bywash_scenario::Distribution::Constant(patience);
    scenario.client.retries = retries;
    scenario
}

/// Runs a scenario with these options. Returns the run and its result row.
pub(crate) fn play(scenario: &Scenario, options: &Options) -> (Run, ResultRow) {
    let mut last = Progress::default();
    let run = run(scenario, options, &mut |progress| last = *progress).expect("the site is up");
    let cell = run.result(scenario, options).cells.remove(0);
    assert_eq!(
        cell.generated,
        cell.completed + cell.timed_out + cell.dropped + cell.failed,
        "every request ends once: {cell:?}"
    );
    assert_eq!(last.active, 0, "everybody is gone at the end");
    let told = (last.generated, last.completed, last.timed_out, last.orders);
    let counted = (cell.generated, cell.completed, cell.timed_out, cell.orders);
    assert_eq!(told, counted, "who watches is told what was counted");
    (run, cell)
}

/// Returns options for the site at `url`, with seed 1 and ρ = 1.
pub(crate) fn at(url: &str) -> Options {
    Options::new(url, 1.0, 1)
}
