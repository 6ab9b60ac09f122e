//! Tests of the rules for responses with a status of 500 or more.

use std::sync::Arc;

use bywash_units::Time;

use super::super::{ServerState, Servers};
use super::{at, load_at, pile_up, servers, state, status};

fn err(servers: &Arc<Servers>, server: usize, now: Time, times: u32) {
    (0..times).for_each(|_| load_at(servers, server, now).errs(now));
}

fn answer(servers: &Arc<Servers>, server: usize, now: Time, times: u32) {
    (0..times).for_each(|_| load_at(servers, server, now).succeeded(now));
}

/// Returns servers that have all responded well, except server 0, which has responded with errors.
fn with_one_that_errs(count: usize) -> Arc<Servers> {
    let servers = servers(count);
    (1..count).for_each(|server| answer(&servers, server, at(0.0), 30));
    err(&servers, 0, at(0.0), 30);
    servers
}

#[test]
fn a_server_that_errs_while_the_others_do_not_is_ejected() {
    let servers = with_one_that_errs(2);
    assert_eq!(state(&servers, 0, at(0.0)), ServerState::Ejected { until: at(10.0) });
    assert_eq!(pile_up(&servers, at(0.0), 20).0, [0, 20]);
}

#[test]
fn few_errors_or_errors_long_ago_say_nothing() {
    let servers = servers(2);
    answer(&servers, 1, at(0.0), 30);
    err(&servers, 0, at(0.0), 19);
    assert_eq!(state(&servers, 0, at(0.0)), ServerState::Up);
    answer(&servers, 1, at(60.0), 30);
    err(&servers, 0, at(60.0), 19);
    assert_eq!(state(&servers, 0, at(60.0)), ServerState::Up);
}

#[test]
fn without_answers_of_others_nothing_is_compared() {
    let servers = servers(2);
    err(&servers, 0, at(0.0), 100);
    assert_eq!(state(&servers, 0, at(0.0)), ServerState::Up);
    answer(&servers, 1, at(0.0), 19);
    err(&servers, 0, at(0.0), 1);
    assert_eq!(state(&servers, 0, at(0.0)), ServerState::Up);
}

#[test]
fn a_single_server_that_errs_is_always_tried() {
    let servers = servers(1);
    err(&servers, 0, at(0.0), 100);
    assert_eq!(pile_up(&servers, at(0.0), 50).0, [50]);
}

#[test]
fn no_more_than_half_are_out_by_errors() {
    let servers = servers(4);
    (0..4).for_each(|server| answer(&servers, server, at(0.0), 64));
    (1..4).for_each(|server| err(&servers, server, at(0.0), 60));
    (1..4).for_each(|server| err(&servers, server, at(0.0), 60));
    let is_out = |server| matches!(state(&servers, server, at(0.0)), ServerState::Ejected { .. });
    assert_eq!([0, 1, 2, 3].map(is_out), [false, true, true, false]);
}

#[test]
fn an_error_on_probation_decides_as_it_did_before() {
    let servers = with_one_that_errs(2);
    err(&servers, 0, at(10.0), 1);
    assert_eq!(state(&servers, 0, at(10.0)), ServerState::Ejected { until: at(30.0) });
    answer(&servers, 1, at(30.0), 30);
    answer(&servers, 0, at(30.0), 1);
    assert!(matches!(state(&servers, 0, at(30.0)), ServerState::SlowStart { .. }));
}

#[test]
fn an_error_on_probation_brings_a_server_back_where_the_others_err_as_well() {
    let servers = with_one_that_errs(2);
    err(&servers, 1, at(10.0), 100);
    err(&servers, 0, at(10.0), 1);
    assert!(matches!(state(&servers, 0, at(10.0)), ServerState::SlowStart { .. }));
}

/// The balancer's choice on an idle site is predictable: a client that requests a broken page and a
/// good one in turn can send all errors to one server. That costs the site at most half of its
/// servers for a while, and no request.
#[test]
fn a_client_that_steers_its_errors_takes_out_no_more_than_half() {
    for count in 1..6 {
        let servers = servers(count);
        for request in 0..1_000 {
            let load = servers.choose(at(0.0), 0).expect("somebody serves");
            if load.server() == count - 1 {
                load.succeeded(at(0.0));
            } else {
                load.errs(at(0.0));
            }
            let states = (0..count).map(|server| state(&servers, server, at(0.0)));
            let out = states.filter(|state| matches!(state, ServerState::Ejected { .. })).count();
            assert!(2 * out <= count, "{out} of {count} after {request}");
        }
    }
}

#[test]
fn errors_count_as_load_for_as_long_as_a_success_takes() {
    let servers = servers(2);
    let (first, second) = (load_at(&servers, 0, at(0.0)), load_at(&servers, 1, at(0.0)));
    for load in [first, second] {
        load.succeeded(at(1.0));
    }
    err(&servers, 0, at(1.0), 3);
    let (counts, loads) = pile_up(&servers, at(1.0), 3);
    assert_eq!(counts, [0, 3], "its three errors count as running");
    drop(loads);
    assert_eq!(pile_up(&servers, at(20.0), 4).0, [2, 2], "they are long over");
    assert_eq!(status(&servers, 0, at(20.0)).errors, 3);
}
