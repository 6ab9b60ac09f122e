//! Tests of the table of sessions, without the rest of the engine.

use alloc::string::ToString;

use bywash_units::Utility;

use super::*;

const LOGIN: ClassId = ClassId(1);
const PROVING: ClassSet = ClassSet::NONE.with(LOGIN);

impl Sessions {
    fn serves(&mut self, now: Time, key: SessionKey, class: ClassId) {
        assert!(self.served(now, key, Service::content(class)));
    }
}

fn pay() -> Class {
    Class {
        name: "pay".to_string(),
        tier: Tier::Transaction,
        utility: Utility::new(1.0),
        revenue: Utility::default(),
        stop: None,
        fixed_value: None,
        queue: None,
        requires: ClassSet::NONE.with(LOGIN),
    }
}

fn at(seconds: u64) -> Time {
    Time::ZERO + TimeSpan::from_secs(seconds)
}

#[test]
fn a_transaction_counts_only_on_a_path_that_was_walked() {
    let mut sessions = Sessions::new(4, TimeSpan::from_secs(60), PROVING);
    let key = SessionKey(7);
    assert_eq!(sessions.standing(at(0), Some(key), ClassSet::NONE, &pay()), Standing::New);
    sessions.serves(at(0), key, ClassId(0));
    assert_eq!(sessions.standing(at(1), Some(key), ClassSet::NONE, &pay()), Standing::InProgress);
    sessions.serves(at(1), key, LOGIN);
    assert_eq!(sessions.standing(at(2), Some(key), ClassSet::NONE, &pay()), Standing::Transaction);
    assert_eq!(sessions.standing(at(2), None, ClassSet::NONE, &pay()), Standing::New);
}

#[test]
fn an_answer_that_is_not_a_success_of_its_class_proves_nothing_of_it() {
    let mut sessions = Sessions::new(4, TimeSpan::from_secs(60), PROVING);
    let (key, failed) = (SessionKey(7), Service { succeeded: false, ..Service::content(LOGIN) });
    assert!(sessions.served(at(0), key, failed));
    assert_eq!(sessions.standing(at(0), Some(key), ClassSet::NONE, &pay()), Standing::InProgress);
    assert_eq!(sessions.proven(), 0);
    let redirected = Service { answer: AnswerKind::Redirect, ..failed };
    assert!(!sessions.served(at(0), SessionKey(8), redirected), "it begins no session");
    sessions.serves(at(0), key, LOGIN);
    assert!(sessions.served(at(0), key, failed));
    assert_eq!(sessions.standing(at(0), Some(key), ClassSet::NONE, &pay()), Standing::Transaction);
}

#[test]
fn a_session_not_served_for_its_ttl_starts_again() {
    let mut sessions = Sessions::new(4, TimeSpan::from_secs(60), PROVING);
    sessions.serves(at(0), SessionKey(7), LOGIN);
    assert_eq!(
        sessions.standing(at(61), Some(SessionKey(7)), ClassSet::NONE, &pay()),
        Standing::New
    );
    sessions.serves(at(62), SessionKey(7), ClassId(0));
    assert_eq!(
        sessions.standing(at(62), Some(SessionKey(7)), ClassSet::NONE, &pay()),
        Standing::InProgress
    );
}

#[test]
fn a_session_with_a_new_name_keeps_what_it_has_proven_and_the_old_name_nothing() {
    let mut sessions = Sessions::new(4, TimeSpan::from_secs(60), PROVING);
    let (old, new) = (SessionKey(7), SessionKey(8));
    sessions.serves(at(0), old, LOGIN);
    sessions.renamed(old, new);
    assert_eq!(sessions.standing(at(1), Some(new), ClassSet::NONE, &pay()), Standing::Transaction);
    assert_eq!(sessions.standing(at(1), Some(old), ClassSet::NONE, &pay()), Standing::New);
    sessions.serves(at(1), old, ClassId(0));
    sessions.renamed(old, new);
    assert_eq!(sessions.standing(at(2), Some(new), ClassSet::NONE, &pay()), Standing::Transaction);
    assert_eq!(sessions.len(), 2);
}

#[test]
fn a_token_proves_what_the_table_does_not_know_and_needs_a_session() {
    let mut sessions = Sessions::new(4, TimeSpan::from_secs(60), PROVING);
    let (key, login) = (Some(SessionKey(7)), ClassSet::NONE.with(LOGIN));
    let (home, pay) = (ClassSet::NONE.with(ClassId(0)), pay());
    assert_eq!(sessions.standing(at(0), key, login, &pay), Standing::Transaction);
    assert_eq!(sessions.standing(at(0), key, home, &pay), Standing::InProgress);
    assert_eq!(sessions.standing(at(0), None, login, &pay), Standing::New);
    sessions.serves(at(0), SessionKey(7), ClassId(0));
    assert_eq!(sessions.standing(at(1), key, login, &pay), Standing::Transaction);
    sessions.serves(at(1), SessionKey(7), LOGIN);
    assert_eq!(sessions.standing(at(2), key, home, &pay), Standing::Transaction);
    assert_eq!(sessions.path(at(2), SessionKey(7)), Some(home.union(login)));
    assert_eq!(sessions.path(at(62), SessionKey(7)), None);
    assert_eq!(sessions.standing(at(62), key, login, &pay), Standing::Transaction);
}

#[test]
fn a_full_table_forgets_the_session_served_longest_ago() {
    let mut sessions = Sessions::new(2, TimeSpan::from_secs(60), PROVING);
    sessions.serves(at(0), SessionKey(1), LOGIN);
    sessions.serves(at(1), SessionKey(2), LOGIN);
    sessions.serves(at(2), SessionKey(1), LOGIN);
    sessions.serves(at(3), SessionKey(3), LOGIN);
    let known = [1, 2, 3].map(|key| {
        sessions.standing(at(4), Some(SessionKey(key)), ClassSet::NONE, &pay())
            == Standing::Transaction
    });
    assert_eq!((known, sessions.len()), ([true, false, true], 2));
}

/// Copies all sessions in slices of `most` indices, and calls `between` after each slice.
fn copy(
    sessions: &mut Sessions,
    most: usize,
    mut between: impl FnMut(&mut Sessions),
) -> Vec<Remembered> {
    let (mut all, mut cursor) = (Vec::new(), Cursor::default());
    loop {
        match sessions.copy(at(5), &mut cursor, most, &mut all) {
            Slice::More => {}
            Slice::Last => return all,
            Slice::Restarted => all.clear(),
        }
        between(sessions);
    }
}

fn keys(copied: &[Remembered]) -> Vec<u64> {
    let mut keys: Vec<u64> = copied.iter().map(|session| session.key.0).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn a_session_that_stays_is_copied_once_whatever_happens_between_two_slices() {
    for most in 1..12 {
        for seed in 0..50 {
            let mut sessions = Sessions::new(20, TimeSpan::from_secs(60), PROVING);
            (0..20).for_each(|key| sessions.serves(at(key % 3), SessionKey(key), LOGIN));
            let mut random = seed;
            let mut number = || {
                random = u64::wrapping_mul(random, 6_364_136_223_846_793_005) % 1_000_003 + 7;
                random
            };
            // Sessions 0 to 9 stay, because they are served before any session is evicted. Sessions
            // 10 to 19 are added and evicted.
            let copied = copy(&mut sessions, most, |sessions| {
                (0..10).for_each(|key| sessions.serves(at(4), SessionKey((key * 7) % 10), LOGIN));
                sessions.serves(at(3), SessionKey(20 + number() % 10), LOGIN);
                sessions.renamed(SessionKey(10 + number() % 10), SessionKey(30 + number() % 10));
            });
            let stayed: Vec<u64> = keys(&copied).into_iter().filter(|key| *key < 10).collect();
            assert_eq!(stayed, (0..10).collect::<Vec<_>>(), "slices of {most}, seed {seed}");
        }
    }
}

#[test]
fn a_new_size_between_two_slices_has_the_copy_start_again() {
    for (capacity, first) in [(30, 0), (7, 5)] {
        let mut sessions = Sessions::new(12, TimeSpan::from_secs(60), PROVING);
        (0..12).for_each(|key| sessions.serves(at(0), SessionKey(key), LOGIN));
        let copied = copy(&mut sessions, 5, |sessions| {
            sessions.resize(at(0), capacity, TimeSpan::from_secs(60), PROVING);
        });
        assert_eq!(keys(&copied), (first..12).collect::<Vec<_>>());
    }
}

#[test]
fn sessions_that_are_too_old_are_not_copied() {
    let mut sessions = Sessions::new(4, TimeSpan::from_secs(3), PROVING);
    sessions.serves(at(1), SessionKey(1), LOGIN);
    sessions.serves(at(2), SessionKey(2), LOGIN);
    assert_eq!(keys(&copy(&mut sessions, 1, |_| ())), [2]);
}

#[test]
fn a_redirection_begins_a_session_only_if_its_class_proves_something_and_not_modified_never() {
    use AnswerKind::{Content, NotModified, Redirect};
    for (answer, class, begins) in [
        (Content, ClassId(0), true),
        (Redirect, ClassId(0), false),
        (Redirect, LOGIN, true),
        (NotModified, ClassId(0), false),
        (NotModified, LOGIN, false),
    ] {
        let service = Service { answer, ..Service::content(class) };
        let mut sessions = Sessions::new(4, TimeSpan::from_secs(60), PROVING);
        assert_eq!(sessions.served(at(0), SessionKey(1), service), begins, "{service:?}");
        assert_eq!(sessions.len(), usize::from(begins), "{service:?}");
        // An answer advances a session that a token or the table proves.
        let begun = Service { had_begun: true, ..service };
        assert!(sessions.served(at(0), SessionKey(2), begun), "{service:?}");
        assert!(sessions.served(at(0), SessionKey(2), service), "{service:?}");
        let path = Some(ClassSet::NONE.with(class));
        assert_eq!(sessions.path(at(0), SessionKey(2)), path, "{service:?}");
        // A session that is too old counts as unknown.
        assert_eq!(sessions.served(at(61), SessionKey(2), service), begins, "{service:?}");
    }
}

#[test]
fn a_session_that_is_too_old_makes_room_before_any_other_and_is_not_evicted() {
    let mut sessions = Sessions::new(3, TimeSpan::from_secs(60), PROVING);
    sessions.serves(at(0), SessionKey(1), LOGIN);
    sessions.serves(at(10), SessionKey(2), ClassId(0));
    sessions.serves(at(20), SessionKey(3), ClassId(0));
    sessions.serves(at(61), SessionKey(4), ClassId(0));
    assert_eq!((sessions.proven(), sessions.evictions()), (0, Evictions::default()));
    sessions.serves(at(62), SessionKey(5), ClassId(0));
    assert_eq!(sessions.evictions(), Evictions { fresh: 1, ..Evictions::default() });
    assert_eq!(sessions.path(at(62), SessionKey(2)), None);
}

#[test]
fn a_new_size_or_other_proving_classes_keep_proven_sessions_and_the_order_of_all() {
    let mut sessions = Sessions::new(40, TimeSpan::from_secs(60), PROVING);
    for key in 0..40 {
        let class = if key % 4 == 0 { LOGIN } else { ClassId(0) };
        sessions.serves(at(key), SessionKey(key), class);
    }
    sessions.resize(at(40), 25, TimeSpan::from_secs(60), PROVING);
    let left = keys(&copy(&mut sessions, 7, |_| ()));
    let expected: Vec<u64> = (0..40).filter(|key| key % 4 == 0 || *key > 20).collect();
    assert_eq!((left, sessions.proven()), (expected, 10));
    sessions.resize(at(40), 25, TimeSpan::from_secs(60), ClassSet::NONE);
    assert_eq!((sessions.len(), sessions.proven()), (25, 0));
    sessions.serves(at(41), SessionKey(99), ClassId(0));
    assert_eq!(sessions.path(at(41), SessionKey(0)), None, "the oldest of all");
    assert_eq!(sessions.evictions(), Evictions { fresh: 1, ..Evictions::default() });
}
