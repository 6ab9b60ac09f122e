//! Tests of the default scheduler, with one small case each: rank, order within a rank, eviction,
//! and the guards.
//!
//! Source: `policies.md` §1, «session-first» and «Guards», and §2 for when there is overload.

use std::collections::BTreeMap;

use bywash_engine::{
    Action, AddressKey, ClassId, PopulationKey, Reason, Request, RequestId, SessionKey, VisitorKey,
};
use bywash_units::{TimeSpan, Utility};

use crate::site::{
    BROWSE, CONFIRM, DETAILS, LOGIN, MAIN, PAYMENT, SEARCH, SHIPPING, Site, classes,
};

/// The parameter that makes CPU use the signal of overload, so that a test decides when there is
/// overload.
const BY_CPU: (&str, &str) = ("signal", "cpu");
const NO_FLOOR: (&str, &str) = ("floor_share", "0");

/// Returns a site without a floor share whose only slot is taken. Session 1 has a proven path to
/// the payment. Session 2 was served the main page.
fn site(capacity: &str, overloaded: bool) -> Site {
    let mut site = Site::busy("session-first", &[BY_CPU, NO_FLOOR, ("capacity", capacity)]);
    site.prove(1, &[MAIN, LOGIN, SHIPPING]);
    site.prove(2, &[MAIN]);
    site.cpu(if overloaded { 1.0 } else { 0.0 });
    site
}

#[test]
fn proven_transactions_go_first_then_sessions_in_progress_then_new_ones() {
    for overloaded in [false, true] {
        let mut site = site("100", overloaded);
        let new = site.arrive_in(99, PAYMENT);
        let in_progress = site.arrive_in(2, DETAILS);
        let transaction = site.arrive_in(1, PAYMENT);
        assert_eq!(site.drain(), [transaction, in_progress, new]);
    }
}

#[test]
fn first_requests_rank_by_what_the_sessions_of_their_population_do() {
    const READERS: u64 = 1;
    const SCRAPERS: u64 = 2;
    const UNKNOWN: u64 = 3;
    let mut site = site("100", false);
    let of =
        |population| Request { population: Some(PopulationKey(population)), ..Request::of(MAIN) };
    for number in 0..200 {
        let population = if number % 2 == 0 { READERS } else { SCRAPERS };
        let visit = Request { visitor: Some(VisitorKey(number)), ..of(population) };
        let pages = if population == READERS { 2 } else { 1 };
        for _ in 0..pages {
            site.request(visit);
            site.next();
        }
    }
    let first = [SCRAPERS, READERS].map(|population| site.request(of(population)));
    assert_eq!(site.drain(), first, "lifts are learned over minutes");
    site.arrive(MAIN);
    site.pass(TimeSpan::from_secs(600));
    site.cpu(0.0);
    let [scraper, unknown, reader] =
        [SCRAPERS, UNKNOWN, READERS].map(|population| site.request(of(population)));
    let without = site.arrive(MAIN);
    let begun = site.arrive_in(2, DETAILS);
    assert_eq!(site.drain(), [begun, reader, without, scraper, unknown]);
}

#[test]
fn a_transaction_url_without_the_walked_path_has_the_rank_of_its_session() {
    let mut site = site("100", false);
    let new = site.arrive_in(99, CONFIRM);
    let skipped = site.arrive_in(2, CONFIRM);
    let browsing = site.arrive_in(1, BROWSE);
    let also_skipped = site.arrive_in(1, CONFIRM);
    assert_eq!(site.drain(), [skipped, browsing, also_skipped, new], "oldest first in one rank");
}

#[test]
fn the_newest_go_first_only_while_it_is_overload() {
    let mut site = site("100", false);
    let first = [0; 3].map(|_| site.arrive(MAIN));
    assert_eq!(site.next(), first[0]);
    site.cpu(1.0);
    assert_eq!(site.next(), first[2]);
    let newer = site.arrive(MAIN);
    assert_eq!(site.next(), newer);
    site.cpu(0.8);
    let newest = site.arrive(MAIN);
    assert_eq!(site.next(), newest, "between the thresholds nothing changes");
    site.cpu(0.0);
    site.arrive(MAIN);
    assert_eq!(site.next(), first[1]);
}

/// Fills three places with requests of the sessions `waiting`, and then lets one of `arriving`
/// arrive. Returns the index of the request that is refused or evicted (3 for the arriving one),
/// and the reason.
fn who_goes(overloaded: bool, waiting: [u64; 3], arriving: u64) -> (usize, Reason) {
    let mut site = site("3", overloaded);
    // Session 1 pays, session 2 browses, and session 99 is unknown to the engine.
    let mut arrive = |session| site.arrive_in(session, if session == 1 { PAYMENT } else { MAIN });
    let ids = [waiting[0], waiting[1], waiting[2], arriving].map(&mut arrive);
    let gone: Vec<usize> = (0..4).filter(|i| site.refusal(ids[*i]).is_some()).collect();
    assert_eq!(gone.len(), 1, "one of four has to go");
    (gone[0], site.refusal(ids[gone[0]]).expect("it has gone"))
}

#[test]
fn a_better_arrival_evicts_the_worst_rank_and_there_the_one_that_would_go_last() {
    for arriving in [1, 2] {
        assert_eq!(who_goes(false, [99, 1, 99], arriving), (2, Reason::Evicted));
        assert_eq!(who_goes(true, [99, 1, 99], arriving), (0, Reason::Evicted));
        assert_eq!(who_goes(true, [2, 99, 1], arriving), (1, Reason::Evicted));
    }
    assert_eq!(who_goes(false, [2, 1, 2], 1), (2, Reason::Evicted));
    assert_eq!(who_goes(true, [2, 1, 2], 1), (0, Reason::Evicted));
}

#[test]
fn among_equals_the_arrival_is_refused_when_oldest_go_first() {
    for session in [1, 2, 99] {
        assert_eq!(who_goes(false, [session; 3], session), (3, Reason::QueueFull));
    }
}

#[test]
fn among_equals_the_oldest_is_evicted_when_newest_go_first() {
    for session in [1, 2, 99] {
        assert_eq!(who_goes(true, [session; 3], session), (0, Reason::Evicted));
    }
}

#[test]
fn a_worse_arrival_evicts_nobody() {
    for overloaded in [false, true] {
        assert_eq!(who_goes(overloaded, [1, 2, 1], 99), (3, Reason::QueueFull));
        assert_eq!(who_goes(overloaded, [1, 1, 1], 2), (3, Reason::QueueFull));
    }
}

#[test]
fn a_flood_of_made_up_sessions_neither_evicts_nor_outranks_a_proven_one() {
    for overloaded in [false, true] {
        let mut site = site("20", overloaded);
        let proven: Vec<RequestId> = (0..8).map(|_| site.arrive_in(2, MAIN)).collect();
        for made_up in 1_000..11_000 {
            site.arrive_in(made_up, CONFIRM);
        }
        let also_proven = site.arrive_in(1, MAIN);
        assert_eq!(site.refusal(also_proven), None, "there is room for it");
        let mut served = site.drain();
        served.truncate(9);
        served.sort_unstable();
        assert_eq!(served, [&proven[..], &[also_proven]].concat());
    }
}

#[test]
fn a_flood_that_is_refused_makes_the_engine_forget_no_session() {
    let mut site = site("20", true);
    for made_up in 1_000..101_000 {
        site.arrive_in(made_up, CONFIRM);
    }
    assert_eq!(site.status().sessions, 2);
}

#[test]
fn one_address_may_have_so_many_requests_waiting_however_many_sessions_it_makes_up() {
    let mut site = Site::busy("session-first", &[("principal_cap", "3")]);
    let mut arrive = |address, session| {
        let (session, address) = (Some(SessionKey(session)), Some(AddressKey(address)));
        site.request(Request { session, address, ..Request::of(MAIN) })
    };
    let of_one = [100, 101, 102, 103].map(|session| arrive(5, session));
    let of_another = arrive(6, 104);
    let refused = of_one.map(|id| site.refusal(id));
    assert_eq!(refused, [None, None, None, Some(Reason::PrincipalCap)]);
    assert_eq!(site.refusal(of_another), None);
    site.leave(of_one[1]);
    let in_its_place = site.arrive_from(5, MAIN);
    assert_eq!(site.refusal(in_its_place), None, "a place was given back");
}

#[test]
fn a_proven_session_is_charged_itself_and_not_the_address_it_shares() {
    let mut site = Site::busy("session-first", &[("principal_cap", "2")]);
    let shared = Some(AddressKey(5));
    for session in 10..20 {
        site.prove(session, &[MAIN]);
        let request =
            Request { session: Some(SessionKey(session)), address: shared, ..Request::of(MAIN) };
        let ids = [0; 3].map(|_| site.request(request));
        let refused = ids.map(|id| site.refusal(id));
        assert_eq!(refused, [None, None, Some(Reason::PrincipalCap)], "session {session}");
    }
}

#[test]
fn what_a_session_browses_does_not_stand_in_the_way_of_its_own_payment() {
    let mut site = Site::busy("session-first", &[("principal_cap", "2")]);
    site.prove(2, &[MAIN, PAYMENT]);
    let browsing = [0; 3].map(|_| site.arrive_in(2, MAIN));
    assert_eq!(site.refusal(browsing[2]), Some(Reason::PrincipalCap));
    let paying = site.arrive_in(2, CONFIRM);
    assert_eq!(site.refusal(paying), None);
    assert_eq!(site.next(), paying);
}

#[test]
fn an_arrival_over_its_cap_evicts_nobody() {
    let mut site = Site::busy("session-first", &[("capacity", "3"), ("principal_cap", "2")]);
    site.prove(2, &[MAIN]);
    let new = site.arrive_in(99, MAIN);
    let ids = [0; 3].map(|_| site.arrive_in(2, MAIN));
    assert_eq!(site.refusal(ids[2]), Some(Reason::PrincipalCap));
    assert_eq!(site.refusal(new), None);
}

#[test]
fn a_place_of_a_principal_comes_back_however_its_request_leaves_the_queue() {
    let mut site = Site::busy("session-first", &[("capacity", "2"), ("principal_cap", "1")]);
    site.prove(2, &[MAIN]);
    site.prove(3, &[MAIN]);
    for _ in 0..10 {
        let left = site.arrive_from(5, MAIN);
        site.leave(left);
        let started = site.arrive_from(5, MAIN);
        assert_eq!(site.next(), started);
        let evicted = site.arrive_from(5, MAIN);
        site.arrive_in(2, MAIN);
        site.arrive_in(3, MAIN);
        assert_eq!(site.refusal(evicted), Some(Reason::Evicted));
        site.next();
        site.next();
    }
}

const DISPATCHES: usize = 1_000;

/// Runs a saturated site. A proven session always has a transaction waiting, and each class of
/// `starving` keeps `depth` new requests waiting. Returns the number of floor dispatches by class.
fn floors(site: &mut Site, starving: &[ClassId], depth: u32) -> BTreeMap<ClassId, usize> {
    let mut class_of = BTreeMap::new();
    let mut by_class = BTreeMap::new();
    site.prove(1, &[MAIN, LOGIN, SHIPPING]);
    for _ in 0..DISPATCHES {
        site.pass(TimeSpan::from_millis(10));
        for _ in site.engine.waiting_of(PAYMENT)..2 {
            class_of.insert(site.arrive_in(1, PAYMENT), PAYMENT);
        }
        for class in starving {
            for _ in site.engine.waiting_of(*class)..depth {
                class_of.insert(site.arrive(*class), *class);
            }
        }
        match site.finish().expect("somebody waits") {
            (id, Reason::FloorShare) => *by_class.entry(class_of[&id]).or_default() += 1,
            (id, reason) => assert_eq!((class_of[&id], reason), (PAYMENT, Reason::Best)),
        }
    }
    by_class
}

#[test]
fn under_saturation_every_waiting_class_gets_an_equal_part_of_the_floor_share() {
    let starving = [MAIN, BROWSE, SEARCH, DETAILS];
    for overloaded in [false, true] {
        for depth in [1, 3, 20] {
            let mut site = Site::busy("session-first", &[BY_CPU]);
            site.cpu(if overloaded { 1.0 } else { 0.0 });
            let floors = floors(&mut site, &starving, depth);
            let all: usize = floors.values().sum();
            assert!((19..=20).contains(&all), "2 % of {DISPATCHES} dispatches, not {all}");
            for class in starving {
                let of_class = floors.get(&class).copied().unwrap_or(0);
                let seen = format!("{floors:?}, depth {depth}, overloaded {overloaded}");
                assert!((4..=6).contains(&of_class), "{class:?} got {of_class} of {all}: {seen}");
            }
        }
    }
}

#[test]
fn the_floor_is_as_large_as_it_is_set() {
    for (share, expected) in [("0", 0), ("0.1", 100), ("0.25", 250), ("0.5", 500)] {
        let mut site = Site::busy("session-first", &[BY_CPU, ("floor_share", share)]);
        let all: usize = floors(&mut site, &[MAIN, SEARCH], 3).values().sum();
        assert!(all.abs_diff(expected) <= 1, "{all} of {DISPATCHES} at {share}");
    }
}

#[test]
fn the_floor_does_not_go_to_the_class_that_has_the_slots_anyway() {
    let mut site = Site::busy("session-first", &[BY_CPU]);
    site.prove(1, &[MAIN, LOGIN, SHIPPING]);
    // Many requests of the best rank wait and are served oldest first. So the oldest request of all
    // is always one of them.
    site.cpu(0.0);
    for session in 1_000..1_090 {
        site.prove(session, &[SHIPPING]);
        site.arrive_in(session, PAYMENT);
    }
    site.pass(TimeSpan::from_secs(1));
    let starving = site.arrive(MAIN);
    let before = (0..60).position(|_| site.finish().is_some_and(|(id, _)| id == starving));
    assert!(before.is_some(), "one in fifty goes to the class that was not served at all");
}

#[test]
fn a_class_that_waits_is_served_in_the_end_whatever_else_waits() {
    for overloaded in [false, true] {
        for last in 0..8 {
            let mut site = Site::busy("session-first", &[BY_CPU, ("capacity", "1000")]);
            site.cpu(if overloaded { 1.0 } else { 0.0 });
            let others: Vec<ClassId> = (0..8).filter(|c| *c != last).map(ClassId).collect();
            for class in &others {
                site.arrive(*class);
            }
            site.pass(TimeSpan::from_millis(10));
            let lonely = site.arrive(ClassId(last));
            let served = (0..5_000).any(|_| {
                site.pass(TimeSpan::from_millis(10));
                for class in &others {
                    for _ in site.engine.waiting_of(*class)..20 {
                        site.arrive(*class);
                    }
                }
                site.next() == lonely
            });
            assert!(served, "class {last}, overloaded {overloaded}");
        }
    }
}

/// Returns a site with the age of the oldest request as the signal of overload. The mean service
/// time is 10 ms, so there is overload from an age of 80 ms on.
fn by_age() -> Site {
    let mut site = Site::busy("session-first", &[NO_FLOOR]);
    for _ in 0..100 {
        site.pass(TimeSpan::from_millis(10));
        site.finish();
        site.arrive(MAIN);
    }
    site
}

/// Lets three requests arrive together and wait for `wait`. Returns which of them gets a second
/// slot, and whether there is overload.
fn after(wait: impl Fn(TimeSpan) -> TimeSpan) -> (usize, bool) {
    let mut site = by_age();
    let ids = [0; 3].map(|_| site.arrive(MAIN));
    site.pass(wait(site.status().mean_service));
    // The slot is new, and not given back by a request that ends, because that would change the
    // mean service time.
    let actions = site.limit(2);
    let started =
        ids.iter().position(|id| actions == [Action::Dispatch { id: *id, reason: Reason::Best }]);
    (started.expect("one of them"), site.status().lifo)
}

#[test]
fn a_rank_is_newest_first_when_its_head_is_older_than_eight_services_and_not_before() {
    assert_eq!(after(|service| service * 8), (0, false));
    assert_eq!(after(|service| service * 8 + TimeSpan::from_nanos(1)), (2, true));
}

#[test]
fn a_rank_whose_head_is_old_is_served_newest_first_and_the_others_are_not() {
    let mut site = by_age();
    site.prove(2, &[MAIN]);
    let new = [0; 3].map(|_| site.arrive(MAIN));
    site.pass(TimeSpan::from_millis(200));
    let proven = [0; 2].map(|_| site.arrive_in(2, MAIN));
    assert_eq!(site.drain(), [proven[0], proven[1], new[2], new[1], new[0]]);
}

#[test]
fn a_rank_that_has_emptied_is_calm_again() {
    let mut site = by_age();
    site.arrive(MAIN);
    site.pass(TimeSpan::from_millis(200));
    let last = site.arrive(MAIN);
    assert_eq!(site.next(), last, "newest first");
    assert!(site.status().lifo);
    site.drain();
    assert!(!site.status().lifo);
    site.arrive(MAIN);
    let ids = [0; 2].map(|_| site.arrive(MAIN));
    assert_eq!(site.next(), ids[0]);
}

#[test]
fn a_rank_emptied_by_clients_that_leave_is_calm_again() {
    let mut site = by_age();
    let ids = [0; 3].map(|_| site.arrive(MAIN));
    site.pass(TimeSpan::from_millis(200));
    assert_eq!(site.next(), ids[2]);
    site.leave(ids[0]);
    site.leave(ids[1]);
    assert!(!site.status().lifo);
}

#[test]
fn sixty_four_classes_are_no_trouble() {
    let many = |i: u8| bywash_engine::Class {
        name: format!("class {i}"),
        ..classes()[usize::from(i % 8)].clone()
    };
    let options = bywash_engine::Options { limit: 1.into(), ..bywash_engine::Options::default() };
    let mut site = Site::with("session-first", &[], (0..64).map(many).collect(), options);
    let ids: Vec<RequestId> = (0..64).map(|class| site.arrive(ClassId(class))).collect();
    assert_eq!(site.drain(), ids[1..]);
    site.prove(5, &[ClassId(63)]);
    assert_eq!(site.status().sessions, 1);
}

#[test]
fn first_requests_of_a_class_worth_less_than_other_go_last_and_no_class_goes_earlier() {
    let class = |name: &str, utility| bywash_engine::Class {
        name: name.into(),
        utility: Utility::new(utility),
        ..classes()[usize::from(MAIN.0)].clone()
    };
    let [search, other, costly] = [ClassId(0), ClassId(1), ClassId(2)];
    let classes = vec![class("search", 0.5), class("other", 1.0), class("costly", 20.0)];
    let options = bywash_engine::Options { limit: 1.into(), ..bywash_engine::Options::default() };
    let mut site = Site::with("session-first", &[BY_CPU, NO_FLOOR], classes, options);
    site.prove(1, &[other]);
    let _runs = site.arrive(other);
    let minor = site.arrive(search);
    let pages = [other, costly, other].map(|class| site.arrive(class));
    let begun = site.arrive_in(1, search);
    assert_eq!(site.drain(), [begun, pages[0], pages[1], pages[2], minor]);
}
