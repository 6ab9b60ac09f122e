//! Tests of the table of sessions, against a plain list that is searched from end to end.

use bywash_engine::{
    AddressKey, ClassId, ClassSet, Event, Evictions, Options, Request, Service, SessionKey,
    Signals, Standing,
};
use bywash_units::{Time, TimeSpan, Utility};

use crate::dice::Dice;
use crate::site::{CONFIRM, DETAILS, LOGIN, MAIN, PAYMENT, SHIPPING, Site, classes};

const TTL: TimeSpan = TimeSpan::from_secs(60);

fn site(sessions: u32) -> Site {
    let options = Options { sessions, session_ttl: TTL, ..Options::default() };
    Site::with("session-first", &[], classes(), options)
}

fn standing(site: &Site, session: u64, class: ClassId) -> Standing {
    site.engine.standing(site.now, Some(SessionKey(session)), class)
}

#[test]
fn a_session_is_remembered_for_its_ttl_and_not_a_nanosecond_longer() {
    let mut site = site(4);
    site.prove(7, &[MAIN]);
    site.now = Time::ZERO + TTL;
    assert_eq!(standing(&site, 7, LOGIN), Standing::Transaction);
    site.now = site.now + TimeSpan::from_nanos(1);
    assert_eq!(standing(&site, 7, LOGIN), Standing::New);
}

#[test]
fn being_served_again_extends_a_session_and_keeps_its_path() {
    let mut site = site(4);
    site.prove(7, &[SHIPPING]);
    site.pass(TTL);
    site.prove(7, &[MAIN]);
    site.pass(TTL);
    assert_eq!(standing(&site, 7, PAYMENT), Standing::Transaction);
}

#[test]
fn a_session_that_comes_back_after_its_ttl_has_lost_its_path() {
    let mut site = site(4);
    site.prove(7, &[SHIPPING]);
    site.pass(TTL + TimeSpan::from_secs(1));
    site.prove(7, &[MAIN]);
    assert_eq!(standing(&site, 7, PAYMENT), Standing::InProgress);
}

#[test]
fn a_table_of_one_remembers_the_session_served_last() {
    for capacity in [0, 1] {
        let mut site = site(capacity);
        for session in [1, 2, 2, 1, 3] {
            site.prove(session, &[MAIN]);
            assert_eq!(standing(&site, session, MAIN), Standing::InProgress, "{session}");
            assert_eq!(site.status().sessions, 1);
        }
        assert_eq!(standing(&site, 1, MAIN), Standing::New);
    }
}

#[test]
fn asking_about_a_session_does_not_keep_it() {
    let mut site = site(2);
    site.prove(1, &[MAIN]);
    site.prove(2, &[MAIN]);
    site.arrive_in(1, MAIN);
    site.prove(3, &[MAIN]);
    let known = [1, 2, 3].map(|session| standing(&site, session, MAIN) == Standing::InProgress);
    assert_eq!(known, [false, true, true], "only a service counts");
}

#[test]
fn each_step_of_a_transaction_asks_for_the_step_before_it() {
    let mut site = site(4);
    site.prove(7, &[MAIN, LOGIN]);
    let now = [LOGIN, SHIPPING, PAYMENT, CONFIRM].map(|class| standing(&site, 7, class));
    let [walked, skipped] = [Standing::Transaction, Standing::InProgress];
    assert_eq!(now, [walked, walked, skipped, skipped]);
}

#[test]
fn a_path_that_can_be_read_in_two_ways_stands_as_the_worse_of_them() {
    let mut site = site(4);
    site.prove(7, &[MAIN, LOGIN]);
    let mut arrive = |class, also| {
        let session = Some(SessionKey(7));
        let id = site.request(Request { session, also, ..Request::of(class) });
        site.engine.standing_of(id)
    };
    let [walked, skipped] = [SHIPPING, CONFIRM].map(|class| ClassSet::NONE.with(class));
    assert_eq!(arrive(SHIPPING, ClassSet::NONE), Standing::Transaction);
    assert_eq!(arrive(SHIPPING, skipped), Standing::InProgress);
    assert_eq!(arrive(CONFIRM, walked), Standing::InProgress);
}

#[test]
fn what_a_token_proves_goes_first_and_the_table_does_not_take_it_over() {
    let mut site = Site::busy("session-first", &[]);
    let claims = |session, proven| Request {
        session: Some(SessionKey(session)),
        proven,
        ..Request::of(PAYMENT)
    };
    let walked = ClassSet::NONE.with(SHIPPING);
    let newcomer = site.request(claims(1, ClassSet::NONE));
    let nobody = site.request(Request { session: None, ..claims(0, walked) });
    let begun = site.request(claims(2, ClassSet::NONE.with(MAIN)));
    let proven = site.request(claims(3, walked));
    assert_eq!(site.drain(), [proven, begun, newcomer, nobody]);
    assert_eq!(site.engine.path(site.now, SessionKey(3)), ClassSet::NONE);
    site.prove(3, &[MAIN]);
    assert_eq!(site.engine.path(site.now, SessionKey(3)), ClassSet::NONE.with(MAIN));
}

/// A reference implementation: a plain list of sessions, the one served last at the end.
#[derive(Default)]
struct Reference(Vec<(u64, Vec<ClassId>, Time)>);

impl Reference {
    fn served(&mut self, now: Time, key: u64, class: ClassId, capacity: usize) {
        let at = self.0.iter().position(|(other, ..)| *other == key);
        if at.is_none() && self.0.len() == capacity {
            self.0.remove(self.makes_room(now, capacity));
        }
        let (_, mut path, last) = at.map_or((key, vec![], now), |at| self.0.remove(at));
        if now.since(last) > TTL {
            path.clear();
        }
        path.push(class);
        self.0.push((key, path, now));
    }

    /// Returns the session to evict. It is the first proven one that is too old, or else the first
    /// fresh one that is too old. Otherwise it is the first of the segment that has to make room.
    fn makes_room(&self, now: Time, capacity: usize) -> usize {
        let is_proven = |(_, path, _): &(u64, Vec<ClassId>, Time)| {
            path.iter().any(|class| [LOGIN, SHIPPING, PAYMENT, CONFIRM].contains(class))
        };
        let first = |proven| self.0.iter().position(|session| is_proven(session) == proven);
        let is_old = |at: &usize| now.since(self.0[*at].2) > TTL;
        let old = first(true).filter(is_old).or_else(|| first(false).filter(is_old));
        let fresh = self.0.iter().filter(|session| !is_proven(session)).count();
        old.or_else(|| first(fresh <= capacity / 2)).expect("one of each segment that may go")
    }

    /// Returns the standing for a payment, which requires that the session was served shipping.
    fn standing(&self, now: Time, key: u64) -> Standing {
        match self.0.iter().find(|(other, ..)| *other == key) {
            Some((_, path, last)) if now.since(*last) <= TTL => {
                let walked = path.contains(&SHIPPING);
                if walked { Standing::Transaction } else { Standing::InProgress }
            }
            _ => Standing::New,
        }
    }
}

#[test]
fn the_table_of_sessions_does_what_a_plain_list_would_do() {
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let capacity = 1 + dice.below(40) as u32;
        let keys = u64::from(capacity) + 5;
        let (mut site, mut reference) = (site(capacity), Reference::default());
        for step in 0..2_000 {
            site.now = site.now + TimeSpan::from_secs(dice.below(3) * dice.below(3));
            let (key, class) = (dice.below(keys), ClassId(dice.below(8) as u8));
            site.prove(key, &[class]);
            reference.served(site.now, key, class, capacity as usize);
            for key in 0..keys {
                let expected = reference.standing(site.now, key);
                assert_eq!(standing(&site, key, PAYMENT), expected, "seed {seed}, step {step}");
            }
        }
    }
}

/// Lets a microsecond pass, and then serves a session a class.
fn serve(site: &mut Site, session: u64, address: u64, class: ClassId) {
    site.now = site.now + TimeSpan::from_micros(1);
    site.tell(Event::Served {
        session: SessionKey(session),
        service: Service { address: Some(AddressKey(address)), ..Service::content(class) },
        signals: Signals::NONE,
        revenue: Utility::default(),
        in_time: true,
    });
}

/// Returns how many of `buyers` buyers keep their standing during an attack. `behind` gives the
/// address of each buyer. `attack` has three parts: the number of attacking addresses, the number
/// of new sessions that each uses between two steps of the buyers, and the classes that each of
/// these sessions is served.
fn keep(buyers: u64, behind: impl Fn(u64) -> u64, attack: (u64, u64, &[ClassId])) -> u64 {
    const STEPS: [ClassId; 4] = [LOGIN, SHIPPING, PAYMENT, CONFIRM];
    let mut site = site(10_000);
    let (addresses, hits, classes) = attack;
    let mut invented = 1 << 32;
    for step in STEPS {
        for buyer in 0..buyers {
            serve(&mut site, buyer, behind(buyer), step);
        }
        for hit in 0..hits * addresses {
            invented += 1;
            for class in classes {
                serve(&mut site, invented, (1 << 40) + hit % addresses, *class);
            }
        }
    }
    let has_paid = |buyer| standing(&site, buyer, CONFIRM) == Standing::Transaction;
    (0..buyers).filter(|buyer| has_paid(*buyer)).count() as u64
}

#[test]
fn invented_cookies_never_take_the_place_of_a_proven_session() {
    for addresses in [1, 12, 5_000] {
        assert_eq!(keep(1_000, |buyer| buyer, (addresses, 60_000 / addresses, &[MAIN])), 1_000);
    }
    // Invented sessions that are used twice do not evict buyers either.
    assert_eq!(keep(1_000, |buyer| buyer, (12, 2_500, &[MAIN, DETAILS])), 1_000);
}

#[test]
fn a_dozen_addresses_with_a_cheap_proof_take_no_place_of_a_buyer_nor_of_an_office() {
    assert_eq!(keep(1_000, |buyer| buyer, (12, 2_500, &[LOGIN])), 1_000);
    assert_eq!(keep(500, |_| 7, (12, 2_500, &[LOGIN])), 500, "all behind one address");
    assert_eq!(keep(500, |_| 7, (12, 2_500, &[MAIN])), 500, "all behind one address");
}

#[test]
fn an_office_that_fills_the_table_alone_is_served_as_without_a_quota() {
    assert_eq!(keep(10_000, |_| 7, (0, 0, &[])), 10_000);
    let mut site = site(10_000);
    for session in 0..10_500 {
        serve(&mut site, session, 7, MAIN);
    }
    let known = |session| standing(&site, session, MAIN) == Standing::InProgress;
    assert!((0..500).all(|session| !known(session)) && (500..10_500).all(known));
    assert_eq!((site.status().sessions, site.engine.proven_sessions()), (10_000, 0));
    let evictions = Evictions { fresh: 500, proven: 0, over_quota: 500 };
    assert_eq!(site.engine.evictions(), evictions);
}

#[test]
fn newcomers_become_known_even_if_the_table_is_full_of_proven_sessions() {
    let mut site = site(1_600);
    for session in 0..1_600 {
        serve(&mut site, session, session, LOGIN);
    }
    for newcomer in 2_000..3_000 {
        serve(&mut site, newcomer, newcomer, MAIN);
    }
    let evictions = Evictions { fresh: 199, proven: 801, over_quota: 0 };
    assert_eq!((site.engine.evictions(), site.engine.proven_sessions()), (evictions, 799));
    assert_eq!(standing(&site, 2_999, MAIN), Standing::InProgress);
}
