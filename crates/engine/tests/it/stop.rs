//! Tests of running requests that are stopped, and of those that are not.

use bywash_engine::Bounds;
use bywash_engine::catalog::find_termination;
use bywash_engine::{Action, ClassSet, End, Event, Options, Reason, Request, RequestId};
use bywash_units::{TimeSpan, Utility};

use crate::site::{CONFIRM, DETAILS, MAIN, SEARCH, Site, classes};

const LEAST: TimeSpan = TimeSpan::from_millis(100);
const MOST: TimeSpan = TimeSpan::from_secs(5);
const SHORT: TimeSpan = TimeSpan::from_millis(10);

fn options(name: &str, given: &[(&str, &str)]) -> Options {
    let policy = find_termination(name).expect("the policy is in the catalogue");
    let termination = policy.settings(given.iter().copied()).expect("the parameters are right");
    Options { limit: 1.into(), termination, ..Options::default() }
}

/// Returns a site with one slot and one place in the queue, and a search that can be stopped.
fn site(name: &str, given: &[(&str, &str)]) -> Site {
    let mut classes = classes();
    classes[SEARCH.index()].stop = Some(Bounds { min: LEAST, max: MOST });
    Site::with("session-first", &[("capacity", "1")], classes, options(name, given))
}

fn run_for(site: &mut Site, span: TimeSpan) {
    site.arrive(SEARCH);
    site.now = site.now + span;
    site.finish();
}

/// Returns a site that has answered a hundred searches, of which every tenth took `long`.
fn taught(name: &str, long: TimeSpan) -> Site {
    let mut site = site(name, &[]);
    for i in 0..100 {
        run_for(&mut site, if i % 10 == 9 { long } else { SHORT });
    }
    site.now = site.now + TimeSpan::from_secs(2);
    site
}

/// Lets a search run for `age` while another one waits, and lets a third one arrive. Returns all
/// three.
fn crowded(site: &mut Site, age: TimeSpan) -> [RequestId; 3] {
    let [running, waiting] = [site.arrive(SEARCH), site.arrive(SEARCH)];
    site.now = site.now + age;
    [running, waiting, site.arrive(SEARCH)]
}

#[test]
fn one_that_can_be_stopped_is_stopped_when_it_has_run_for_its_most() {
    let mut site = site("fixed", &[]);
    let [page, search] = [site.arrive(MAIN), site.arrive(SEARCH)];
    site.pass(MOST * 9);
    assert_eq!(site.stopped(page), None, "nobody has said that it can be stopped");
    site.finish();
    let next = site.arrive(MAIN);
    assert_eq!(site.engine.next_timer(), Some(site.now + MOST));
    site.pass(MOST);
    assert_eq!(site.stopped(search), Some(Reason::RanTooLong));
    let last = [site.log[site.log.len() - 2], site.log[site.log.len() - 1]];
    assert!(
        matches!(last[0], Action::Terminate { retry_after, .. } if retry_after >= TimeSpan::from_secs(1))
    );
    assert_eq!(last[1], Action::Dispatch { id: next, reason: Reason::Best });
    assert_eq!(site.status().running, 1);
}

#[test]
fn one_whose_response_has_begun_is_never_stopped() {
    let mut site = site("fixed", &[]);
    let search = site.arrive(SEARCH);
    site.tell(Event::Answering { id: search });
    assert_eq!(site.engine.next_timer(), None);
    site.pass(MOST * 9);
    assert_eq!(site.stopped(search), None);
    site.tell(Event::Finished { id: search, end: End::ANSWERED });
    assert_eq!(site.status().running, 0);
}

#[test]
fn the_threshold_falls_with_what_is_lost_and_rises_again() {
    let mut site = site("loss", &[("interval", "10s")]);
    let [first, ..] = crowded(&mut site, TimeSpan::ZERO);
    assert_eq!(site.engine.next_timer(), Some(site.now + MOST));
    // One of three requests is lost in this interval, so the next interval grants only the minimum.
    site.pass(TimeSpan::from_millis(4_900));
    site.finish();
    site.drain();
    assert_eq!(site.stopped(first), None);
    site.now = site.now + TimeSpan::from_secs(6);
    let short = site.arrive(SEARCH);
    site.pass(LEAST);
    assert_eq!(site.stopped(short), Some(Reason::RanTooLong));
    // The only request of this interval was stopped, but no request arrives in the next one.
    site.now = site.now + TimeSpan::from_secs(30);
    site.arrive(SEARCH);
    assert_eq!(site.engine.next_timer(), Some(site.now + MOST));
}

fn all_end(site: &mut Site) {
    while site.status().running > 0 {
        site.finish();
    }
}

/// Returns the maximum running time of a search after an interval in which one of two requests was
/// lost and `happens` was called twenty times.
fn granted_after(happens: impl Fn(&mut Site)) -> TimeSpan {
    let mut site = site("loss", &[("interval", "10s")]);
    crowded(&mut site, TimeSpan::ZERO);
    for _ in 0..20 {
        all_end(&mut site);
        happens(&mut site);
    }
    all_end(&mut site);
    site.now = site.now + TimeSpan::from_secs(11);
    site.arrive(SEARCH);
    site.engine.next_timer().expect("somebody runs who can be stopped").since(site.now)
}

#[test]
fn a_crowd_that_leaves_does_not_hide_what_is_lost_of_those_who_stay() {
    assert_eq!(granted_after(|_| ()), LEAST);
    let waits_and_leaves = |site: &mut Site| {
        let [_, waiting] = [site.arrive(MAIN), site.arrive(SEARCH)];
        assert_eq!(site.status().waiting, 1);
        site.leave(waiting);
    };
    let runs_and_leaves = |site: &mut Site| {
        let running = site.arrive(SEARCH);
        site.leave(running);
    };
    let is_out_of_time = |site: &mut Site| {
        let [_, waiting] = [site.arrive(MAIN), site.arrive(SEARCH)];
        site.tell(Event::OutOfTime { id: waiting });
    };
    assert_eq!(granted_after(waits_and_leaves), LEAST);
    assert_eq!(granted_after(runs_and_leaves), LEAST);
    assert_eq!(granted_after(is_out_of_time), LEAST);
    // A request that is served counts as an arrival.
    let is_served = |site: &mut Site| {
        site.arrive(SEARCH);
    };
    assert_eq!(granted_after(is_served), MOST);
}

#[test]
fn before_one_is_lost_the_one_that_promises_less_is_stopped_and_the_best_gets_its_slot() {
    let mut site = taught("marginal", TimeSpan::from_secs(4));
    let [long, waiting, new] = crowded(&mut site, TimeSpan::from_millis(500));
    assert_eq!(site.stopped(long), Some(Reason::Preempted));
    assert_eq!(site.refusal(new), None);
    assert_eq!(site.log.last(), Some(&Action::Dispatch { id: waiting, reason: Reason::Best }));
    assert_eq!((site.status().running, site.status().waiting), (1, 1));
    site.now = site.now + SHORT;
    assert_eq!(site.next(), new);
}

/// Returns a site with these parameters of the queue, which has learned that one search in ten
/// takes long.
fn queue_that_has_learned(given: &[(&str, &str)]) -> Site {
    let mut classes = classes();
    classes[SEARCH.index()].stop = Some(Bounds { min: LEAST, max: MOST });
    let mut site = Site::with("session-first", given, classes, options("marginal", &[]));
    for i in 0..100 {
        run_for(&mut site, if i % 10 == 9 { TimeSpan::from_secs(4) } else { SHORT });
    }
    site.now = site.now + TimeSpan::from_secs(2);
    site
}

#[test]
fn one_is_stopped_when_the_queue_is_nearly_full_and_for_a_while_already_when_it_fills() {
    let mut site = queue_that_has_learned(&[("capacity", "16")]);
    let mut stopped_at = |pause: TimeSpan| {
        while site.status().running > 0 {
            site.finish();
        }
        site.now = site.now + pause;
        let long = site.arrive(SEARCH);
        site.now = site.now + TimeSpan::from_secs(1);
        let mut came = 0;
        while site.stopped(long).is_none() {
            site.arrive(SEARCH);
            came += 1;
        }
        assert_eq!((site.status().running, site.status().waiting), (1, came - 1));
        came
    };
    assert_eq!(stopped_at(TimeSpan::from_secs(2)), 15);
    assert_eq!(stopped_at(TimeSpan::from_secs(2)), 5);
    assert_eq!(stopped_at(TimeSpan::from_secs(4)), 5, "this one did not renew the while");
    assert_eq!(stopped_at(TimeSpan::from_secs(10)), 15);
}

#[test]
fn one_is_stopped_when_another_has_waited_for_a_tenth_of_patience_however_long_the_queue_is() {
    let mut site = queue_that_has_learned(&[("capacity", "1000"), ("patience", "20s")]);
    let long = site.arrive(SEARCH);
    site.arrive(SEARCH);
    site.now = site.now + TimeSpan::from_millis(1_999);
    site.arrive(SEARCH);
    assert_eq!(site.stopped(long), None);
    site.now = site.now + TimeSpan::from_millis(1);
    site.arrive(SEARCH);
    assert_eq!(site.stopped(long), Some(Reason::Preempted));
}

#[test]
fn a_stranger_that_has_waited_for_long_does_not_make_requests_of_sessions_be_stopped() {
    let mut site = queue_that_has_learned(&[("capacity", "1000"), ("patience", "20s")]);
    for session in 1..=2 {
        site.prove(session, &[MAIN]);
    }
    let long = site.arrive_in(1, SEARCH);
    site.arrive(SEARCH);
    site.now = site.now + TimeSpan::from_secs(3);
    site.arrive_in(2, SEARCH);
    assert_eq!(site.stopped(long), None);
}

#[test]
fn where_the_limit_has_fallen_nobody_is_stopped_as_that_makes_no_room() {
    for (slots, expected) in [(1, None), (2, Some(Reason::Preempted))] {
        let mut site = taught("marginal", TimeSpan::from_secs(4));
        site.limit(2);
        let long = site.arrive(SEARCH);
        site.arrive(SEARCH);
        site.limit(slots);
        site.arrive(SEARCH);
        site.now = site.now + TimeSpan::from_secs(1);
        site.arrive(SEARCH);
        assert_eq!(site.stopped(long), expected, "{slots} slots");
    }
}

#[test]
fn nobody_is_stopped_before_the_least_of_its_class() {
    let mut site = taught("marginal", TimeSpan::from_secs(4));
    let [long, _, new] = crowded(&mut site, TimeSpan::from_millis(99));
    assert_eq!(site.stopped(long), None);
    assert!(site.refusal(new).is_some());
}

#[test]
fn nobody_is_stopped_where_all_take_as_long_as_each_other() {
    let mut site = site("marginal", &[]);
    for _ in 0..100 {
        run_for(&mut site, TimeSpan::from_millis(400));
    }
    site.now = site.now + TimeSpan::from_secs(2);
    let [long, _, new] = crowded(&mut site, TimeSpan::from_millis(300));
    assert_eq!(site.stopped(long), None, "it is nearly done");
    assert!(site.refusal(new).is_some());
}

#[test]
fn who_has_proven_more_is_not_stopped_for_who_has_proven_less() {
    for (proven, expected) in [(true, None), (false, Some(Reason::Preempted))] {
        let mut site = taught("marginal", TimeSpan::from_secs(4));
        if proven {
            site.prove(1, &[MAIN]);
        }
        let long = site.arrive_in(1, SEARCH);
        site.arrive_in(1, SEARCH);
        site.now = site.now + TimeSpan::from_secs(1);
        site.arrive(SEARCH);
        assert_eq!(site.stopped(long), expected, "proven: {proven}");
    }
}

#[test]
fn who_comes_and_leaves_stops_nobody() {
    let mut site = taught("marginal", TimeSpan::from_secs(4));
    let long = site.arrive(SEARCH);
    site.now = site.now + TimeSpan::from_secs(1);
    for _ in 0..100 {
        let hasty = site.arrive(SEARCH);
        site.leave(hasty);
    }
    assert_eq!(site.stopped(long), None);
}

#[test]
fn nobody_is_stopped_whom_the_driver_would_not_stop() {
    let mut site = taught("marginal", TimeSpan::from_secs(4));
    let request = Request { cancellable: false, ..Request::of(SEARCH) };
    let long = site.request(request);
    site.arrive(SEARCH);
    site.pass(TimeSpan::from_secs(1));
    let new = site.arrive(SEARCH);
    assert_eq!((site.stopped(long), site.refusal(new)), (None, Some(Reason::QueueFull)));
    site.pass(MOST * 2);
    assert_eq!(site.stopped(long), None);
}

#[test]
fn a_path_that_some_read_as_a_search_is_stopped_like_one() {
    let mut site = site("fixed", &[]);
    let odd = site.request(Request { also: ClassSet::NONE.with(SEARCH), ..Request::of(MAIN) });
    assert_eq!(site.stopped(odd), None);
    site.pass(MOST * 2);
    assert_eq!(site.stopped(odd), Some(Reason::RanTooLong));
    let plain = site.arrive(MAIN);
    site.pass(MOST * 2);
    assert_eq!(site.stopped(plain), None);
}

#[test]
fn nobody_is_stopped_for_one_that_would_not_get_the_slot() {
    // Short pages arrive, but a report that takes as long as the running one waits in front of
    // them.
    let mut classes = classes();
    classes[SEARCH.index()].stop = Some(Bounds { min: LEAST, max: MOST });
    let given = [("capacity", "8")];
    let mut site = Site::with("session-first", &given, classes, options("marginal", &[]));
    for _ in 0..40 {
        run_for(&mut site, TimeSpan::from_secs(3));
        site.arrive(MAIN);
        site.now = site.now + SHORT;
        site.finish();
    }
    let [running, _] = [site.arrive(SEARCH), site.arrive(SEARCH)];
    site.now = site.now + TimeSpan::from_secs(1);
    for _ in 0..20 {
        site.arrive(MAIN);
    }
    assert_eq!(site.stopped(running), None);
}

#[test]
fn a_request_that_waits_behind_the_others_does_not_keep_a_long_one_running() {
    // Nothing is learned about the class of details, and first requests of that class go last.
    let mut classes = classes();
    classes[SEARCH.index()].stop = Some(Bounds { min: LEAST, max: MOST });
    classes[MAIN.index()].name = "other".into();
    classes[DETAILS.index()].utility = Utility::new(1.0);
    for waits_behind in [false, true] {
        let given = [("capacity", "4")];
        let options = options("marginal", &[]);
        let mut site = Site::with("session-first", &given, classes.clone(), options);
        for i in 0..100 {
            run_for(&mut site, if i % 10 == 9 { TimeSpan::from_secs(4) } else { SHORT });
        }
        site.now = site.now + TimeSpan::from_secs(2);
        let long = site.arrive(SEARCH);
        if waits_behind {
            site.arrive(DETAILS);
        }
        site.now = site.now + TimeSpan::from_secs(1);
        let new: Vec<RequestId> = (0..8).map(|_| site.arrive(SEARCH)).collect();
        assert_eq!(site.stopped(long), Some(Reason::Preempted), "waits behind: {waits_behind}");
        let started = |action: &Action| match action {
            Action::Dispatch { id, .. } => Some(*id),
            _ => None,
        };
        let last = site.log.iter().filter_map(started).next_back();
        assert!(last.is_some_and(|last| new.contains(&last)), "the slot went to {last:?}");
    }
}

#[test]
fn a_request_that_waits_behind_the_others_for_long_is_no_reason_to_stop_one() {
    let mut classes = classes();
    classes[SEARCH.index()].stop = Some(Bounds { min: LEAST, max: MOST });
    classes[MAIN.index()].name = "other".into();
    classes[DETAILS.index()].utility = Utility::new(1.0);
    let given = [("floor_share", "0")];
    let mut site = Site::with("session-first", &given, classes, options("marginal", &[]));
    for i in 0..100 {
        run_for(&mut site, if i % 10 == 9 { TimeSpan::from_secs(4) } else { SHORT });
    }
    site.arrive(SEARCH);
    let minor = site.arrive(DETAILS);
    for _ in 0..30 {
        site.now = site.now + TimeSpan::from_secs(1);
        site.arrive(SEARCH);
        site.finish();
    }
    assert!(!site.log.iter().any(|action| matches!(action, Action::Terminate { .. })));
    assert_eq!(site.drain().last(), Some(&minor), "it has waited all the time");
}

#[test]
fn a_short_maximum_wait_is_what_a_long_wait_is_compared_with() {
    for (max_wait, expected) in
        [(TimeSpan::from_secs(1), Some(Reason::Preempted)), (TimeSpan::MAX, None)]
    {
        let mut classes = classes();
        classes[SEARCH.index()].stop = Some(Bounds { min: LEAST, max: MOST });
        let options = Options { max_wait: Some(max_wait), ..options("marginal", &[]) };
        let mut site = Site::with("session-first", &[], classes, options);
        for i in 0..100 {
            run_for(&mut site, if i % 10 == 9 { TimeSpan::from_secs(4) } else { SHORT });
        }
        site.now = site.now + TimeSpan::from_secs(2);
        let [long, _] = [site.arrive(SEARCH), site.arrive(SEARCH)];
        // This wait is a tenth of the maximum wait, and much less than a tenth of the patience.
        site.now = site.now + TimeSpan::from_millis(200);
        site.arrive(SEARCH);
        assert_eq!(site.stopped(long), expected, "{max_wait}");
    }
}

#[test]
fn one_that_many_ask_for_at_once_stops_nobody() {
    let mut classes = classes();
    classes[SEARCH.index()].stop = Some(Bounds { min: LEAST, max: MOST });
    let given = [("principal_cap", "1")];
    let mut site = Site::with("session-first", &given, classes, options("marginal", &[]));
    for i in 0..100 {
        run_for(&mut site, if i % 10 == 9 { TimeSpan::from_secs(4) } else { SHORT });
    }
    let long = site.arrive(SEARCH);
    site.now = site.now + TimeSpan::from_secs(1);
    for _ in 0..50 {
        site.arrive_from(7, SEARCH);
    }
    assert_eq!(site.stopped(long), None);
}

#[test]
fn what_the_other_request_is_worth_counts() {
    for (class, expected) in [(DETAILS, None), (CONFIRM, Some(Reason::Preempted))] {
        let mut site = site("marginal", &[]);
        for (class, millis) in [(SEARCH, 400), (DETAILS, 1500), (CONFIRM, 1500)] {
            for _ in 0..40 {
                site.arrive(class);
                site.now = site.now + TimeSpan::from_millis(millis);
                site.finish();
            }
        }
        let search = site.arrive(SEARCH);
        site.arrive(class);
        site.now = site.now + TimeSpan::from_millis(300);
        site.arrive(class);
        assert_eq!(site.stopped(search), expected, "for {class:?}");
    }
}

#[test]
fn a_lower_limit_and_another_policy_leave_everything_in_order() {
    let mut site = taught("marginal", TimeSpan::from_secs(4));
    let search = site.arrive(SEARCH);
    let with_bounds = site.engine.classes().to_vec();
    site.reconfigure(with_bounds.clone(), None, options("fixed", &[]));
    assert_eq!(site.engine.next_timer(), Some(site.now + MOST));
    site.reconfigure(classes(), None, options("fixed", &[]));
    assert_eq!(site.engine.next_timer(), None, "its class says so no longer");
    site.reconfigure(with_bounds, None, options("never", &[]));
    site.pass(MOST * 2);
    assert_eq!(site.stopped(search), None);
    site.leave(search);
    assert_eq!(site.status().running, 0);
}

#[test]
fn one_that_has_proven_more_shields_nobody_behind_it() {
    let mut site = taught("marginal", TimeSpan::from_secs(4));
    site.limit(2);
    site.prove(1, &[MAIN]);
    let shielded = site.arrive_in(1, SEARCH);
    site.now = site.now + SHORT;
    let behind = site.arrive(SEARCH);
    site.arrive(SEARCH);
    site.now = site.now + TimeSpan::from_secs(1);
    site.arrive(SEARCH);
    assert_eq!((site.stopped(shielded), site.stopped(behind)), (None, Some(Reason::Preempted)));
}

#[test]
fn the_longest_of_all_standings_is_overdue_first() {
    let mut site = site("fixed", &[]);
    site.limit(2);
    site.prove(1, &[MAIN]);
    let new = site.arrive(SEARCH);
    site.now = site.now + LEAST;
    let proven = site.arrive_in(1, SEARCH);
    let stopped = |site: &Site| [site.stopped(new), site.stopped(proven)];
    site.pass(MOST);
    assert_eq!(stopped(&site), [Some(Reason::RanTooLong); 2], "each in its turn");
    let new = site.arrive(SEARCH);
    site.now = site.now + LEAST;
    site.arrive_in(1, SEARCH);
    let left = TimeSpan::from_millis(4_900);
    assert_eq!(site.engine.next_timer(), Some(site.now + left));
    site.pass(left);
    assert_eq!((site.stopped(new), site.status().running), (Some(Reason::RanTooLong), 1));
}

#[test]
fn while_nobody_may_be_stopped_nobody_is_and_afterwards_who_is_overdue() {
    let mut site = taught("marginal", TimeSpan::from_secs(4));
    site.engine.may_stop(false);
    let [long, _, new] = crowded(&mut site, TimeSpan::from_secs(1));
    assert_eq!((site.stopped(long), site.refusal(new)), (None, Some(Reason::QueueFull)));
    assert_eq!(site.engine.next_timer(), None);
    site.pass(MOST * 2);
    let mut actions = Vec::new();
    site.engine.on_timer(site.now, &mut actions);
    assert_eq!(actions, [], "a driver may be early");
    assert_eq!(site.stopped(long), None);
    site.engine.may_stop(true);
    site.pass(TimeSpan::ZERO);
    assert_eq!(site.stopped(long), Some(Reason::RanTooLong));
}

#[test]
fn errors_that_come_quickly_are_no_quick_successes() {
    for (done, expected) in [(true, Some(Reason::Preempted)), (false, None)] {
        let mut site = site("marginal", &[]);
        let quick = End::Answered { in_time: true, held_up: false, done };
        for i in 0..400 {
            let id = site.arrive(SEARCH);
            let (span, end) = if i % 10 == 9 { (400, End::ANSWERED) } else { (10, quick) };
            site.now = site.now + TimeSpan::from_millis(span);
            site.tell(Event::Finished { id, end });
        }
        site.now = site.now + TimeSpan::from_secs(2);
        let [long, ..] = crowded(&mut site, TimeSpan::from_millis(150));
        assert_eq!(site.stopped(long), expected, "done: {done}");
    }
}

#[test]
fn whose_client_waits_no_longer_is_refused_and_nobody_else_pays_for_it() {
    let mut site = site("loss", &[("interval", "10s")]);
    let running = site.arrive(SEARCH);
    for _ in 0..100 {
        let hasty = site.arrive(SEARCH);
        site.tell(Event::OutOfTime { id: hasty });
        assert_eq!(site.refusal(hasty), Some(Reason::WaitedTooLong));
    }
    let pause = |site: &Site| match site.log.last() {
        Some(Action::Shed { retry_after, .. }) => *retry_after,
        other => panic!("{other:?}"),
    };
    let after_many = pause(&site);
    assert!(after_many <= TimeSpan::from_secs(1), "{after_many}");
    // This event has no effect on a running request.
    site.tell(Event::OutOfTime { id: running });
    assert_eq!((site.status().running, site.status().waiting), (1, 0));
    site.finish();
    site.now = site.now + TimeSpan::from_secs(11);
    site.arrive(SEARCH);
    assert_eq!(site.engine.next_timer(), Some(site.now + MOST), "the threshold is where it was");
}
