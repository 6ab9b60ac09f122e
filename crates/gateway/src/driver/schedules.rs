//! Tests tickets that several threads use at once, on as many thread schedules as `make shuttle`
//! has time for.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use bywash_config::Config;
use bywash_engine::Bounds;
use bywash_engine::{AnswerKind, Class, ClassId, Decision, End, Engine, Request, SessionKey};
use bywash_units::{TimeSpan, Utility};
use shuttle::future::block_on;
use shuttle::thread::{self, JoinHandle};

use super::{Driver, Progress, Ticket};
use crate::process::sync::explore;

/// Returns a driver with one slot and a FIFO queue, so that the order of requests does not depend
/// on how long they take.
fn driver(max_wait: Option<TimeSpan>) -> Arc<Driver> {
    driver_that_grants(max_wait, None)
}

/// Returns a driver with one slot and a FIFO queue. If `stop` is given, requests of every class can
/// be stopped, and `stop` bounds how long they may run.
fn driver_that_grants(max_wait: Option<TimeSpan>, stop: Option<Bounds>) -> Arc<Driver> {
    let text = "version = 1\nscheduler.policy = 'always-fifo'\nupstream.server = 'http://127.0.0.1:1'\n\
                upstream.limit = 1\n";
    let Ok((config, _)) = Config::parse(text, "schedules") else { panic!("a configuration") };
    let classes = config.classes.iter().map(|class| Class { stop, ..class.class.clone() });
    let classes: Vec<_> = classes.collect();
    let scheduler = config.scheduler.scheduler(&classes);
    let options = bywash_engine::Options { max_wait, ..config.engine };
    Arc::new(Driver::new(Engine::new(classes, scheduler, options)))
}

const REQUEST: Request = Request::of(ClassId(0));

fn decided(ticket: &Ticket) -> Decision {
    block_on(poll_fn(|cx| ticket.poll(cx)))
}

/// Starts a thread in which one request arrives and runs through `life`.
fn request(driver: &Arc<Driver>, life: fn(Ticket)) -> JoinHandle<()> {
    let driver = Arc::clone(driver);
    thread::spawn(move || life(driver.arrive(REQUEST, true, |_| ())))
}

/// Starts a thread with one request that is only observed. It runs and ends, whatever the engine
/// has decided by that time.
fn observed(driver: &Arc<Driver>) -> JoinHandle<()> {
    let driver = Arc::clone(driver);
    thread::spawn(move || {
        let ticket = driver.arrive(REQUEST, false, |_| ());
        thread::yield_now();
        ticket.answered(None, End::ANSWERED);
    })
}

/// Simulates a request that waits for its slot and is answered.
fn is_served(ticket: Ticket) {
    assert!(matches!(decided(&ticket), Decision::Granted { .. }));
    let (session, revenue) = (SessionKey(1), Utility::default());
    let answer = AnswerKind::Content;
    let progress = Progress { session, answer, revenue, succeeded: true, in_time: true };
    ticket.answered(Some(progress), End::ANSWERED);
}

/// Simulates a request that gets its slot, and whose client leaves before the answer.
fn is_orphaned(ticket: Ticket) {
    assert!(matches!(decided(&ticket), Decision::Granted { .. }));
    drop(ticket);
}

/// Simulates a request that gets its slot, and whose upstream fails.
fn is_failed(ticket: Ticket) {
    assert!(matches!(decided(&ticket), Decision::Granted { .. }));
    ticket.failed(End::Failed);
}

/// Simulates a client that leaves in whatever state its request is.
fn leaves(ticket: Ticket) {
    let _ = ticket.poll(&mut Context::from_waker(Waker::noop()));
    thread::yield_now();
    drop(ticket);
}

/// Waits for all requests to end. Then checks that no slot is taken and that each request number is
/// free exactly once.
fn all_is_given_back(driver: &Driver, requests: Vec<JoinHandle<()>>) {
    for request in requests {
        request.join().expect("it has not panicked");
    }
    let status = driver.status();
    assert_eq!((status.running, status.waiting), (0, 0));
    // Fewer than eight requests ran. A lost number would leave a gap here, and a number that is
    // free twice would come twice.
    let mut numbers = driver
        .with(|requests, now, wakers| [(); 8].map(|()| requests.arrive(now, REQUEST, wakers).0));
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn schedules_in_which_nobody_waits_for_ever() {
    explore("driver, three wait for one slot", || {
        let driver = driver(None);
        let requests = [is_served, is_orphaned, is_failed].map(|life| request(&driver, life));
        all_is_given_back(&driver, requests.into());
    });
}

#[test]
fn schedules_in_which_a_client_leaves_as_it_gets_its_slot() {
    explore("driver, two leave and two wait", || {
        let driver = driver(None);
        let requests = [is_served, leaves, is_served, leaves].map(|life| request(&driver, life));
        all_is_given_back(&driver, requests.into());
    });
}

#[test]
fn schedules_in_which_some_are_only_observed() {
    explore("driver, two are observed and two wait", || {
        let driver = driver(None);
        let both = |_| [observed(&driver), request(&driver, is_served)];
        let requests = (0..2).flat_map(both).collect();
        all_is_given_back(&driver, requests);
    });
}

#[test]
fn schedules_in_which_a_wait_ends_by_time_as_the_slot_comes() {
    fn ends_somehow(ticket: Ticket) {
        match decided(&ticket) {
            Decision::Granted { .. } => ticket.answered(None, End::ANSWERED),
            Decision::Refused(_) => drop(ticket),
            Decision::Waits | Decision::Stopped(_) => {
                panic!("it was decided, and cannot be stopped")
            }
        }
    }
    explore("driver, the timer and three requests", || {
        // With this limit the timer considers any wait too long.
        let driver = driver(Some(TimeSpan::from_nanos(1)));
        let mut threads: Vec<_> = (0..3).map(|_| request(&driver, ends_somehow)).collect();
        let timed = Arc::clone(&driver);
        threads.push(thread::spawn(move || {
            for _ in 0..2 {
                let _ = timed.on_timer();
                thread::yield_now();
            }
        }));
        all_is_given_back(&driver, threads);
    });
}

/// Simulates a request that gets its slot, and is then stopped or answered, whichever comes first.
fn is_stopped_or_served(ticket: Ticket) {
    assert!(matches!(decided(&ticket), Decision::Granted { .. } | Decision::Stopped(_)));
    thread::yield_now();
    if ticket.poll_stopped(&mut Context::from_waker(Waker::noop())).is_ready() {
        return;
    }
    ticket.answering();
    thread::yield_now();
    ticket.answered(None, End::ANSWERED);
}

/// Simulates a request whose client's deadline may pass at the moment at which the slot comes.
fn is_out_of_time(ticket: Ticket) {
    ticket.out_of_time();
    match ticket.decision() {
        Decision::Waits => panic!("it waits no longer"),
        Decision::Granted { .. } | Decision::Refused(_) | Decision::Stopped(_) => drop(ticket),
    }
}

#[test]
fn schedules_in_which_one_is_stopped_as_its_answer_begins() {
    explore("driver, the timer stops whoever runs", || {
        // With this limit the timer considers any service time too long.
        let stop = Bounds { min: TimeSpan::ZERO, max: TimeSpan::from_nanos(1) };
        let driver = driver_that_grants(None, Some(stop));
        let lives = [is_stopped_or_served, is_out_of_time, is_stopped_or_served, leaves];
        let mut threads: Vec<_> = lives.map(|life| request(&driver, life)).into();
        let timed = Arc::clone(&driver);
        threads.push(thread::spawn(move || {
            for may_stop in [true, false, true] {
                timed.may_stop(may_stop, || ());
                let _ = timed.on_timer();
                thread::yield_now();
            }
        }));
        all_is_given_back(&driver, threads);
    });
}

/// A waker that takes the driver's lock when it is called. The call deadlocks if the lock is
/// already held.
struct LockingWaker(Arc<Driver>);

impl Wake for LockingWaker {
    fn wake(self: Arc<Self>) {
        let _ = self.0.status();
    }
}

#[test]
fn schedules_in_which_whoever_is_woken_takes_the_lock() {
    explore("driver, wakers that take the lock", || {
        let driver = driver(None);
        let first = driver.arrive(REQUEST, true, |_| ());
        let waits = driver.arrive(REQUEST, true, |_| ());
        let waker = Waker::from(Arc::new(LockingWaker(Arc::clone(&driver))));
        assert!(matches!(waits.poll(&mut Context::from_waker(&waker)), Poll::Pending));
        let other = request(&driver, leaves);
        let end = thread::spawn(move || first.answered(None, End::ANSWERED));
        all_is_given_back_but(waits, &driver, vec![other, end]);
    });
}

/// Waits for the other threads to end, and checks that `waits` then has the slot.
fn all_is_given_back_but(waits: Ticket, driver: &Driver, others: Vec<JoinHandle<()>>) {
    for other in others {
        other.join().expect("it has not panicked");
    }
    assert!(matches!(waits.decision(), Decision::Granted { .. }));
    drop(waits);
    all_is_given_back(driver, Vec::new());
}
