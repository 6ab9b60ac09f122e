//! Tests that stopping long requests has a benefit in overload, and has no cost where it cannot
//! have a benefit.

use std::path::Path;

use bywash_scenario::{Distribution, ResultRow, Scenario};
use bywash_units::TimeSpan;

fn scenario(long: f64) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/long-requests.toml");
    let text = Scenario::text(&path).expect("the scenario is there");
    let text = text.replace("share = 0.95", &format!("share = {}", 1.0 - long));
    let text = text.replace("share = 0.05", &format!("share = {long}"));
    let mut scenario = Scenario::parse(&text, Path::new(".")).expect("the scenario is well-formed");
    // Fifty requests arrive per second, whatever their service time is.
    scenario.rho = vec![50.0 / scenario.unit_rate().get()];
    scenario.length = bywash_scenario::file::Length::Duration(TimeSpan::from_secs(600));
    scenario.seeds = 3;
    scenario
}

/// Returns the share of requests that are answered, for each termination policy.
fn answered(scenario: &Scenario) -> [f64; 3] {
    let cells = bywash_sim::run(scenario, &|_, _| ()).expect("it can be simulated").0.cells;
    let of = |label: &str| {
        let cell: &ResultRow =
            cells.iter().find(|cell| cell.policy == label).expect("it is listed");
        cell.completed as f64 / cell.generated as f64
    };
    ["AC", "SERT", "marginal"].map(of)
}

/// Returns the highest share of requests that can be answered with any threshold for stopping. The
/// share at a threshold is the lesser of two values: the share of requests that end before the
/// threshold, and the capacity of two workers if every other request is stopped at the threshold.
fn bound(long: f64) -> f64 {
    let tail = |t: f64| {
        (t.max(0.5).powf(-1.1) - 8_f64.powf(-1.1)) / (0.5_f64.powf(-1.1) - 8_f64.powf(-1.1))
    };
    let left = |t: f64| (1.0 - long) * (-t / 0.015).exp() + long * tail(t).max(0.0);
    let (mut seconds, mut best) = (0.0, 0.0_f64);
    for step in 0..80_000 {
        let t = f64::from(step) * 1e-4;
        seconds += left(t) * 1e-4;
        let done = 1.0 - left(t);
        best = best.max(done.min(2.0 * done / seconds / 50.0));
    }
    best
}

#[test]
fn nearly_all_is_answered_that_any_threshold_could_and_never_less_than_by_the_seeds() {
    for long in [0.02, 0.05, 0.10] {
        let [ac, sert, marginal] = answered(&scenario(long));
        let bound = bound(long);
        assert!(marginal > 0.95 * bound, "{long}: {marginal} of {bound}");
        assert!(marginal > sert && sert > ac, "{long}: {marginal}, {sert}, {ac}");
    }
}

#[test]
fn where_service_has_no_memory_or_is_always_the_same_nobody_gains_and_nobody_loses() {
    for distribution in [Distribution::Exponential, Distribution::Constant] {
        let mut scenario = scenario(0.05);
        scenario.classes[0].service = distribution(TimeSpan::from_millis(100)).into();
        for rho in [0.9, 1.5, 5.0] {
            scenario.rho = vec![rho];
            let [ac, _, marginal] = answered(&scenario);
            assert!(
                (marginal / ac - 1.0).abs() < 0.01,
                "{distribution:?} {rho}: {marginal} beside {ac}"
            );
        }
    }
}

#[test]
fn while_nearly_all_can_be_served_hardly_anybody_is_stopped() {
    let mut scenario = scenario(0.02);
    scenario.seeds = 6;
    for (rho, within) in [(0.1, 0.0005), (0.3, 0.001), (0.5, 0.0)] {
        scenario.rho = vec![rho];
        let [ac, _, marginal] = answered(&scenario);
        assert!(marginal > ac - within, "ρ {rho}: {marginal} beside {ac}");
    }
}

/// Checks the case in which the queue never fills and clients leave. Requests are then lost because
/// of time, and not because the queue has no place.
#[test]
fn requests_that_are_lost_by_time_are_saved_as_those_that_are_lost_by_places() {
    let path = "../../scenarios/long-requests-patience.toml";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = Scenario::text(&path).expect("the scenario is there");
    let mut scenario = Scenario::parse(&text, Path::new(".")).expect("the scenario is well-formed");
    scenario.length = bywash_scenario::file::Length::Duration(TimeSpan::from_secs(600));
    let gain = |scenario: &Scenario| {
        let [ac, sert, marginal] = answered(scenario);
        marginal / ac.max(sert)
    };
    for (rho, least) in [(0.5, 1.0), (1.0, 1.04), (2.14, 1.5), (4.0, 2.5)] {
        scenario.rho = vec![rho];
        let gain = gain(&scenario);
        assert!(gain > least, "ρ {rho}: {gain}");
    }
    scenario.classes[0].service = (Distribution::Exponential)(TimeSpan::from_millis(100)).into();
    for rho in [0.9, 1.5, 5.0] {
        scenario.rho = vec![rho];
        let gain = gain(&scenario);
        assert!((gain - 1.0).abs() < 0.01, "ρ {rho}: {gain}");
    }
}
