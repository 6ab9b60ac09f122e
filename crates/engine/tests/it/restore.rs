//! Tests of state that outlives the process: exported from one engine, and imported into a fresh
//! one.

use std::cmp::Reverse;

use bywash_engine::{
    Action, ClassId, ClassSet, Cursor, MeanService, Options, Reason, Remembered, SessionKey, Slice,
    Standing,
};
use bywash_units::TimeSpan;

use crate::dice::Dice;
use crate::site::{LOGIN, MAIN, PAYMENT, SHIPPING, Site, classes};

const SECOND: TimeSpan = TimeSpan::from_secs(1);
const TTL: TimeSpan = TimeSpan::from_secs(60);

fn site(sessions: u32) -> Site {
    let options = Options { limit: 1.into(), sessions, session_ttl: TTL, ..Options::default() };
    Site::with("session-first", &[], classes(), options)
}

fn export(site: &Site) -> Vec<Remembered> {
    let (mut all, mut cursor) = (Vec::new(), Cursor::default());
    while site.engine.copy_sessions(site.now, &mut cursor, 3, &mut all) == Slice::More {}
    all.sort_by_key(|session| Reverse(session.age));
    all
}

/// Returns a site whose process starts when that of `old` ends. The site has room for `sessions`
/// sessions.
fn restart(old: &Site, sessions: u32) -> Site {
    let mut new = site(sessions);
    for session in export(old) {
        new.engine.restore_session(new.now, session);
    }
    new.engine.restore_mean_service(old.engine.mean_service());
    new
}

fn standings(site: &Site) -> Vec<Standing> {
    let of = |key| {
        let standing = move |class| site.engine.standing(site.now, Some(SessionKey(key)), class);
        (0..classes().len() as u8).map(ClassId).map(standing)
    };
    (0..12).flat_map(of).collect()
}

fn remembered(key: u64, age: TimeSpan) -> Remembered {
    Remembered { key: SessionKey(key), age, served: ClassSet::NONE.with(SHIPPING) }
}

/// Checks that a restart changes no standing. After it, both sites continue with the same events
/// and are compared at each step.
#[test]
fn a_restart_changes_no_standing_then_or_later() {
    for seed in 0..200 {
        let dice = &mut Dice::new(seed);
        let capacity = 1 + dice.below(9) as u32;
        let mut serve = |sites: &mut [&mut Site]| {
            let (key, class) = (dice.below(12), ClassId(dice.below(8) as u8));
            // A pause separates services, because two sessions served at the same time have no
            // order of age.
            let pause = SECOND * (dice.below(5) * dice.below(5)) + TimeSpan::from_nanos(1);
            for site in sites {
                site.pass(pause);
                site.prove(key, &[class]);
            }
        };
        let mut old = site(capacity);
        for _ in 0..60 {
            serve(&mut [&mut old]);
        }
        let mut new = restart(&old, capacity);
        assert_eq!(export(&new), export(&old), "seed {seed}");
        for step in 0..60 {
            assert_eq!(standings(&new), standings(&old), "seed {seed}, step {step}");
            serve(&mut [&mut old, &mut new]);
        }
    }
}

#[test]
fn sessions_come_longest_ago_first_with_their_ages_and_what_they_were_served() {
    let mut site = site(4);
    site.prove(1, &[MAIN]);
    site.pass(SECOND * 2);
    site.prove(2, &[MAIN, LOGIN]);
    site.pass(SECOND * 3);
    let session = |key, age, classes: &[ClassId]| Remembered {
        key: SessionKey(key),
        age: SECOND * age,
        served: classes.iter().copied().collect(),
    };
    assert_eq!(export(&site), [session(1, 5, &[MAIN]), session(2, 3, &[MAIN, LOGIN])]);
}

#[test]
fn a_session_lives_on_for_what_was_left_of_its_time() {
    let mut old = site(4);
    old.prove(7, &[SHIPPING]);
    old.pass(SECOND * 40);
    let mut new = restart(&old, 4);
    let standing = |site: &Site| site.engine.standing(site.now, Some(SessionKey(7)), PAYMENT);
    new.pass(SECOND * 20);
    assert_eq!(standing(&new), Standing::Transaction);
    new.pass(TimeSpan::from_nanos(1));
    assert_eq!(standing(&new), Standing::New);
}

#[test]
fn what_is_too_old_is_neither_given_nor_taken() {
    let mut site = site(4);
    site.prove(7, &[SHIPPING]);
    site.pass(TTL);
    assert_eq!(export(&site).len(), 1);
    site.pass(TimeSpan::from_nanos(1));
    assert_eq!(export(&site), []);
    assert!(!site.engine.restore_session(site.now, remembered(8, TTL + TimeSpan::from_nanos(1))));
    assert!(!site.engine.restore_session(site.now, remembered(8, TimeSpan::MAX)));
    assert!(site.engine.restore_session(site.now, remembered(8, TTL)));
}

#[test]
fn a_smaller_table_takes_the_sessions_served_last() {
    let mut old = site(4);
    for session in [1, 2, 3, 4] {
        old.pass(SECOND);
        old.prove(session, &[MAIN]);
    }
    let new = restart(&old, 2);
    assert_eq!(export(&new), export(&old)[2..]);
}

#[test]
fn what_the_engine_has_seen_itself_counts_more_than_what_it_is_told() {
    let mut site = site(2);
    site.prove(1, &[MAIN]);
    assert!(!site.engine.restore_session(site.now, remembered(1, TimeSpan::ZERO)), "served since");
    site.prove(2, &[MAIN]);
    let fresh = Remembered { served: ClassSet::NONE.with(MAIN), ..remembered(3, SECOND) };
    assert!(!site.engine.restore_session(site.now, fresh), "full of younger ones");
    let known: Vec<SessionKey> = export(&site).iter().map(|session| session.key).collect();
    assert_eq!(known, [SessionKey(1), SessionKey(2)]);
    assert_eq!(export(&site)[0].served, ClassSet::NONE.with(MAIN));
}

#[test]
fn a_proven_session_takes_the_place_of_a_younger_fresh_one_and_not_of_a_younger_proven_one() {
    let mut site = site(3);
    site.prove(1, &[LOGIN]);
    site.prove(2, &[MAIN]);
    site.prove(5, &[MAIN]);
    assert!(site.engine.restore_session(site.now, remembered(3, SECOND)));
    assert!(!site.engine.restore_session(site.now, remembered(4, SECOND * 2)));
    let known: Vec<SessionKey> = export(&site).iter().map(|session| session.key).collect();
    assert_eq!(known, [SessionKey(3), SessionKey(1), SessionKey(5)]);
    assert_eq!(site.engine.proven_sessions(), 2);
}

/// Checks that proven sessions are restored as proven, so that they are evicted last.
#[test]
fn after_a_restart_newcomers_evict_the_same_sessions_as_before() {
    let mut old = site(32);
    for session in 0..32 {
        old.pass(SECOND);
        old.prove(session, &[if session % 3 == 0 { LOGIN } else { MAIN }]);
    }
    let mut new = restart(&old, 32);
    assert_eq!(new.engine.proven_sessions(), old.engine.proven_sessions());
    for newcomer in 100..140 {
        for site in [&mut old, &mut new] {
            site.prove(newcomer, &[MAIN]);
        }
        assert_eq!(standings(&new), standings(&old), "{newcomer}");
        assert_eq!(new.engine.evictions(), old.engine.evictions(), "{newcomer}");
    }
}

/// Checks that sessions are evicted in the order of their ages. The order in which they are
/// restored does not matter, nor do sessions that were served after the restart.
#[test]
fn a_restored_session_makes_room_before_younger_ones_that_are_there_already() {
    for (order, class) in [([3, 1, 2], MAIN), ([1, 3, 2], LOGIN), ([2, 1, 3], LOGIN)] {
        let mut site = site(5);
        for session in [4, 5] {
            site.pass(SECOND);
            site.prove(session, &[class]);
        }
        for key in order {
            let served = ClassSet::NONE.with(class);
            let session = Remembered { served, ..remembered(key, SECOND * (10 - key)) };
            assert!(site.engine.restore_session(site.now, session));
        }
        for newcomer in 1..=5 {
            site.prove(100 + newcomer, &[class]);
            let left = export(&site).iter().filter(|session| session.key.0 <= 5).count() as u64;
            assert_eq!(left, 5 - newcomer, "{order:?}");
            let gone = site.engine.standing(site.now, Some(SessionKey(newcomer)), MAIN);
            assert_eq!(gone, Standing::New, "{order:?}");
        }
    }
}

#[test]
fn a_session_of_classes_that_are_gone_was_served_all_the_same() {
    let mut site = site(2);
    let session = Remembered { served: ClassSet::NONE, ..remembered(7, SECOND) };
    assert!(site.engine.restore_session(site.now, session));
    let standing = site.engine.standing(site.now, Some(SessionKey(7)), PAYMENT);
    assert_eq!(standing, Standing::InProgress);
}

#[test]
fn the_time_before_the_clock_began_does_not_wrap() {
    let mut site = site(2);
    let options = Options { limit: 1.into(), session_ttl: TimeSpan::MAX, ..Options::default() };
    site.reconfigure(classes(), None, options);
    assert!(site.engine.restore_session(site.now, remembered(7, TimeSpan::MAX)));
    let [session] = export(&site)[..] else { panic!("one session was restored") };
    assert!(session.age > SECOND * (100 * 365 * 86_400 - 1), "it is as old as can be told");
}

#[test]
fn a_set_of_classes_can_be_taken_apart_and_put_together_by_name() {
    let set = ClassSet::NONE.with(SHIPPING).with(MAIN).with(ClassId(63));
    assert_eq!(set.iter().collect::<Vec<_>>(), [MAIN, SHIPPING, ClassId(63)]);
    assert_eq!(set.iter().collect::<ClassSet>(), set);
    assert_eq!(ClassSet::from_bits(set.bits()), set);
    assert_eq!(set.bits(), 1 | 1 << 5 | 1 << 63);
}

/// Checks that the mean service time is restored. A request takes four seconds, so a wait of up to
/// eight seconds, a tenth of the patience, is not an overload.
#[test]
fn with_the_pace_of_before_a_short_queue_is_no_overload_and_a_refusal_says_when() {
    let outcome = |mean_service: MeanService| {
        let mut site = Site::busy("session-first", &[("capacity", "2"), ("floor_share", "0")]);
        site.engine.restore_mean_service(mean_service);
        let waiting = [0; 2].map(|_| site.arrive(MAIN));
        site.pass(SECOND);
        site.prove(7, &[MAIN]);
        let out = site.arrive_in(7, MAIN);
        assert_eq!(site.refusal(out), None, "it evicts one of the others");
        let newest_goes = site.refusal(waiting[1]) == Some(Reason::Evicted);
        let retry_after = site.log.iter().find_map(|action| match action {
            Action::Shed { retry_after, .. } => Some(*retry_after),
            _ => None,
        });
        (newest_goes, retry_after)
    };
    assert_eq!(outcome(MeanService::new(SECOND * 4, 64)), (true, Some(SECOND * 12)));
    assert_eq!(
        outcome(MeanService::UNKNOWN),
        (false, Some(SECOND)),
        "it thinks that it is overload"
    );
}

#[test]
fn a_restored_pace_weighs_as_much_as_it_did() {
    let mut old = Site::busy("single-queue", &[]);
    for service in 1..5 {
        old.arrive(MAIN);
        old.pass(SECOND * service);
        old.finish();
    }
    let mean_service = old.engine.mean_service();
    assert_eq!(mean_service.seen(), 4);
    let mut new = Site::busy("single-queue", &[]);
    new.engine.restore_mean_service(MeanService::new(mean_service.mean(), mean_service.seen()));
    for site in [&mut old, &mut new] {
        site.pass(SECOND * 9);
        site.finish();
    }
    assert_eq!(new.engine.mean_service(), old.engine.mean_service());
}
