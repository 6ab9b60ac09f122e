//! What keeps a queue useful: repetitions behind first attempts, and no service for those who are
//! presumed to have left.

use bywash_engine::{AttemptKey, Event, Reason, Request, RequestId};
use bywash_units::Span;

use crate::site::{DETAILS, MAIN, Site};

const SECOND: Span = Span::from_secs(1);

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

/// Asks under the same key.
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
    assert_eq!((site.status().running, site.status().mean_service), (1, Span::ZERO));
    assert_eq!(site.tell(Event::Withdrawn { id: RequestId(0) }), [], "once");
    assert_eq!(site.drain(), []);
    assert_eq!(site.refusal(next), None);
}

/// Forty have waited for ten seconds, and have left or were served. Then a request of a session in
/// progress waits for eleven seconds, in the last two of which the queue is full. What becomes of it?
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
