//! Compares throughput as a function of the concurrency limit with known formulas, and checks
//! concurrency limits while the servers change.

use std::path::Path;

use bywash_scenario::file::Length;
use bywash_scenario::{Departures, PartChoice, Scenario};
use bywash_sim::{Phase, Trace, Traced, phases, trace};
use bywash_units::{Time, TimeSpan};

const STEP: TimeSpan = TimeSpan::from_millis(100);

fn scenario(name: &str) -> Scenario {
    let path = format!("../../scenarios/limits-{name}.toml");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut scenario = Scenario::read(&path).expect("the scenario is well-formed");
    scenario.seeds = 3;
    scenario
}

fn only(scenario: &Scenario, label: &str) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.policies.retain(|policy| policy.label == label);
    assert_eq!(scenario.policies.len(), 1, "the scenario lists {label}");
    scenario
}

fn runs(scenario: &Scenario) -> Vec<Traced> {
    trace(scenario, Trace { every: STEP, worths: false, arrivals: false }, &|_, _| ())
        .expect("the scenario can be simulated")
}

/// Returns the means over the seeds of two values, for each phase. The values are the lost share of
/// capacity, and the number of requests that wait inside the application for each worker.
fn means(scenario: &Scenario, label: &str) -> Vec<(f64, f64)> {
    let scenario = only(scenario, label);
    let seeds: Vec<Vec<Phase>> =
        runs(&scenario).iter().map(|run| phases(&scenario, &run.output.trace)).collect();
    let mean = |phase: usize, of: fn(&Phase) -> f64| {
        seeds.iter().map(|phases| of(&phases[phase])).sum::<f64>() / seeds.len() as f64
    };
    let phase = |i| (mean(i, |phase| phase.lost), mean(i, |phase| phase.inside));
    (0..seeds[0].len()).map(phase).collect()
}

/// Returns the fraction of the workers' capacity that is used with a fixed limit of `slots` when
/// the queue is full.
fn used(scenario: &Scenario, slots: u32) -> f64 {
    let mut scenario = only(scenario, "fixed 64");
    scenario.length = Length::Duration(TimeSpan::from_secs(60));
    scenario.seeds = 1;
    scenario.policies[0].concurrency = Some(PartChoice {
        name: "fixed".into(),
        parameters: [("slots".into(), slots.to_string())].into(),
    });
    let run = &runs(&scenario)[0];
    let late = &run.output.trace[50..];
    let work: f64 = late.iter().map(|sample| sample.work.as_secs_f64()).sum();
    work / late.iter().map(|sample| sample.capacity.as_secs_f64()).sum::<f64>()
}

/// Checks a formula for a permanently full queue, which keeps as many requests inside the
/// application as there are slots. With L slots, k workers and the mean service time b, the
/// throughput X(L) satisfies X(L)·b = min(L, k), whatever the service distribution and the
/// discipline.
#[test]
fn throughput_rises_with_the_limit_up_to_the_workers_and_no_further() {
    let scenario = scenario("start");
    for slots in [1, 4, 15, 16, 17, 64] {
        let exact = f64::from(slots).min(16.0) / 16.0;
        let used = used(&scenario, slots);
        assert!((used - exact).abs() < 1e-6, "{slots} slots: {used} of {exact}");
    }
}

/// Checks a formula for requests that slow each other down. If each request beyond the k workers
/// costs a fraction c of the speed, the throughput X(L) with L slots satisfies X(L)·b = k/(1 + c(L
/// − k)), where b is the mean service time.
#[test]
fn throughput_falls_beyond_the_workers_where_requests_contend() {
    let scenario = scenario("contention");
    for slots in [8, 16, 26, 66] {
        let over = f64::from(slots) - 16.0;
        let exact = f64::from(slots).min(16.0) / 16.0 / (1.0 + 0.02 * over.max(0.0));
        let used = used(&scenario, slots);
        assert!((used - exact).abs() < 1e-6, "{slots} slots: {used} of {exact}");
    }
}

#[test]
fn whether_requests_share_the_workers_or_queue_for_them_is_all_one_below_the_limit() {
    let fifo = only(&scenario("start"), "fixed 4");
    let mut shared = fifo.clone();
    shared.servers.discipline = bywash_scenario::Discipline::Shared;
    let [fifo, shared] = [fifo, shared].map(|scenario| format!("{:?}", runs(&scenario)));
    assert_eq!(fifo, shared);
}

#[test]
fn the_workers_are_the_limit_of_a_scenario_that_names_none() {
    let silent = only(&scenario("capacity"), "fixed-right");
    let mut stated = silent.clone();
    stated.servers.limit = Some(16);
    let mut wrong = silent.clone();
    wrong.servers.limit = Some(32);
    let [silent, stated, wrong] =
        [silent, stated, wrong].map(|scenario| format!("{:?}", runs(&scenario)));
    assert_eq!(silent, stated);
    assert_ne!(silent, wrong);
}

#[test]
fn slope_loses_little_and_lets_few_inside_whatever_changes() {
    for name in ["capacity", "mix", "drift"] {
        for (phase, (lost, inside)) in means(&scenario(name), "slope").into_iter().enumerate() {
            assert!(lost < 0.08, "{name}, phase {phase}: {lost} of the capacity is lost");
            assert!(inside < 0.6, "{name}, phase {phase}: {inside} wait inside for each worker");
        }
    }
}

#[test]
fn slope_comes_from_far_off_to_the_workers() {
    for (name, lost) in [("start", 0.08), ("contention", 0.14)] {
        for label in ["slope 4", "slope 64"] {
            let all = means(&scenario(name), label);
            assert!(all[0].0 < lost && all[0].1 < 0.4, "{name}, {label}: {all:?}");
        }
    }
}

#[test]
fn slope_comes_down_where_clients_leave_before_the_application_answers() {
    for application in [Departures::Unnoticed, Departures::Noticed] {
        let mut scenario = scenario("departures");
        let minute = Time::ZERO + TimeSpan::from_secs(60);
        scenario.servers.departures = application;
        scenario.policies.iter_mut().for_each(|policy| policy.departures = application);
        for label in ["slope 16", "slope 64"] {
            for run in runs(&only(&scenario, label)) {
                let late: Vec<_> = run.output.trace.iter().filter(|at| at.at > minute).collect();
                let mean =
                    late.iter().map(|at| f64::from(at.slots)).sum::<f64>() / late.len() as f64;
                assert!((3.5..=8.0).contains(&mean), "{application:?}, {label}: {mean} slots");
            }
        }
    }
}

/// Checks a weakness of the policy `vegas`: it mistakes requests with more work for a queue. The
/// policy `slope` compares latencies within a class, and does not have this weakness.
#[test]
fn vegas_takes_heavier_pages_for_a_queue_and_slope_does_not() {
    let scenario = scenario("mix");
    let [vegas, slope] = ["vegas", "slope"].map(|label| means(&scenario, label)[1].0);
    assert!(vegas > 0.3 && slope < 0.08, "lost: {vegas} and {slope}");
}
