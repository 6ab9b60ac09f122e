//! Tests of the engine's lock: copying sessions slice by slice, and a panic while it is held.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use bywash_config::Config;
use bywash_engine::{AddressKey, Signals, VisitorKey};

use super::*;
use crate::process::boot_clock;

pub(crate) fn driver(sessions: u32) -> Arc<Driver> {
    let text = format!(
        "version = 1\nupstream.server = 'http://127.0.0.1:1'\nidentify.sessions = {sessions}"
    );
    let Ok((config, _)) = Config::parse(&text, "test") else { panic!("{text}") };
    let classes: Vec<_> = config.classes.iter().map(|class| class.class.clone()).collect();
    let scheduler = config.scheduler.scheduler(&classes);
    Arc::new(Driver::new(Engine::new(classes, scheduler, config.engine)))
}

fn known(keys: std::ops::Range<u64>) -> Knowledge {
    let session = |key: u64| Remembered {
        key: SessionKey(key),
        age: TimeSpan::from_millis(1_000_000 - key),
        served: ClassSet::NONE.with(ClassId(0)),
    };
    let sessions = keys.map(session).collect();
    Knowledge {
        sessions,
        mean_service: MeanService::new(TimeSpan::ZERO, 0),
        counts: Counted { classes: Vec::new(), signals: (0, Vec::new()) },
        populations: RememberedPopulations::default(),
    }
}

#[test]
fn every_session_is_copied_the_oldest_first_while_others_change_the_table() {
    let driver = driver(20_000);
    assert_eq!(driver.restore(known(0..20_000)), 20_000);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for key in (0..20_000).rev().cycle() {
                driver.with(|requests, now, wakers| {
                    let served = Event::Served {
                        session: SessionKey(key),
                        service: Service {
                            address: Some(AddressKey(key % 7)),
                            had_begun: true,
                            ..Service::content(ClassId(0))
                        },
                        signals: Signals::default(),
                        revenue: Utility::default(),
                        in_time: true,
                    };
                    requests.apply(now, served, wakers);
                });
                if over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        for _ in 0..20 {
            let sessions = driver.learned().sessions;
            assert!(sessions.windows(2).all(|pair| pair[0].age >= pair[1].age));
            let mut keys: Vec<u64> = sessions.iter().map(|session| session.key.0).collect();
            keys.sort_unstable();
            assert_eq!(keys, (0..20_000).collect::<Vec<_>>());
        }
        over.store(true, Ordering::Relaxed);
    });
}

/// The environment variable that tells the child process to panic and abort.
const CHILD: &str = "BYWASH_TEST_ENGINE_PANICS";

#[test]
fn a_panic_of_the_engine_aborts_the_process() {
    const NAME: &str = "driver::tests::a_panic_of_the_engine_aborts_the_process";
    if std::env::var_os(CHILD).is_some() {
        let driver = driver(1);
        let panics = Arc::clone(&driver);
        let worker = std::thread::spawn(move || panics.with(|_, _, _| panic!("a test's own")));
        assert!(worker.join().is_err());
        driver.status();
        // Not reached if the process aborts as it should. Otherwise the parent sees a normal exit.
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let child = child.args(["--exact", NAME, "--nocapture"]).env(CHILD, "1").output().unwrap();
    assert_eq!(child.status.signal(), Some(6), "{child:?}");
    assert!(
        String::from_utf8_lossy(&child.stderr).contains("the engine has panicked"),
        "{child:?}"
    );
}

#[test]
fn one_hold_in_61_is_timed_and_a_wait_is_if_there_is_one() {
    let driver = driver(1);
    let counted = |times: &lock::Times| times.read().0.iter().map(|(_, count)| count).sum::<u64>();
    for _ in 0..610 {
        driver.status();
    }
    let times = driver.lock_times();
    assert_eq!((counted(&times.held), counted(&times.waited)), (10, 0));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                driver.status();
            }
        });
        while counted(&driver.lock_times().waited) == 0 {
            driver.with(|_, _, _| std::thread::yield_now());
        }
        over.store(true, Ordering::Relaxed);
    });
    let waited = driver.lock_times().waited.read();
    assert!(waited.1 > 0.0);
}

/// Returns the number of requests that run after three have arrived.
fn run_of_three(driver: &Arc<Driver>) -> (Vec<Ticket>, u32) {
    let arrive = |_| driver.arrive(Request::of(ClassId(0)), true, |_| ());
    ((0..3).map(arrive).collect(), driver.status().running)
}

#[test]
fn a_lease_bounds_the_running_requests_until_it_ends() {
    let driver = driver(16);
    let until = Some(boot_clock::now() + TimeSpan::from_secs(3600));
    driver.hold(Holding { slots: 2, until, then: 1 });
    let (tickets, running) = run_of_three(&driver);
    assert_eq!(running, 2);
    drop(tickets);
    let until = Some(boot_clock::now() + TimeSpan::from_millis(20));
    driver.hold(Holding { slots: 2, until, then: 1 });
    std::thread::sleep(std::time::Duration::from_millis(30));
    assert_eq!(run_of_three(&driver).1, 1);
    assert_eq!(driver.status().limit, 1);
}

#[test]
fn a_lease_that_comes_after_its_end_starts_nothing() {
    let driver = driver(16);
    driver.hold(Holding { slots: 1, until: None, then: 1 });
    let (_tickets, running) = run_of_three(&driver);
    assert_eq!(running, 1);
    driver.hold(Holding { slots: 3, until: Some(boot_clock::now()), then: 1 });
    assert_eq!(driver.status().running, 1);
    driver.hold(Holding { slots: 3, until: None, then: 3 });
    assert_eq!(driver.status().running, 3);
}

#[test]
fn a_population_is_computed_only_for_the_first_request_of_a_visit() {
    let driver = driver(16);
    let asks = |visitor: Option<u64>, own: Option<u64>| {
        let mut computed = false;
        let request = Request {
            visitor: visitor.map(VisitorKey),
            population: own.map(PopulationKey),
            ..Request::of(ClassId(0))
        };
        let ticket = driver.arrive(request, true, |request| {
            computed = true;
            request.population = Some(PopulationKey(5));
        });
        (computed, ticket.population().map(|(key, _)| key.0))
    };
    assert_eq!(asks(Some(1), None), (true, Some(5)));
    assert_eq!(asks(Some(1), None), (false, Some(5)), "it is that of the visit");
    assert_eq!(asks(Some(2), Some(7)), (false, Some(7)), "it is known already");
    assert_eq!(asks(None, None), (false, None), "populations are not told apart");
}
