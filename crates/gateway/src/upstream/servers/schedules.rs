//! Tests several threads that choose and end at once, on the schedules of `make shuttle`.

use std::sync::Arc;

use bywash_units::{Time, TimeSpan};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use super::{Failure, Load, Options, Servers};
use crate::process::sync::explore;

const OPTIONS: Options = Options {
    rise: 1,
    fall: 1,
    eject_after: 2,
    eject_for: TimeSpan::from_secs(1),
    eject_share: 0.5,
    slow_start: TimeSpan::from_secs(1),
};

fn at(seconds: u64) -> Time {
    Time::ZERO + TimeSpan::from_secs(seconds)
}

/// Ends a load with a random result.
fn end(mut load: Load, now: Time) {
    match thread_rng().gen_range(0..5) {
        0 => load.succeeded(now),
        1 => load.failed(now, Failure::Response),
        2 => load.answered(now),
        3 => load.errs(now),
        _ => drop(load),
    }
}

/// Runs two requests at a time, some seconds apart, with random results. Failures eject servers,
/// which later return.
fn requests(servers: &Arc<Servers>) {
    for second in [0, 1, 3] {
        let (first, second_load) = (servers.choose(at(second), 0), servers.choose(at(second), 0));
        for load in [second_load, first].into_iter().flatten() {
            thread::yield_now();
            end(load, at(second));
        }
    }
}

fn none_runs(servers: &Servers) {
    let running: Vec<u32> = servers.snapshot(at(9)).iter().map(|server| server.running).collect();
    assert_eq!(running, [0, 0]);
}

#[test]
fn schedules_in_which_servers_fail_and_return() {
    explore("servers, two threads and a probe", || {
        let servers = Arc::new(Servers::new(2, OPTIONS, at(0)));
        let threads = [requests, requests, |servers: &Arc<Servers>| {
            for ok in [false, true, false, true] {
                servers.probed(0, at(2), ok);
            }
        }];
        let threads = threads.map(|run: fn(&Arc<Servers>)| {
            let servers = Arc::clone(&servers);
            thread::spawn(move || run(&servers))
        });
        for thread in threads {
            thread.join().expect("it has not panicked");
        }
        none_runs(&servers);
    });
}

#[test]
fn schedules_in_which_each_running_request_counts() {
    explore("servers, four choose at once", || {
        let servers = Arc::new(Servers::new(2, OPTIONS, at(0)));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let servers = Arc::clone(&servers);
                thread::spawn(move || servers.choose(at(0), 0).expect("all are up"))
            })
            .collect();
        let loads: Vec<Load> =
            threads.into_iter().map(|thread| thread.join().expect("it chose")).collect();
        // Two threads that choose at once must not both see the same idle server.
        let at_first = loads.iter().filter(|load| load.server() == 0).count();
        assert_eq!(at_first, 2);
        drop(loads);
        none_runs(&servers);
    });
}

#[test]
fn schedules_in_which_a_reload_comes_between() {
    explore("servers, two threads and a reload", || {
        let servers = Arc::new(Servers::new(2, OPTIONS, at(0)));
        let threads = [0, 1].map(|_| {
            let servers = Arc::clone(&servers);
            thread::spawn(move || requests(&servers))
        });
        let renewed = Arc::new(servers.reloaded(&[Some(1), Some(0)], OPTIONS, at(1)));
        requests(&renewed);
        for thread in threads {
            thread.join().expect("it has not panicked");
        }
        none_runs(&servers);
        none_runs(&renewed);
    });
}
