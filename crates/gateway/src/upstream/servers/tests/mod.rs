//! Tests of the rules of choice and ejection, one at a time.

mod errors;
mod returns;

use std::sync::Arc;
use std::thread;

use bywash_units::{Time, TimeSpan};

use super::{Failure, Load, Options, ServerState, ServerStatus, Servers};

const OPTIONS: Options = Options {
    rise: 2,
    fall: 3,
    eject_after: 5,
    eject_for: TimeSpan::from_secs(10),
    eject_share: 0.5,
    slow_start: TimeSpan::from_secs(10),
};

fn servers(count: usize) -> Arc<Servers> {
    Arc::new(Servers::new(count, OPTIONS, at(0.0)))
}

fn at(seconds: f64) -> Time {
    Time::ZERO + TimeSpan::from_secs_f64(seconds)
}

fn status(servers: &Servers, server: usize, now: Time) -> ServerStatus {
    servers.snapshot(now)[server]
}

fn state(servers: &Servers, server: usize, now: Time) -> ServerState {
    status(servers, server, now).state
}

/// Returns the [`Load`] of a request at this server, by excluding all other servers.
fn load_at(servers: &Arc<Servers>, server: usize, now: Time) -> Load {
    servers.choose(now, !(1 << server)).expect("it is not down")
}

fn fail(servers: &Arc<Servers>, server: usize, now: Time, times: u32) {
    for _ in 0..times {
        load_at(servers, server, now).failed(now, Failure::Response);
    }
}

fn probe(servers: &Servers, server: usize, now: Time, ok: bool, times: u32) {
    (0..times).for_each(|_| servers.probed(server, now, ok));
}

/// Returns how many of the next `requests` requests each server gets if none of them ends, and
/// their loads.
fn pile_up(servers: &Arc<Servers>, now: Time, requests: usize) -> (Vec<usize>, Vec<Load>) {
    let loads: Vec<Load> = (0..requests).filter_map(|_| servers.choose(now, 0)).collect();
    let mut counts = vec![0; servers.snapshot(now).len()];
    for load in &loads {
        counts[load.server()] += 1;
    }
    (counts, loads)
}

#[test]
fn equal_servers_get_equally_many() {
    let (counts, _loads) = pile_up(&servers(3), at(0.0), 30);
    assert_eq!(counts, [10, 10, 10]);
}

#[test]
fn idle_servers_take_turns() {
    let servers = servers(3);
    let one_at_a_time = (0..6).map(|_| servers.choose(at(0.0), 0).expect("all are up").server());
    assert_eq!(one_at_a_time.collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
}

#[test]
fn a_server_that_does_not_get_done_gets_no_more() {
    let servers = servers(3);
    let _stuck = [load_at(&servers, 0, at(0.0)), load_at(&servers, 0, at(0.0))];
    let others = (0..20).map(|_| servers.choose(at(0.0), 0).expect("all are up").server());
    assert!(others.into_iter().all(|server| server != 0));
}

#[test]
fn a_server_already_tried_is_not_chosen() {
    let servers = servers(64);
    assert_eq!(servers.choose(at(0.0), !(1 << 63)).expect("the last is left").server(), 63);
    assert!(servers.choose(at(0.0), u64::MAX).is_none());
}

#[test]
fn failures_in_a_row_eject() {
    let servers = servers(3);
    fail(&servers, 1, at(1.0), 4);
    assert_eq!(state(&servers, 1, at(1.0)), ServerState::Up);
    fail(&servers, 1, at(1.0), 1);
    assert_eq!(state(&servers, 1, at(1.0)), ServerState::Ejected { until: at(11.0) });
    let (counts, _loads) = pile_up(&servers, at(10.9), 30);
    assert_eq!(counts, [15, 0, 15]);
}

#[test]
fn a_success_between_failures_begins_the_row_again() {
    let servers = servers(2);
    fail(&servers, 0, at(1.0), 4);
    load_at(&servers, 0, at(1.0)).succeeded(at(1.0));
    fail(&servers, 0, at(1.0), 4);
    assert_eq!(state(&servers, 0, at(1.0)), ServerState::Up);
}

#[test]
fn a_request_without_a_result_says_nothing() {
    let servers = servers(2);
    fail(&servers, 0, at(1.0), 4);
    drop(load_at(&servers, 0, at(1.0)));
    assert_eq!(status(&servers, 0, at(1.0)).failures, 4);
}

#[test]
fn failures_are_counted_by_their_kind() {
    let servers = servers(2);
    load_at(&servers, 0, at(1.0)).failed(at(1.0), Failure::Connect);
    fail(&servers, 0, at(1.0), 2);
    let status = status(&servers, 0, at(1.0));
    assert_eq!((status.connect_failures, status.response_failures), (1, 2));
}

#[test]
fn after_its_ejection_a_server_gets_one_request_at_a_time() {
    let servers = servers(2);
    fail(&servers, 0, at(0.0), 5);
    assert_eq!(state(&servers, 0, at(10.0)), ServerState::Probation);
    let (counts, loads) = pile_up(&servers, at(10.0), 20);
    assert_eq!(counts, [1, 19]);
    drop(loads);
    let (counts, _loads) = pile_up(&servers, at(10.0), 20);
    assert_eq!(counts, [1, 19], "a client that left has decided nothing");
}

#[test]
fn a_success_on_probation_brings_a_server_back_slowly() {
    let servers = servers(2);
    fail(&servers, 0, at(0.0), 5);
    load_at(&servers, 0, at(10.0)).succeeded(at(10.5));
    let ServerState::SlowStart { share } = state(&servers, 0, at(10.5)) else { panic!("not back") };
    assert!((share.get() - 0.1).abs() < 1e-9);
    assert_eq!(state(&servers, 0, at(20.5)), ServerState::Up);
}

#[test]
fn the_head_of_an_answer_ends_probation_while_the_body_goes_on() {
    let servers = servers(2);
    fail(&servers, 0, at(0.0), 5);
    let mut stream = load_at(&servers, 0, at(10.0));
    stream.answered(at(10.1));
    assert_eq!(state(&servers, 0, at(20.1)), ServerState::Up);
    assert_eq!(status(&servers, 0, at(20.1)).running, 1);
}

#[test]
fn the_head_of_an_answer_does_not_end_a_row_of_failures() {
    let servers = servers(2);
    fail(&servers, 0, at(0.0), 4);
    load_at(&servers, 0, at(0.0)).answered(at(0.0));
    assert_eq!(status(&servers, 0, at(0.0)).failures, 4, "what is cut off has a head as well");
}

#[test]
fn a_failure_while_ejected_does_not_prolong_it() {
    let servers = servers(2);
    fail(&servers, 0, at(0.0), 5);
    fail(&servers, 0, at(9.0), 5);
    assert_eq!(state(&servers, 0, at(9.0)), ServerState::Ejected { until: at(10.0) });
}

#[test]
fn each_ejection_in_a_row_is_longer_up_to_eight_times() {
    let servers = servers(2);
    let mut now = at(0.0);
    fail(&servers, 0, now, 5);
    for times in [1, 2, 3, 4, 5, 6, 7, 8, 8, 8] {
        let until = now + OPTIONS.eject_for * times;
        assert_eq!(state(&servers, 0, now), ServerState::Ejected { until });
        now = until;
        fail(&servers, 0, now, 1);
    }
}

#[test]
fn a_row_of_ejections_ends_when_a_server_has_stayed_longer_than_it_was_out() {
    for (stayed, ejections) in [(10.0, 2), (10.1, 1)] {
        let servers = servers(2);
        fail(&servers, 0, at(0.0), 5);
        load_at(&servers, 0, at(10.0)).succeeded(at(10.0));
        fail(&servers, 0, at(10.0 + stayed), 5);
        assert_eq!(status(&servers, 0, at(30.0)).ejections, ejections, "after {stayed} s");
    }
}

#[test]
fn a_single_server_is_always_tried() {
    let servers = servers(1);
    fail(&servers, 0, at(0.0), 100);
    assert_eq!(state(&servers, 0, at(0.0)), ServerState::Up);
    assert_eq!(pile_up(&servers, at(0.0), 50).0, [50]);
}

#[test]
fn the_last_server_is_not_ejected_and_shares_with_the_ejected_once_it_has_earned_it() {
    let servers = servers(2);
    fail(&servers, 0, at(0.0), 5);
    fail(&servers, 1, at(0.0), 4);
    assert_eq!(pile_up(&servers, at(0.0), 20).0, [0, 20]);
    fail(&servers, 1, at(0.0), 1);
    assert_eq!(state(&servers, 1, at(0.0)), ServerState::Up);
    assert_eq!(pile_up(&servers, at(0.0), 20).0, [10, 10], "nobody knows better");
}

#[test]
fn the_first_success_when_all_were_bad_has_every_other_tried_at_once() {
    for proven in 0..3 {
        let servers = servers(3);
        (0..3).for_each(|server| fail(&servers, server, at(0.0), 5));
        load_at(&servers, proven, at(1.0)).succeeded(at(1.0));
        let (counts, loads) = pile_up(&servers, at(1.0), 12);
        let expected: Vec<usize> = (0..3).map(|s| if s == proven { 10 } else { 1 }).collect();
        assert_eq!(counts, expected);
        for load in loads {
            load.succeeded(at(1.0));
        }
        for server in 0..3 {
            let state = state(&servers, server, at(1.0));
            assert!(
                matches!(state, ServerState::Up | ServerState::SlowStart { .. }),
                "{server} is {state:?}"
            );
        }
    }
}

#[test]
fn a_return_by_probes_when_all_were_bad_has_the_others_tried_as_well() {
    let servers = servers(2);
    probe(&servers, 0, at(0.0), false, 3);
    fail(&servers, 1, at(0.0), 5);
    assert_eq!(state(&servers, 1, at(0.0)), ServerState::Up, "it was the last");
    probe(&servers, 0, at(1.0), true, 2);
    assert_eq!(state(&servers, 1, at(1.0)), ServerState::Probation);
}

#[test]
fn a_return_while_another_serves_changes_nothing_for_the_rest() {
    let servers = servers(3);
    fail(&servers, 0, at(0.0), 5);
    fail(&servers, 1, at(5.0), 5);
    load_at(&servers, 0, at(10.0)).succeeded(at(10.0));
    assert_eq!(state(&servers, 1, at(10.0)), ServerState::Ejected { until: at(15.0) });
}

#[test]
fn a_success_while_ejected_brings_a_server_back_at_once() {
    let servers = servers(2);
    fail(&servers, 0, at(0.0), 5);
    load_at(&servers, 0, at(1.0)).succeeded(at(1.0));
    assert!(matches!(state(&servers, 0, at(1.0)), ServerState::SlowStart { .. }));
}

#[test]
fn results_older_than_the_ejection_are_void() {
    let servers = servers(2);
    let old: Vec<Load> = (0..4).map(|_| load_at(&servers, 0, at(0.0))).collect();
    fail(&servers, 0, at(0.0), 5);
    let ejected = state(&servers, 0, at(1.0));
    for (number, load) in old.into_iter().enumerate() {
        match number {
            0 => load.succeeded(at(1.0)),
            1 => drop(load),
            _ => load.failed(at(30.0), Failure::Response),
        }
    }
    assert_eq!(state(&servers, 0, at(1.0)), ejected);
    assert_eq!(state(&servers, 0, at(30.0)), ServerState::Probation);
    let status = status(&servers, 0, at(30.0));
    assert_eq!((status.running, status.ejections, status.response_failures), (0, 1, 7));
}

#[test]
fn a_second_ejection_makes_the_requests_of_the_first_void() {
    let servers = servers(2);
    fail(&servers, 0, at(0.0), 5);
    let mut old = load_at(&servers, 0, at(9.0));
    fail(&servers, 0, at(10.0), 1);
    let ejected = ServerState::Ejected { until: at(30.0) };
    assert_eq!(state(&servers, 0, at(10.0)), ejected);
    old.answered(at(11.0));
    assert_eq!(state(&servers, 0, at(11.0)), ejected);
    let (counts, _loads) = pile_up(&servers, at(30.0), 20);
    assert_eq!(counts, [1, 19], "the old one does not take the place of probation");
}

#[test]
fn results_older_than_down_are_void() {
    let servers = servers(2);
    let old: Vec<Load> = (0..5).map(|_| load_at(&servers, 0, at(0.0))).collect();
    probe(&servers, 0, at(1.0), false, 3);
    probe(&servers, 0, at(2.0), true, 2);
    for load in old {
        load.failed(at(3.0), Failure::Response);
    }
    assert_eq!(status(&servers, 0, at(3.0)).failures, 0);
}

#[test]
fn a_return_from_down_begins_the_row_of_failures_again() {
    let servers = servers(2);
    fail(&servers, 0, at(0.0), 4);
    probe(&servers, 0, at(1.0), false, 3);
    probe(&servers, 0, at(2.0), true, 2);
    assert_eq!(status(&servers, 0, at(2.0)).failures, 0);
}

#[test]
fn old_requests_do_not_take_the_place_of_probation() {
    let servers = servers(2);
    let _old = load_at(&servers, 0, at(0.0));
    let _busy: Vec<Load> = (0..4).map(|_| load_at(&servers, 1, at(0.0))).collect();
    fail(&servers, 0, at(0.0), 5);
    assert_eq!(servers.choose(at(10.0), 0).expect("both can").server(), 0);
}

#[test]
fn threads_leave_nothing_running_behind() {
    let servers = servers(3);
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let servers = &servers;
            scope.spawn(move || {
                for step in 0..5_000 {
                    let now = Time::from_nanos(step * 10_000_000);
                    let Some(load) = servers.choose(now, step & 7) else { continue };
                    match (step + thread) % 3 {
                        0 => load.succeeded(now),
                        1 => load.failed(now, Failure::Connect),
                        _ => drop(load),
                    }
                }
            });
        }
    });
    assert!(servers.snapshot(at(0.0)).iter().all(|status| status.running == 0));
}

#[test]
fn who_runs_too_long_has_met_a_server_that_hangs_unless_that_shows_life() {
    let failures = |shows_life: fn(&Arc<Servers>)| {
        let servers = servers(2);
        let load = load_at(&servers, 0, at(1.0));
        shows_life(&servers);
        load.ran_too_long(at(3.0));
        status(&servers, 0, at(3.0)).failures
    };
    assert_eq!(failures(|_| ()), 1);
    assert_eq!(failures(|servers| load_at(servers, 0, at(2.0)).shows_life(at(2.0))), 0);
    assert_eq!(failures(|servers| load_at(servers, 1, at(2.0)).shows_life(at(2.0))), 1, "another");
    assert_eq!(failures(|servers| probe(servers, 0, at(2.0), true, 1)), 0);
    assert_eq!(failures(|servers| probe(servers, 0, at(2.0), false, 1)), 1);
    // Signs of life from before the request do not count.
    assert_eq!(failures(|servers| probe(servers, 0, at(0.5), true, 1)), 1);
}
