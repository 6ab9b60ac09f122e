//! Tests of the rules of probes, slow start and reload.

use std::sync::Arc;

use bywash_units::{Ratio, TimeSpan};

use super::super::{Failure, Options, ServerState, Servers};
use super::{OPTIONS, at, fail, load_at, pile_up, probe, servers, state, status};

#[test]
fn bad_answers_to_probes_in_a_row_take_a_server_out() {
    let servers = servers(2);
    probe(&servers, 0, at(0.0), false, 2);
    probe(&servers, 0, at(0.0), true, 1);
    probe(&servers, 0, at(0.0), false, 2);
    assert_eq!(state(&servers, 0, at(0.0)), ServerState::Up);
    probe(&servers, 0, at(0.0), false, 1);
    assert_eq!(state(&servers, 0, at(0.0)), ServerState::Down);
    assert_eq!(pile_up(&servers, at(0.0), 20).0, [0, 20]);
}

#[test]
fn good_answers_in_a_row_bring_it_back_slowly() {
    let servers = servers(2);
    probe(&servers, 0, at(0.0), false, 3);
    probe(&servers, 0, at(1.0), true, 1);
    assert_eq!(state(&servers, 0, at(1.0)), ServerState::Down);
    probe(&servers, 0, at(2.0), true, 1);
    let ServerState::SlowStart { share } = state(&servers, 0, at(7.0)) else { panic!("not back") };
    assert!((share.get() - 0.55).abs() < 1e-9);
}

#[test]
fn no_server_is_chosen_when_probes_have_all_of_them_down() {
    let servers = servers(2);
    (0..2).for_each(|server| probe(&servers, server, at(0.0), false, 3));
    assert!(servers.choose(at(0.0), 0).is_none());
}

#[test]
fn a_server_that_was_ejected_comes_back_from_down_on_probation() {
    let servers = servers(2);
    fail(&servers, 0, at(0.0), 5);
    probe(&servers, 0, at(1.0), true, 9);
    assert_eq!(state(&servers, 0, at(1.0)), ServerState::Ejected { until: at(10.0) });
    probe(&servers, 0, at(2.0), false, 3);
    assert_eq!(state(&servers, 0, at(2.0)), ServerState::Down);
    probe(&servers, 0, at(3.0), true, 2);
    assert_eq!(state(&servers, 0, at(3.0)), ServerState::Probation);
}

#[test]
fn a_probe_of_a_server_that_is_not_there_is_nobodys() {
    let servers = servers(2);
    probe(&servers, 7, at(0.0), false, 3);
    assert_eq!(pile_up(&servers, at(0.0), 20).0, [10, 10]);
}

/// Returns servers of which server 0 returns at 10 s, and then starts slowly.
fn with_one_in_slow_start(count: usize) -> Arc<Servers> {
    let servers = servers(count);
    probe(&servers, 0, at(0.0), false, 3);
    probe(&servers, 0, at(10.0), true, 2);
    servers
}

#[test]
fn many_running_requests_are_shared_by_weight_during_a_slow_start() {
    for (after, weight) in [(0.0, 0.1), (2.5, 0.325), (5.0, 0.55), (9.9, 0.991), (10.0, 1.0)] {
        let (counts, _loads) = pile_up(&with_one_in_slow_start(2), at(10.0 + after), 200);
        let expected = 200.0 * weight / (1.0 + weight);
        assert!((counts[0] as f64 - expected).abs() <= 2.0, "after {after} s: {counts:?}");
    }
}

#[test]
fn few_requests_are_shared_by_weight_as_well() {
    let servers = with_one_in_slow_start(3);
    // Server 2 is taken out, so it gets no requests.
    probe(&servers, 2, at(10.0), false, 3);
    let chosen = |from: u32, to: u32| {
        let server = |step| {
            let now = at(10.0 + f64::from(step) / 100.0);
            let load = servers.choose(now, 0).expect("both are up");
            let server = load.server();
            load.succeeded(now);
            server
        };
        (from..to).map(server).filter(|server| *server == 0).count() as f64
    };
    // The integral of w/(1+w) for w from 0.1 to 1 is (0.9 − ln(2/1.1))/0.9 of 1000 requests.
    let expected = 1000.0 * (0.9 - (2.0_f64 / 1.1).ln()) / 0.9;
    let (first, rest) = (chosen(0, 250), chosen(250, 1000));
    assert!((first + rest - expected).abs() <= 3.0, "{} of {expected}", first + rest);
    let quarter = 250.0 * (1.0 - (1.325_f64 / 1.1).ln() / 0.225);
    assert!((first - quarter).abs() <= 3.0, "{first} of {quarter} in the first quarter");
    assert!((chosen(1000, 2000) - 500.0).abs() <= 1.0);
}

#[test]
fn a_server_that_is_owed_requests_but_hangs_gets_no_second_one() {
    let servers = with_one_in_slow_start(2);
    let loads = (0..100).filter_map(|_| {
        // Requests at the other server end at once.
        servers.choose(at(10.0), 0).filter(|load| load.server() == 0)
    });
    assert_eq!(loads.collect::<Vec<_>>().len(), 1);
}

#[test]
fn what_a_server_was_owed_before_it_went_is_not_made_up_for() {
    let servers = with_one_in_slow_start(2);
    let hangs = load_at(&servers, 0, at(10.0));
    (0..30).for_each(|_| drop(servers.choose(at(10.0), 0)));
    drop(hangs);
    probe(&servers, 0, at(11.0), false, 3);
    probe(&servers, 0, at(12.0), true, 2);
    let first = (0..9).find(|_| servers.choose(at(12.0), 0).expect("both are up").server() == 0);
    assert_eq!(first, None);
}

#[test]
fn a_slow_start_of_no_length_is_none() {
    let options = Options { slow_start: TimeSpan::ZERO, ..OPTIONS };
    let servers = Arc::new(Servers::new(2, options, at(0.0)));
    fail(&servers, 0, at(0.0), 5);
    load_at(&servers, 0, at(10.0)).succeeded(at(10.0));
    assert_eq!(state(&servers, 0, at(10.0)), ServerState::Up);
    assert_eq!(pile_up(&servers, at(10.0), 20).0, [10, 10]);
}

#[test]
fn a_reload_keeps_what_is_known_and_starts_new_servers_slowly() {
    let old = servers(3);
    fail(&old, 0, at(0.0), 5);
    probe(&old, 1, at(0.0), false, 3);
    let running = load_at(&old, 2, at(0.0));
    let new = Arc::new(old.reloaded(&[Some(2), None, Some(0), Some(1)], OPTIONS, at(1.0)));
    let states: Vec<ServerState> =
        new.snapshot(at(1.0)).iter().map(|status| status.state).collect();
    let slow = ServerState::SlowStart { share: Ratio::new(0.1) };
    assert_eq!(
        states,
        [ServerState::Up, slow, ServerState::Ejected { until: at(10.0) }, ServerState::Down]
    );
    running.failed(at(1.0), Failure::Response);
    assert_eq!(status(&old, 2, at(1.0)).running, 0);
    assert_eq!(status(&new, 0, at(1.0)).failures, 0, "the old generation ends in the old table");
}

#[test]
fn a_reload_forgets_what_belongs_to_the_requests_that_it_leaves_behind() {
    let old = servers(3);
    fail(&old, 0, at(0.0), 5);
    fail(&old, 1, at(0.0), 4);
    let _trial = load_at(&old, 0, at(10.0));
    let new = Arc::new(old.reloaded(&[Some(0), Some(1), Some(2)], OPTIONS, at(10.0)));
    assert_eq!(pile_up(&new, at(10.0), 21).0, [1, 10, 10], "the place of probation is free");
    assert_eq!(status(&new, 1, at(10.0)).failures, 0);
}

#[test]
fn a_reload_with_shorter_spans_shortens_what_is_under_way() {
    let old = with_one_in_slow_start(2);
    fail(&old, 1, at(10.0), 5);
    let options = Options {
        slow_start: TimeSpan::from_secs(1),
        eject_for: TimeSpan::from_secs(2),
        ..OPTIONS
    };
    let new = old.reloaded(&[Some(0), Some(1)], options, at(10.0));
    assert_eq!(state(&new, 0, at(11.0)), ServerState::Up);
    assert_eq!(state(&new, 1, at(10.0)), ServerState::Ejected { until: at(12.0) });
}

#[test]
fn a_clock_reading_older_than_the_last_one_is_harmless() {
    let servers = with_one_in_slow_start(2);
    let ServerState::SlowStart { share } = state(&servers, 0, at(9.0)) else { panic!("not back") };
    assert!((share.get() - 0.1).abs() < 1e-9);
    fail(&servers, 0, at(9.0), 5);
    assert_eq!(state(&servers, 0, at(9.0)), ServerState::Ejected { until: at(19.0) });
}
