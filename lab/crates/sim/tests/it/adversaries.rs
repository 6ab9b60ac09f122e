//! Adversaries are counted separately from visitors, and their requests claim the configured
//! session.

use std::path::Path;

use bywash_scenario::file::Length;
use bywash_scenario::{
    Adversary, Change, Claims, Closes, Distribution, Hostile, PrincipalKind, ResultRow, Scenario,
    To,
};
use bywash_units::TimeSpan;

fn scenario(file: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(file);
    let mut scenario = Scenario::read(&path).expect("the scenario is well-formed");
    scenario.rho = vec![0.75];
    scenario.closes = vec![Closes::Visible];
    scenario.seeds = 2;
    scenario.length = Length::Duration(TimeSpan::from_secs(3600));
    scenario
}

fn cell(scenario: &Scenario, policy: &str) -> ResultRow {
    let mut scenario = scenario.clone();
    scenario.policies.retain(|choice| choice.label == policy);
    let run = bywash_sim::run(&scenario, &|_, _| ()).expect("the scenario can be simulated");
    run.0.cells.into_iter().next().expect("the scenario lists the policy")
}

/// Returns a scenario with enough servers that no request waits for another.
fn plenty() -> Scenario {
    let mut scenario = scenario("attack-none.toml");
    scenario.workers = 100;
    scenario.rho = vec![0.3];
    scenario.length = Length::Duration(TimeSpan::from_secs(300));
    scenario
}

fn adversary(rho: f64) -> Adversary {
    Adversary {
        shapes: 1,
        mimics: 0.0,
        mimics_evenly: false,
        mimics_targets: false,
        name: "x".into(),
        rho,
        path: vec![0, 3],
        session: Claims::Own,
        addresses: 3,
        patience: Distribution::Never,
        burst: 1,
        holds: TimeSpan::ZERO,
        rate: 0,
        from: TimeSpan::ZERO,
        until: TimeSpan::MAX,
    }
}

fn hostile(cell: &ResultRow) -> Hostile {
    cell.hostile.expect("the scenario has adversaries")
}

#[test]
fn with_room_for_all_the_visitors_figures_are_the_same_to_the_last_digit() {
    let peace = cell(&plenty(), "session-first");
    assert_eq!(peace.hostile, None);
    let mut attacked = plenty();
    attacked.adversaries = vec![adversary(0.2), adversary(0.1)];
    let attacked = cell(&attacked, "session-first");
    let results = hostile(&attacked);
    assert!((results.hostile_work - 0.3).abs() < 0.02, "{results:?}");
    assert!(
        results.generated > 10_000 && results.refused == 0 && results.served == results.generated,
        "{results:?}"
    );
    let same = ResultRow { hostile: None, ..attacked };
    assert_eq!(format!("{same:?}"), format!("{peace:?}"));
}

#[test]
fn they_come_only_while_they_are_to_come_and_all_at_once_if_so() {
    let mut scenario = plenty();
    let third = Adversary {
        from: TimeSpan::from_secs(100),
        until: TimeSpan::from_secs(200),
        burst: 50,
        path: vec![0],
        ..adversary(0.3)
    };
    scenario.adversaries = vec![third];
    let results = hostile(&cell(&scenario, "session-first"));
    assert!((results.hostile_work - 0.1).abs() < 0.03, "0.3 in a third of the time: {results:?}");
    assert_eq!(results.generated % 50, 0, "whole bursts");
    scenario.adversaries[0].from = TimeSpan::from_secs(301);
    scenario.adversaries[0].until = TimeSpan::MAX;
    let nobody = Hostile { hostile_work: 0.0, generated: 0, served: 0, refused: 0 };
    assert_eq!(hostile(&cell(&scenario, "session-first")), nobody, "arrivals end at 300 s");
}

#[test]
fn scrapers_with_a_shape_of_their_own_get_what_visitors_leave() {
    let useful = |file: &str| {
        let scenario = Scenario { seeds: 1, ..scenario(file) };
        cell(&scenario, "session-first").useful_work
    };
    let alike = useful("attack-scrape-alike.toml");
    let one_shape = useful("attack-scrape-one-shape.toml");
    let same_heads = useful("attack-scrape-same-heads.toml");
    assert!(one_shape > alike + 0.3, "{one_shape}, {alike}");
    assert!(same_heads > alike - 0.03, "{same_heads}, {alike}");
    let cookieless = useful("attack-scrape-cookieless.toml");
    assert!(cookieless > alike + 0.2, "{cookieless}, {alike}");
}

#[test]
fn an_attack_is_the_same_to_the_last_digit_whenever_it_is_played() {
    let scenario = scenario("attack-poisoning.toml");
    let twice = [(); 2].map(|()| format!("{:?}", cell(&scenario, "LIFO-Pri")));
    assert_eq!(twice[0], twice[1]);
}

#[test]
fn work_is_spent_on_visitors_on_adversaries_or_in_vain_and_never_counted_twice() {
    for file in ["attack-spoofing.toml", "attack-flooding.toml"] {
        for closes in [Closes::Visible, Closes::Hidden] {
            let mut scenario = scenario(file);
            // Visitors alone exceed the capacity, so the shares in the result are shares of the
            // capacity.
            scenario.rho = vec![2.0];
            scenario.closes = vec![closes];
            let cell = cell(&scenario, "haproxy-expert");
            let wasted = cell.wasted_work.expect("the simulator knows");
            let all = cell.useful_work + wasted + hostile(&cell).hostile_work;
            assert!((0.97..1.01).contains(&all), "{file}: {all} of capacity");
        }
    }
}

#[test]
fn what_they_got_is_a_share_of_the_servers_that_there_were() {
    let mut scenario = plenty();
    scenario.adversaries = vec![adversary(0.2)];
    let half = Change { at: TimeSpan::ZERO, over: TimeSpan::ZERO, to: To::Workers(50) };
    scenario.servers.changes = vec![half];
    let results = hostile(&cell(&scenario, "session-first"));
    assert!(
        (results.hostile_work - 0.4).abs() < 0.04,
        "0.2 of a hundred is 0.4 of fifty: {results:?}"
    );
}

#[test]
fn a_path_is_priority_for_whoever_believes_it_and_little_for_who_asks_what_was_served() {
    let scenario = scenario("attack-spoofing.toml");
    let useful = |policy| cell(&scenario, policy).useful_work;
    let believer = useful("haproxy-ordinary");
    assert!(believer < 0.1, "useful work where a path is believed: {believer}");
    for policy in ["session-first", "haproxy-expert"] {
        assert!(useful(policy) > 0.3, "{policy}: {}", useful(policy));
    }
}

/// Checks the promise of SECURITY.md for every attack of the lab, with default parameters.
#[test]
fn whatever_the_attack_visitors_keep_more_than_half_of_their_useful_work() {
    for attack in ["spoofing", "flooding", "starvation", "poisoning", "poisoning-walked", "crowd"] {
        for closes in [Closes::Visible, Closes::Hidden] {
            let mut scenario = scenario(&format!("attack-{attack}.toml"));
            scenario.closes = vec![closes];
            scenario.length = Length::Duration(TimeSpan::from_secs(1200));
            for policy in ["session-first", "value-index"] {
                let useful = cell(&scenario, policy).useful_work;
                assert!(useful > 0.5, "{attack}, {closes} closes, {policy}: {useful}");
            }
        }
    }
}

/// Checks how much of their useful work visitors keep next to slow clients, compared with a run
/// without an attack.
#[test]
fn slow_clients_leave_visitors_nearly_all_of_their_useful_work() {
    let play = |file: &str, policy| {
        let mut scenario = scenario(file);
        scenario.length = Length::Duration(TimeSpan::from_secs(1200));
        cell(&scenario, policy).useful_work
    };
    for policy in ["session-first", "value-index", "haproxy-expert"] {
        let unattacked = play("attack-slow-none.toml", policy);
        for attack in ["slow-again", "slow-upload", "slow-read", "one-connection"] {
            let kept = play(&format!("attack-{attack}.toml"), policy) / unattacked;
            let is_right = if policy == "haproxy-expert" { kept < 0.5 } else { kept > 0.95 };
            assert!(is_right, "{attack}, {policy}: {kept}");
        }
    }
}

/// Checks that a flood from one address is harmless if the address is the principal of its
/// requests. Addresses are principals only if the configuration declares that no address is shared.
#[test]
fn one_address_that_floods_a_class_costs_nothing_where_addresses_are_charged() {
    let scenario = scenario("attack-flooding.toml");
    let parity = cell(&scenario, "LIFO-Pri").useful_work;
    assert!(parity < 0.1, "length × utility rises with the flood, and yet useful work is {parity}");
    let ours = cell(&scenario, "session-first, addresses charged");
    assert!(ours.useful_work > 0.95, "{}", ours.useful_work);
    let refused = hostile(&ours).refused as f64 / hostile(&ours).generated as f64;
    assert!(refused > 0.5, "{refused} of the flood was refused");
    let default = cell(&scenario, "session-first");
    assert!(default.useful_work < ours.useful_work - 0.1, "{}", default.useful_work);
    assert_eq!(scenario.policies[0].principal, PrincipalKind::Session, "as the gateway's default");
}

/// Compares a session table full of invented sessions with a table that has room for all sessions.
/// Checks the orders and the useful work that buyers keep. They would lose more if the table had
/// one list for all sessions, or if less of the table were for fresh sessions.
#[test]
fn invented_sessions_leave_buyers_nearly_all_of_their_orders() {
    for rho in [0.75, 2.0] {
        for policy in ["session-first", "value-index"] {
            let play = |sessions: Option<Option<u32>>| {
                let mut scenario = scenario("attack-invented-sessions.toml");
                (scenario.rho, scenario.seeds) = (vec![rho], 4);
                scenario.sessions = sessions.unwrap_or(scenario.sessions);
                cell(&scenario, policy)
            };
            let (full, roomy) = (play(None), play(Some(None)));
            let orders = full.orders as f64 / roomy.orders as f64;
            let useful = full.useful_work / roomy.useful_work;
            assert!(orders > 0.95 && useful > 0.95, "{policy} at {rho}: {orders}, {useful}");
        }
    }
}
