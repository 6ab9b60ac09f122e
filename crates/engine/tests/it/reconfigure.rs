//! Tests of new configurations that are applied while requests run and wait: one small case for
//! each effect. `catalogue_laws` tests that nothing is lost whatever happens.

use bywash_engine::catalog::{self, Settings};
use bywash_engine::{
    Action, Class, ClassId, Options, Reason, RequestId, SessionKey, Standing, Tier,
};
use bywash_units::{Time, TimeSpan, Utility};

use crate::site::{BROWSE, DETAILS, LOGIN, MAIN, PAYMENT, SEARCH, SHIPPING, Site, classes};

const SECOND: TimeSpan = TimeSpan::from_secs(1);

fn settings(policy: &str, given: &[(&str, &str)]) -> Settings {
    let policy = catalog::find(policy).expect("the policy is in the catalogue");
    policy.settings(given.iter().copied()).expect("the parameters are right")
}

fn one_slot() -> Options {
    Options { limit: 1.into(), ..Options::default() }
}

/// Applies a new scheduler, and keeps all other settings.
fn reschedule(site: &mut Site, policy: &str, given: &[(&str, &str)]) -> Vec<Action> {
    site.reconfigure(classes(), Some(&settings(policy, given)), one_slot())
}

fn lost(actions: &[Action]) -> Vec<RequestId> {
    let id = |action: &Action| match action {
        Action::Shed { id, reason: Reason::Reconfigured, .. } => *id,
        other => panic!("only places were lost, and not {other:?}"),
    };
    actions.iter().map(id).collect()
}

#[test]
fn who_waits_keeps_its_turn_and_its_age_in_the_new_scheduler() {
    for policy in ["single-queue", "always-fifo", "lifo-pri", "session-first"] {
        let mut site = Site::busy("single-queue", &[]);
        let waiting = [0; 3].map(|_| {
            site.pass(SECOND);
            site.arrive(MAIN)
        });
        site.pass(SECOND);
        let calm = [("signal", "cpu")];
        let given = if policy == "session-first" { &calm[..] } else { &[] };
        assert_eq!(reschedule(&mut site, policy, given), [], "{policy}");
        assert_eq!(site.status().oldest, SECOND * 3, "{policy}");
        assert_eq!(site.drain(), waiting, "{policy}");
    }
}

#[test]
fn the_new_scheduler_ranks_those_who_waited_before_it() {
    let mut site = Site::busy("single-queue", &[]);
    site.prove(7, &[SHIPPING]);
    let stranger = site.arrive(MAIN);
    let buyer = site.arrive_in(7, PAYMENT);
    reschedule(&mut site, "session-first", &[]);
    assert_eq!(site.drain(), [buyer, stranger]);
}

#[test]
fn a_smaller_queue_keeps_the_oldest_and_sheds_the_others() {
    for policy in ["single-queue", "session-first"] {
        let mut site = Site::busy(policy, &[]);
        let waiting = [0; 5].map(|_| site.arrive(MAIN));
        let actions = reschedule(&mut site, policy, &[("capacity", "2")]);
        assert_eq!(lost(&actions), waiting[2..], "{policy}");
        assert_eq!(site.drain(), waiting[..2], "{policy}");
    }
}

#[test]
fn a_smaller_queue_of_session_first_keeps_the_best() {
    let mut site = Site::busy("session-first", &[]);
    site.prove(7, &[SHIPPING]);
    let strangers = [0; 3].map(|_| site.arrive(MAIN));
    let browsing = site.arrive_in(7, MAIN);
    let buying = site.arrive_in(7, PAYMENT);
    let actions = reschedule(&mut site, "session-first", &[("capacity", "2")]);
    let mut shed = lost(&actions);
    shed.sort();
    assert_eq!(shed, strangers);
    assert_eq!(site.drain(), [buying, browsing]);
}

#[test]
fn a_lower_cap_sheds_what_is_too_much_of_one_principal() {
    let mut site = Site::busy("session-first", &[]);
    let greedy = [0; 4].map(|_| site.arrive_from(1, MAIN));
    let modest = site.arrive_from(2, MAIN);
    let actions = reschedule(&mut site, "session-first", &[("principal_cap", "1")]);
    assert_eq!(lost(&actions), greedy[1..]);
    assert_eq!(site.drain(), [greedy[0], modest]);
}

#[test]
fn those_who_are_shed_are_told_when_the_queue_that_is_left_will_be_drained() {
    let mut site = Site::busy("single-queue", &[]);
    site.pass(SECOND * 2);
    site.finish();
    for _ in 0..6 {
        site.arrive(MAIN);
    }
    for action in reschedule(&mut site, "single-queue", &[("capacity", "3")]) {
        let Action::Shed { retry_after, .. } = action else { panic!("{action:?}") };
        assert_eq!(retry_after, SECOND * 8, "three wait, and the one that retries");
    }
}

#[test]
fn nobody_is_shed_while_a_higher_limit_has_slots() {
    let mut site = Site::busy("single-queue", &[]);
    let waiting = [0; 5].map(|_| site.arrive(MAIN));
    let smaller = settings("single-queue", &[("capacity", "1")]);
    let actions =
        site.reconfigure(classes(), Some(&smaller), Options { limit: 4.into(), ..one_slot() });
    let started = waiting[..3].iter().map(|id| Action::Dispatch { id: *id, reason: Reason::Best });
    assert_eq!(actions[..3], started.collect::<Vec<_>>());
    assert_eq!(lost(&actions[3..]), waiting[4..]);
    assert_eq!((site.status().running, site.status().waiting), (4, 1));
}

#[test]
fn a_lower_limit_lets_those_who_run_end_and_starts_nobody_before() {
    let options = |slots: u32| Options { limit: slots.into(), ..Options::default() };
    let mut site = Site::with("session-first", &[], classes(), options(3));
    let ids = [0; 4].map(|_| site.arrive(MAIN));
    assert_eq!(site.reconfigure(classes(), None, options(1)), []);
    assert_eq!(site.status().running, 3);
    assert_eq!([site.finish(), site.finish()], [None, None]);
    assert_eq!(site.next(), ids[3]);
}

#[test]
fn a_shorter_wait_is_due_at_the_timer_and_a_longer_one_later() {
    let waits = |seconds| Options { max_wait: Some(SECOND * seconds), ..one_slot() };
    let mut site = Site::with("session-first", &[], classes(), waits(10));
    site.arrive(MAIN);
    let id = site.arrive(MAIN);
    site.pass(SECOND * 5);
    let due = |site: &mut Site, options| {
        assert_eq!(site.reconfigure(classes(), None, options), []);
        site.engine.next_timer()
    };
    assert_eq!(due(&mut site, waits(30)), Some(Time::ZERO + SECOND * 30));
    assert_eq!(due(&mut site, one_slot()), None);
    assert_eq!(due(&mut site, waits(2)), Some(Time::ZERO + SECOND * 2), "overdue");
    site.pass(TimeSpan::ZERO);
    assert_eq!(site.refusal(id), Some(Reason::WaitedTooLong));
}

#[test]
fn a_class_that_is_new_can_wait_and_one_that_is_retired_still_does() {
    let mut site = Site::busy("always-fifo", &[]);
    let old = site.arrive(BROWSE);
    let mut more = classes();
    let gift = ClassId(more.len() as u8);
    more.push(Class { name: "gift".to_string(), tier: Tier::Transaction, ..more[0].clone() });
    site.reconfigure(more, Some(&settings("always-fifo", &[])), one_slot());
    let new = site.arrive(gift);
    assert_eq!([site.engine.waiting_of(gift), site.engine.waiting_of(BROWSE)], [1, 1]);
    assert_eq!(site.drain(), [new, old]);
}

#[test]
#[should_panic(expected = "cannot become")]
fn a_class_does_not_lose_its_index() {
    let mut site = Site::busy("always-fifo", &[]);
    site.reconfigure(classes()[1..].to_vec(), Some(&settings("always-fifo", &[])), one_slot());
}

#[test]
#[should_panic(expected = "a scheduler that knows them")]
fn a_new_class_does_not_come_to_a_scheduler_that_does_not_know_it() {
    let mut site = Site::busy("session-first", &[]);
    let more: Vec<Class> = classes().into_iter().chain(classes()).collect();
    site.reconfigure(more, None, one_slot());
}

#[test]
fn sessions_and_pace_survive_a_new_scheduler() {
    let mut site = Site::busy("single-queue", &[]);
    site.prove(7, &[SHIPPING]);
    site.pass(SECOND);
    site.finish();
    reschedule(&mut site, "session-first", &[]);
    let standing = site.engine.standing(site.now, Some(SessionKey(7)), PAYMENT);
    assert_eq!((standing, site.status().mean_service), (Standing::Transaction, SECOND));
}

#[test]
fn with_less_room_the_sessions_served_longest_ago_are_forgotten() {
    let room = |sessions| Options { sessions, ..one_slot() };
    let mut site = Site::with("session-first", &[], classes(), room(4));
    let known = |site: &Site| {
        [1, 2, 3, 4, 5].map(|key| {
            site.engine.standing(site.now, Some(SessionKey(key)), MAIN) == Standing::InProgress
        })
    };
    for session in [1, 2, 3, 4, 1] {
        site.prove(session, &[MAIN]);
    }
    site.reconfigure(classes(), None, room(2));
    assert_eq!(known(&site), [true, false, false, true, false]);
    site.prove(5, &[MAIN]);
    assert_eq!(known(&site), [true, false, false, false, true]);
    site.reconfigure(classes(), None, room(3));
    site.prove(2, &[MAIN]);
    assert_eq!(known(&site), [true, true, false, false, true]);
}

#[test]
fn a_new_time_to_live_holds_for_the_sessions_that_there_are() {
    let lives = |seconds| Options { session_ttl: SECOND * seconds, ..one_slot() };
    let mut site = Site::with("session-first", &[], classes(), lives(60));
    site.prove(7, &[MAIN]);
    site.pass(SECOND * 30);
    let mut standing = |options| {
        site.reconfigure(classes(), None, options);
        site.engine.standing(site.now, Some(SessionKey(7)), MAIN)
    };
    assert_eq!(standing(lives(29)), Standing::New);
    assert_eq!(standing(lives(30)), Standing::InProgress);
}

#[test]
fn a_path_that_is_configured_otherwise_counts_from_the_next_request() {
    let mut site = Site::busy("session-first", &[]);
    site.prove(7, &[LOGIN]);
    let before = site.arrive_in(7, PAYMENT);
    let mut shorter = classes();
    shorter[PAYMENT.index()].requires = [LOGIN].into_iter().collect();
    assert_eq!(site.reconfigure(shorter, None, one_slot()), []);
    let after = site.arrive_in(7, PAYMENT);
    assert_eq!(site.drain(), [after, before]);
}

#[test]
fn a_detector_starts_new_with_a_new_scheduler_and_goes_on_without_one() {
    let mut site = Site::busy("lifo-pri", &[]);
    site.cpu(1.0);
    site.reconfigure(classes(), None, one_slot());
    assert!(site.status().lifo);
    reschedule(&mut site, "lifo-pri", &[]);
    assert!(!site.status().lifo);
}

#[test]
fn a_backlog_is_overload_at_the_next_look_of_a_new_scheduler() {
    let mut site = Site::busy("session-first", &[]);
    let waiting = [0; 3].map(|_| site.arrive(MAIN));
    site.pass(SECOND * 10);
    reschedule(&mut site, "session-first", &[("floor_share", "0")]);
    assert_eq!(site.next(), waiting[2], "newest first");
}

#[test]
fn settings_say_whether_the_scheduler_changes() {
    let was = settings("session-first", &[]);
    let changes = |new: &Settings, classes: &[Class]| {
        new.changed_scheduler(classes, &was, &crate::site::classes()).is_some()
    };
    assert!(!changes(&settings("session-first", &[("capacity", "100")]), &classes()));
    assert!(changes(&settings("session-first", &[("capacity", "99")]), &classes()));
    assert!(changes(&settings("single-queue", &[]), &classes()));
    assert!(changes(&was, &classes()[1..]));
    let with = |change: fn(&mut Class)| {
        let mut classes = classes();
        change(&mut classes[DETAILS.index()]);
        changes(&was, &classes)
    };
    assert!(with(|class| class.tier = Tier::Transaction));
    assert!(with(|class| class.utility = Utility::new(1.0)));
    assert!(with(|class| class.queue = Some(7)));
    assert!(!with(|class| class.name = "detail".to_string()));
    assert!(!with(|class| class.requires = [SEARCH].into_iter().collect()));
}
