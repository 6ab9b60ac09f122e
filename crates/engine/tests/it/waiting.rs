//! Tests of the maximum time that a request may wait, and of changes of the limit.

use bywash_engine::{Action, End, Event, Options, Reason, RequestId};
use bywash_units::{Time, TimeSpan};

use crate::site::{BROWSE, CONFIRM, LOGIN, MAIN, SEARCH, Site, classes};

const SECOND: TimeSpan = TimeSpan::from_secs(1);

fn impatient(policy: &str) -> Site {
    let options = Options { limit: 1.into(), max_wait: Some(SECOND * 10), ..Options::default() };
    let mut site = Site::with(policy, &[], classes(), options);
    site.arrive(MAIN);
    site
}

#[test]
fn requests_expire_in_order_of_arrival_whatever_their_class() {
    for policy in ["session-first", "lifo-pri", "always-fifo", "single-queue"] {
        let mut site = impatient(policy);
        site.cpu(1.0);
        let arrived = [CONFIRM, BROWSE, LOGIN].map(|class| {
            site.pass(SECOND);
            site.arrive(class)
        });
        site.pass(SECOND * 7);
        for (id, due) in arrived.into_iter().zip(11..) {
            assert_eq!(site.engine.next_timer(), Some(Time::ZERO + SECOND * due), "{policy}");
            assert_eq!(site.refusal(id), None, "{policy}");
            site.pass(SECOND);
            assert_eq!(site.refusal(id), Some(Reason::WaitedTooLong), "{policy}");
        }
        assert_eq!(site.engine.next_timer(), None, "{policy}");
    }
}

#[test]
fn a_late_timer_expires_all_that_are_due_and_no_other() {
    let mut site = impatient("session-first");
    let due = [MAIN, SEARCH].map(|class| site.arrive(class));
    site.now = site.now + SECOND * 5;
    let young = site.arrive(CONFIRM);
    site.now = site.now + SECOND * 9;
    let mut actions = Vec::new();
    site.engine.on_timer(site.now, &mut actions);
    let expired: Vec<RequestId> = actions
        .iter()
        .filter_map(|action| match action {
            Action::Shed { id, reason: Reason::WaitedTooLong, .. } => Some(*id),
            _ => None,
        })
        .collect();
    assert_eq!((expired.as_slice(), actions.len()), (&due[..], 2));
    assert_eq!(site.next(), young);
}

#[test]
fn an_early_timer_does_nothing() {
    let mut site = impatient("session-first");
    site.arrive(MAIN);
    let mut actions = Vec::new();
    site.engine.on_timer(Time::ZERO + SECOND * 9, &mut actions);
    assert_eq!((actions, site.status().waiting), (vec![], 1));
}

#[test]
fn without_a_longest_wait_there_is_no_timer() {
    let mut site = Site::busy("session-first", &[]);
    site.arrive(MAIN);
    assert_eq!(site.engine.next_timer(), None);
}

#[test]
fn a_higher_limit_fills_at_once() {
    let mut site = Site::busy("single-queue", &[]);
    let waiting = [0; 5].map(|_| site.arrive(MAIN));
    let actions = site.limit(4);
    let expected = waiting[..3].iter().map(|id| Action::Dispatch { id: *id, reason: Reason::Best });
    assert_eq!(actions, expected.collect::<Vec<_>>());
    assert_eq!((site.status().running, site.status().waiting), (4, 2));
}

#[test]
fn a_lower_limit_cancels_nobody_and_starts_nobody_until_enough_have_finished() {
    let options = Options { limit: 4.into(), ..Options::default() };
    let mut site = Site::with("single-queue", &[], classes(), options);
    let ids = [0; 5].map(|_| site.arrive(MAIN));
    assert_eq!(site.limit(2), []);
    assert_eq!(site.finish(), None, "three run and two may");
    assert_eq!(site.finish(), None, "two run and two may");
    assert_eq!(site.finish(), Some((ids[4], Reason::Best)));
}

#[test]
fn a_request_that_ran_and_whose_client_left_gives_its_slot_on() {
    let mut site = Site::busy("session-first", &[]);
    let next = site.arrive(MAIN);
    let actions = site.leave(RequestId(0));
    let cancel = Action::Cancel { id: RequestId(0), reason: Reason::ClientLeft };
    assert_eq!(actions, [cancel, Action::Dispatch { id: next, reason: Reason::Best }]);
    let late = Event::Finished { id: RequestId(0), end: End::ANSWERED };
    assert_eq!(site.tell(late), [], "the upstream's answer came after the client had left");
    assert_eq!(site.status().running, 1);
}

#[test]
fn retry_after_is_the_time_to_drain_the_queue_within_its_bounds() {
    let retry_after = |service: TimeSpan| {
        let mut site = Site::busy("single-queue", &[("capacity", "3")]);
        site.pass(service);
        site.finish();
        site.arrive(MAIN);
        for _ in 0..4 {
            site.arrive(MAIN);
        }
        match site.log.last() {
            Some(Action::Shed { reason: Reason::QueueFull, retry_after, .. }) => *retry_after,
            other => panic!("a full queue refuses, and not {other:?}"),
        }
    };
    assert_eq!(retry_after(TimeSpan::from_millis(10)), SECOND, "never sooner");
    assert_eq!(retry_after(SECOND * 2), SECOND * 8, "three wait, and the one that retries");
    assert_eq!(retry_after(SECOND * 100), SECOND * 32, "never later");
}
