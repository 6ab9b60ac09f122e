//! Tests of mode `observe`: it changes nothing for visitors, and counts one decision for each request.

use std::path::Path;

use bywash_scenario::{
    Closes, Decisions, Departures, Mode, PolicyChoice, Profile, ResultRow, Scenario, Throttle,
};
use bywash_units::TimeSpan;

const CLOSES: [Closes; 3] = [Closes::Visible, Closes::Hidden, Closes::Waiting];

/// Returns the flash crowd with one seed, and with the policy of this mode.
fn crowd(mode: Mode, closes: Closes) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/observe.toml");
    let mut scenario = Scenario::read(&path).expect("the scenario is well-formed");
    scenario.policies.retain(|policy| policy.mode == mode);
    (scenario.closes, scenario.seeds) = (vec![closes], 1);
    scenario
}

fn played(scenario: &Scenario) -> ResultRow {
    let run = bywash_sim::run(scenario, &|_, _| ()).expect("the scenario can be simulated");
    run.0.cells.into_iter().next().expect("the scenario has a policy")
}

fn decisions(row: &ResultRow) -> Decisions {
    row.observed.expect("the policy was observed")
}

/// Compares with a site whose gateway has more slots than there are requests, which therefore run
/// at once.
#[test]
fn an_observed_site_is_to_the_last_digit_the_site_without_a_gateway() {
    for closes in CLOSES {
        for departures in [Departures::Noticed, Departures::Unnoticed] {
            let mut scenario = crowd(Mode::Observe, closes);
            scenario.servers.departures = departures;
            let observed = played(&scenario);
            assert_eq!((observed.dropped, observed.terminated), (0, 0), "closes {closes}");
            let policy = PolicyChoice::of("single-queue", [].into());
            scenario.policies = vec![PolicyChoice { label: observed.policy.clone(), ..policy }];
            scenario.servers.limit = Some(100_000);
            let free = played(&scenario);
            assert!(free.observed.is_none(), "closes {closes}");
            let observed = ResultRow { observed: None, ..observed };
            assert_eq!(format!("{observed:?}"), format!("{free:?}"), "closes {closes}");
        }
    }
}

#[test]
fn each_observed_request_is_counted_by_one_decision() {
    for closes in CLOSES {
        let row = played(&crowd(Mode::Observe, closes));
        let Decisions { run, shed, stop, wait } = decisions(&row);
        assert_eq!(run + shed + stop + wait, row.generated, "closes {closes}");
        assert!(run > 0 && shed > 0, "{:?}", row.observed);
        assert_eq!(stop, 0, "the gateway stops no observed request");
    }
}

#[test]
fn in_the_calm_nearly_all_would_run_and_in_a_crowd_the_counts_are_not_the_outcomes() {
    let mut calm = crowd(Mode::Observe, Closes::Hidden);
    (calm.profile, calm.rho) = (Profile::Poisson, vec![0.3]);
    let row = played(&calm);
    assert!(decisions(&row).run as f64 > 0.95 * row.generated as f64, "{:?}", row.observed);

    let [observed, enforced] =
        [Mode::Observe, Mode::Enforce].map(|mode| played(&crowd(mode, Closes::Hidden)));
    assert!(enforced.observed.is_none() && enforced.dropped > 0, "{enforced:?}");
    assert!(enforced.completed > 2 * observed.completed, "{observed:?}");
    // A slot stays taken in the engine's account until the overloaded site has answered. So the
    // engine would run fewer requests than it runs when it is obeyed.
    assert!(decisions(&observed).run < enforced.completed, "{:?}", observed.observed);
}

#[test]
fn a_throttled_class_is_enforced_in_mode_observe_too() {
    let mut scenario = crowd(Mode::Observe, Closes::Visible);
    scenario.policies[0].throttles = vec![Throttle {
        class: 0,
        max_concurrency: Some(1),
        rate: None,
        queue: 1,
        wait: TimeSpan::from_secs(1),
        delay: TimeSpan::ZERO,
    }];
    let row = played(&scenario);
    let (throttled, others) = row.classes.split_first().expect("the shop has classes");
    assert!(throttled.dropped > 0, "{throttled:?}");
    assert!(others.iter().all(|class| class.dropped == 0), "{others:?}");
    let Decisions { run, shed, stop, wait } = decisions(&row);
    let generated: u64 = others.iter().map(|class| class.generated).sum();
    assert_eq!(run + shed + stop + wait, generated);
}

#[test]
fn a_peer_has_no_mode_observe() {
    let mut scenario = crowd(Mode::Observe, Closes::Visible);
    scenario.policies[0].name = "haproxy-ordinary".into();
    scenario.policies[0].parameters.clear();
    let error = bywash_sim::run(&scenario, &|_, _| ()).expect_err("HAProxy has no such mode");
    let words = "policy `haproxy-ordinary`: only the gateway's own policies have mode `observe`";
    assert!(error.to_string().contains(words), "{error}");
}
