//! Tests of the guards of a queue: repetitions go behind first attempts, and requests whose clients
//! have presumably left are refused.

use bywash_engine::catalog::find_limit;
use bywash_engine::{Action, AttemptKey, End, Event, Options, Reason, Request, RequestId};
use bywash_units::TimeSpan;

use crate::site::{DETAILS, MAIN, Site, classes};

const SECOND: TimeSpan = TimeSpan::from_secs(1);

#[test]
fn who_says_that_she_asks_again_goes_after_those_who_ask_first() {
    for (retries, last) in [("declared", true), ("all", true), ("none", false)] {
        let mut site = Site::busy("session-first", &[("retries", retries)]);
        let again = site.request(Request { retry: true, ..Request::of(MAIN) });
        let first = site.arrive(DETAILS);
        let expected = if last { [first, again] } else { [again, first] };
        assert_eq!(site.drain(), expected, "{retries}");
    }
}

/// Makes a request whose attempt key is always the same.
fn attempt(site: &mut Site) -> RequestId {
    site.request(Request { attempt: Some(AttemptKey(7)), ..Request::of(MAIN) })
}

#[test]
fn who_was_lost_and_asks_again_goes_last_only_where_that_is_wanted() {
    for (retries, last) in [("all", true), ("declared", false)] {
        let mut site = Site::busy("session-first", &[("retries", retries)]);
        let lost = attempt(&mut site);
        site.leave(lost);
        let again = attempt(&mut site);
        let first = site.arrive(DETAILS);
        let expected = if last { [first, again] } else { [again, first] };
        assert_eq!(site.drain(), expected, "{retries}");
    }
}

#[test]
fn what_was_only_observed_is_no_attempt_that_was_lost() {
    let mut site = Site::busy("session-first", &[("retries", "all")]);
    let id = attempt(&mut site);
    site.tell(Event::Withdrawn { id });
    assert_eq!(site.status().waiting, 0);
    let again = attempt(&mut site);
    let first = site.arrive(DETAILS);
    assert_eq!(site.drain(), [again, first]);
}

#[test]
fn a_slot_that_was_only_observed_is_given_on_and_nothing_is_learned() {
    let mut site = Site::busy("session-first", &[]);
    let next = site.arrive(DETAILS);
    site.now = site.now + SECOND;
    site.tell(Event::Withdrawn { id: RequestId(0) });
    assert_eq!((site.status().running, site.status().mean_service), (1, TimeSpan::ZERO));
    assert_eq!(site.tell(Event::Withdrawn { id: RequestId(0) }), [], "once");
    assert_eq!(site.drain(), []);
    assert_eq!(site.refusal(next), None);
}

/// Returns whether newest first is in force one second after `ask`, if a loss of a twentieth is
/// overload.
fn is_overload(given: &[(&str, &str)], ask: impl FnOnce(&mut Site)) -> bool {
    let all = [given, &[("signal", "loss"), ("loss", "0.05"), ("interval", "1s")]].concat();
    let mut site = Site::new("session-first", &all);
    ask(&mut site);
    site.now = site.now + SECOND;
    site.arrive(DETAILS);
    site.status().lifo
}

#[test]
fn loss_is_the_share_of_all_who_come_and_not_of_those_who_wait() {
    let lose_one = |site: &mut Site| {
        for _ in 0..3 {
            site.arrive(MAIN);
        }
    };
    assert!(is_overload(&[("capacity", "1")], lose_one));
    let served_before = |site: &mut Site| {
        for _ in 0..100 {
            site.arrive(MAIN);
            site.finish();
        }
        lose_one(site);
    };
    assert!(!is_overload(&[("capacity", "1")], served_before));
}

#[test]
fn one_address_that_asks_too_often_is_no_overload_and_puts_nobody_else_off() {
    let flood = |site: &mut Site| {
        for _ in 0..50 {
            site.arrive_from(1, MAIN);
        }
    };
    assert!(!is_overload(&[("principal_cap", "1")], flood));
    let mut site = Site::busy("session-first", &[("principal_cap", "1"), ("capacity", "1")]);
    for _ in 0..100 {
        flood(&mut site);
        site.now = site.now + SECOND;
    }
    site.arrive(MAIN);
    let mut pauses = site.log.iter().filter_map(|action| match action {
        Action::Shed { reason: Reason::QueueFull | Reason::Evicted, retry_after, .. } => {
            Some(*retry_after)
        }
        _ => None,
    });
    assert_eq!(pauses.next_back(), Some(SECOND));
}

#[test]
fn a_client_that_reads_slowly_is_no_slow_application() {
    let slots = |held_up: bool| {
        let limit = find_limit("aimd").unwrap().settings([("initial", "10")]).unwrap();
        let options = Options { limit, ..Options::default() };
        let mut site = Site::with("session-first", &[], classes(), options);
        for _ in 0..20 {
            let id = site.arrive(MAIN);
            site.now = site.now + SECOND * 60;
            site.tell(Event::Finished {
                id,
                end: End::Answered { in_time: true, held_up, done: true },
            });
        }
        site.status().limit
    };
    assert!(slots(false) < 10);
    assert_eq!(slots(true), 10);
}

/// Lets a request of a session in progress wait for eleven seconds, in the last two of which the
/// queue is full. Before that, forty requests have waited for ten seconds. `leave` says whether
/// their clients then left; otherwise they were served. Returns the reason for which the request is
/// refused, if it is.
fn after_eleven_seconds(leave: bool) -> Option<Reason> {
    let given = [("patience", "20s"), ("capacity", "4")];
    let mut site = Site::busy("session-first", &given);
    for _ in 0..40 {
        let id = site.arrive(MAIN);
        site.now = site.now + SECOND * 10;
        if leave {
            site.leave(id);
        } else {
            site.next();
        }
    }
    site.prove(1, &[MAIN]);
    let old = site.arrive_in(1, MAIN);
    site.now = site.now + SECOND * 9;
    (0..5).for_each(|_| {
        site.arrive(MAIN);
    });
    site.now = site.now + SECOND * 2;
    site.next();
    site.refusal(old)
}

#[test]
fn where_nobody_is_seen_to_leave_who_has_waited_for_half_the_patience_is_presumed_gone() {
    assert_eq!(after_eleven_seconds(false), Some(Reason::WaitedTooLong));
    assert_eq!(after_eleven_seconds(true), None, "otherwise she is there, and first");
}

#[test]
fn an_evicted_request_was_there_to_be_seen() {
    let mut site = Site::busy("session-first", &[("patience", "20s"), ("capacity", "2")]);
    site.prove(1, &[MAIN]);
    // Each arrival evicts a request that has waited for ten seconds, and no client leaves.
    for _ in 0..40 {
        site.arrive(MAIN);
        site.now = site.now + SECOND * 5;
    }
    let old = site.arrive_in(1, MAIN);
    site.now = site.now + SECOND * 11;
    site.arrive(MAIN);
    site.next();
    assert_eq!(site.refusal(old), Some(Reason::WaitedTooLong));
}
