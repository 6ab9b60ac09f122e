//! Tests of the table of requests, as a driver uses it.

use std::task::{Context, Poll, Waker};

use bywash_engine::{Decision, End, Event, Options, Request, RequestTable, Wakers};
use bywash_units::Time;

use crate::site::{MAIN, classes, engine};

#[test]
fn a_decision_returns_the_waker_and_a_released_number_is_used_again() {
    let options = Options { limit: 1.into(), ..Options::default() };
    let mut requests = RequestTable::new(engine("always-fifo", &[], classes(), options));
    let (now, mut wakers) = (Time::ZERO, Wakers::new());
    let runs = requests.arrive(now, Request::of(MAIN), &mut wakers);
    let waits = requests.arrive(now, Request::of(MAIN), &mut wakers);
    assert!(matches!(requests.decision(runs), Decision::Granted { .. }));

    let cx = Context::from_waker(Waker::noop());
    let granted = |decision: Decision| matches!(decision, Decision::Granted { .. }).then_some(());
    assert_eq!(requests.poll(waits, &cx, granted), Poll::Pending);
    assert!(wakers.is_empty());

    let end = Event::Finished { id: runs, end: End::ANSWERED };
    requests.release(now, runs, end, &mut wakers);
    assert_eq!(wakers.len(), 1);
    assert_eq!(requests.poll(waits, &cx, granted), Poll::Ready(()));
    assert_eq!(requests.arrive(now, Request::of(MAIN), &mut wakers), runs);
}
