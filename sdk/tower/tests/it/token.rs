//! Tests of the states of a token, on a clock that the test advances.

use std::time::Duration;

use bywash_tower::{Reason, Token};

use crate::{Search, millis, secs};

fn ends(token: &Token, reason: Reason) {
    assert_eq!(token.checkpoint().unwrap_err().reason, reason);
    assert!(token.is_terminated());
    assert_eq!((token.reason(), token.left()), (Some(reason), Some(Duration::ZERO)));
}

fn goes_on(token: &Token) {
    assert_eq!(token.checkpoint(), Ok(()));
    assert!(!token.is_terminated());
}

#[test]
fn a_checkpoint_ends_who_has_run_for_as_long_as_it_may() {
    let search = Search::new();
    let token = search.class.begin(None);
    search.goes(Duration::from_nanos(8_999_999_999));
    goes_on(&token);
    assert_eq!(token.left(), Some(Duration::from_nanos(1)));
    search.goes(Duration::from_nanos(1));
    ends(&token, Reason::RanTooLong);
    ends(&token.clone(), Reason::RanTooLong);
    assert_eq!((search.stats().lost, search.stats().terminated), (1, 1), "once");
}

#[test]
fn to_ask_whether_it_is_over_changes_nothing() {
    let search = Search::new();
    let [served, told] = [0; 2].map(|_| search.class.begin(None));
    let short = search.class.begin(Some(secs(1)));
    search.goes(secs(9));
    for token in [&served, &told, &short] {
        assert!(token.is_terminated() && token.is_terminated());
        assert_eq!(token.reason(), None);
    }
    // The request was done too late, but was never told.
    served.end();
    short.settle();
    assert!(!served.is_terminated() && !short.is_terminated());
    let stats = search.stats();
    assert_eq!((stats.lost, stats.terminated, stats.deadline), (0, 0, 0));
    ends(&told, Reason::RanTooLong);
}

#[test]
fn the_threshold_may_fall_while_it_runs() {
    let search = Search::new();
    search.goes(secs(5));
    let token = search.class.begin(None);
    search.load(100, 100);
    search.goes(Duration::from_nanos(4_999_999_999));
    goes_on(&token);
    search.goes(Duration::from_nanos(1));
    assert_eq!(token.deadline(), Some(secs(6)));
    ends(&token, Reason::RanTooLong);
}

#[test]
fn the_threshold_may_rise_while_it_runs() {
    let search = Search::new();
    search.load(100, 100);
    search.goes(millis(19_500));
    let token = search.class.begin(None);
    assert_eq!(token.left(), Some(secs(1)));
    search.goes(secs(1));
    goes_on(&token);
    assert_eq!(token.left(), Some(secs(8)));
}

#[test]
fn its_own_deadline_can_only_shorten() {
    let search = Search::new();
    for (left, expected) in [(secs(60), secs(9)), (millis(500), millis(500)), (secs(0), secs(0))] {
        assert_eq!(search.class.begin(Some(left)).left(), Some(expected));
    }
}

#[test]
fn deadlines_of_their_own_do_not_lower_the_threshold_of_others() {
    let search = Search::new();
    (0..100).for_each(|_| ends(&search.class.begin(Some(Duration::ZERO)), Reason::Deadline));
    search.goes(secs(10));
    assert_eq!(search.class.threshold(), secs(9));
    assert_eq!((search.stats().lost, search.stats().deadline), (0, 100));
}

#[test]
fn a_deadline_counts_in_p_from_run_min_on() {
    let search = Search::new();
    let early = search.class.begin(Some(Duration::from_nanos(999_999_999)));
    let late = search.class.begin(Some(secs(1)));
    search.goes(Duration::from_nanos(999_999_999));
    ends(&early, Reason::Deadline);
    search.goes(Duration::from_nanos(1));
    ends(&late, Reason::Deadline);
    let stats = search.stats();
    assert_eq!((stats.arrived, stats.lost, stats.deadline), (2, 1, 2));
    search.goes(secs(9));
    assert_eq!(search.class.threshold(), secs(1));
}

#[test]
fn who_comes_and_goes_within_an_interval_did_not_arrive_in_it() {
    let search = Search::new();
    let before: Vec<Token> = (0..20).map(|_| search.class.begin(None)).collect();
    search.goes(secs(10));
    before[..10].iter().for_each(Token::leave);
    search.load(10, 1);
    for _ in 0..45 {
        search.class.begin(None).leave();
        ends(&search.class.begin(Some(Duration::ZERO)), Reason::Deadline);
    }
    // A request is subtracted from the arrivals only once.
    let token = search.class.begin(None);
    token.leave();
    token.leave();
    token.end();
    search.goes(secs(10));
    // One of ten is lost: (1/2)^4 of the eight seconds above the first one.
    let threshold = search.class.threshold();
    assert!(threshold.abs_diff(millis(1500)) < Duration::from_micros(1), "{threshold:?}");
    assert_eq!((search.stats().arrived, search.stats().lost), (121, 1));
}

#[test]
fn who_leaves_in_the_last_tenth_of_his_time_has_come_to_his_deadline() {
    let search = Search::new();
    let of = |left| search.class.begin(left);
    let [early, late, begun] = [0; 3].map(|_| of(Some(secs(2))));
    let (short, unbound) = (of(Some(secs(1))), of(None));
    begun.settle();
    search.goes(millis(900));
    short.leave();
    ends(&short, Reason::Deadline);
    search.goes(Duration::from_nanos(899_999_999));
    early.leave();
    ends(&early, Reason::ClientLeft);
    search.goes(Duration::from_nanos(1));
    late.leave();
    ends(&late, Reason::Deadline);
    begun.leave();
    ends(&begun, Reason::ClientLeft);
    search.goes(secs(7));
    unbound.leave();
    ends(&unbound, Reason::ClientLeft);
    let stats = search.stats();
    assert_eq!((stats.deadline, stats.lost, stats.client_left), (2, 1, 3));
}

#[test]
fn whoever_left_does_not_count_and_whoever_is_terminated_does() {
    let search = Search::new();
    for _ in 0..100 {
        let token = search.class.begin(None);
        token.leave();
        token.leave();
        ends(&token, Reason::ClientLeft);
    }
    search.goes(secs(10));
    assert_eq!((search.class.threshold(), search.stats().client_left), (secs(9), 100));
    let tokens: Vec<Token> = (0..10).map(|_| search.class.begin(None)).collect();
    search.goes(secs(9));
    assert!(tokens.iter().all(Token::look));
    search.goes(secs(1));
    assert_eq!(search.class.threshold(), secs(1));
}

#[test]
fn after_the_first_byte_only_a_client_who_leaves_ends_it() {
    let search = Search::new();
    let token = search.class.begin(Some(millis(500)));
    token.settle();
    search.goes(secs(100));
    goes_on(&token);
    assert_eq!((token.deadline(), token.left()), (None, None));
    token.leave();
    ends(&token, Reason::ClientLeft);
}

#[test]
fn who_cancels_termination_is_not_terminated_by_anything() {
    let search = Search::new();
    let (token, late) = (search.class.begin(Some(millis(500))), search.class.begin(None));
    assert_eq!(token.cancel_termination(), Ok(()));
    assert_eq!(token.cancel_termination(), Ok(()));
    search.goes(secs(100));
    token.leave();
    goes_on(&token);
    assert!(late.cancel_termination().is_err(), "it was too late");
    assert_eq!((search.stats().deferred, search.stats().client_left), (1, 0));
}

#[test]
fn whoever_has_ended_is_not_terminated_and_ends_once() {
    let search = Search::new();
    let (token, left) = (search.class.begin(None), search.class.begin(None));
    left.leave();
    for each in [&token, &left, &token, &left] {
        each.end();
    }
    search.goes(secs(100));
    token.leave();
    goes_on(&token);
    // Other work for the request must still learn of its end.
    ends(&left, Reason::ClientLeft);
    assert_eq!((search.stats().running, search.stats().client_left), (0, 1));
}

/// Compares with a reference that asks the controller at each step, for random loads.
#[test]
fn a_checkpoint_is_never_late_whatever_the_loads() {
    let search = Search::new();
    let mut seed = 7_u64;
    let mut chance = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let mut running = Vec::new();
    for turn in 0..3000 {
        search.goes(millis([10, 300, 2000][chance(3) as usize]));
        search.load(chance(14) as u32, u32::from(chance(10) == 0));
        running.push(search.class.begin((chance(3) == 0).then_some(secs(3))));
        running.retain(|token: &Token| {
            let is_due = token.left() == Some(Duration::ZERO);
            assert_eq!(token.checkpoint().is_err(), is_due, "turn {turn} of seed 7");
            !is_due && chance(10) >= 3
        });
    }
    assert!(search.stats().terminated > 30 && search.stats().deadline > 30, "too few to tell");
}
