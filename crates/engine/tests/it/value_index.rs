//! Tests of the scheduler `value-index`: what it learns from sessions, and the requests that it
//! serves first.

use bywash_engine::{
    Class, ClassId, ClassSet, End, Event, Learn, Learned, Options, Request, RequestId, Service,
    SessionKey, Signals,
};
use bywash_units::{TimeSpan, Utility};

use crate::site::{
    BROWSE, CONFIRM, DETAILS, LOGIN, MAIN, PAYMENT, SEARCH, SHIPPING, Site, classes,
};

const CART: Signals = Signals::NONE.with(0);
/// The classes that a buyer asks for after the first page.
const CHECKOUT: [ClassId; 4] = [LOGIN, SHIPPING, PAYMENT, CONFIRM];

fn with_revenue() -> Vec<Class> {
    let mut classes = classes();
    classes[CONFIRM.index()].revenue = Utility::new(1.0);
    classes
}

fn site(policy: &str, given: &[(&str, &str)]) -> Site {
    let options = Options { limit: 1.into(), ..Options::default() };
    Site::with(policy, given, with_revenue(), options)
}

/// Serves a session a page of a class, which takes 10 ms. An order brings a revenue of 1.
fn served(site: &mut Site, session: u64, class: ClassId, signals: Signals) {
    brings(site, session, class, signals, if class == CONFIRM { 1.0 } else { 0.0 });
}

/// Serves a session a page of a class, which takes 10 ms. The page brings `revenue`.
fn brings(site: &mut Site, session: u64, class: ClassId, signals: Signals, revenue: f64) {
    let key = SessionKey(session);
    site.request(Request { session: Some(key), signals, ..Request::of(class) });
    site.now = site.now + TimeSpan::from_millis(10);
    let revenue = Utility::new(revenue);
    site.tell(Event::Served {
        session: key,
        service: Service::content(class),
        signals,
        revenue,
        in_time: true,
    });
    site.finish();
}

/// Runs a number of sessions that begin with `class` and these signals. `many` is their number, and
/// one in `nth` of them makes an order.
fn sessions(site: &mut Site, many: u64, class: ClassId, signals: Signals, nth: u64) {
    let first = 1 << 40 | u64::from(class.0) << 32 | (signals.index() as u64) << 24;
    for session in first..first + many {
        served(site, session, class, signals);
        if session % nth == 0 {
            for class in CHECKOUT {
                served(site, session, class, signals);
            }
        }
    }
}

/// Returns a site that has seen about 100 orders. Visitors who begin with `MAIN` order ten times as
/// often as those who begin with `SEARCH`. With a cart they order four times as often as without.
/// The learned values are due to be published.
fn taught(policy: &str) -> Site {
    let mut site = site(policy, &[]);
    sessions(&mut site, 400, MAIN, Signals::NONE, 10);
    sessions(&mut site, 150, MAIN, CART, 3);
    sessions(&mut site, 400, SEARCH, Signals::NONE, 100);
    site.now = site.now + TimeSpan::from_secs(10);
    site
}

/// Returns the site with its only slot taken.
fn busy(mut site: Site) -> Site {
    site.arrive(BROWSE);
    site
}

fn newcomer(site: &mut Site, class: ClassId, signals: Signals) -> RequestId {
    site.request(Request { signals, ..Request::of(class) })
}

#[test]
fn who_begins_where_visitors_buy_goes_first() {
    let order = |policy: &str| {
        let mut site = busy(taught(policy));
        let ids = [SEARCH, MAIN].map(|class| newcomer(&mut site, class, Signals::NONE));
        (site.drain(), ids)
    };
    let (served, [search, main]) = order("value-index");
    assert_eq!(served, [main, search]);
    let (served, [search, main]) = order("session-first");
    assert_eq!(served, [search, main], "it does not ask what they are worth");
}

#[test]
fn who_shows_what_buyers_show_goes_first() {
    let mut site = busy(taught("value-index"));
    let [plain, cart] = [Signals::NONE, CART].map(|shown| newcomer(&mut site, MAIN, shown));
    assert_eq!(site.drain(), [cart, plain]);
}

#[test]
fn a_session_has_the_signals_that_it_began_with() {
    let mut site = taught("value-index");
    let sessions = [(1, Signals::NONE), (2, CART)];
    for (session, shown) in sessions {
        served(&mut site, session, MAIN, shown);
    }
    let mut site = busy(site);
    let [plain, cart] = sessions.map(|(session, _)| site.arrive_in(session, DETAILS));
    assert_eq!(site.drain(), [cart, plain]);
}

#[test]
fn the_nearer_to_the_order_the_sooner() {
    let mut site = taught("value-index");
    let sessions = [1, 2, 3];
    for (session, steps) in sessions.into_iter().zip(1..) {
        served(&mut site, session, MAIN, Signals::NONE);
        CHECKOUT[..steps]
            .iter()
            .for_each(|class| served(&mut site, session, *class, Signals::NONE));
    }
    let mut site = busy(site);
    let waiting = sessions.map(|session| site.arrive_in(session, CHECKOUT[session as usize]));
    assert_eq!(site.drain(), [waiting[2], waiting[1], waiting[0]]);
}

#[test]
fn an_order_of_nobody_is_worth_no_more_than_the_cheapest_page() {
    let mut site = busy(taught("value-index"));
    let claimed = site.arrive(CONFIRM);
    let main = newcomer(&mut site, MAIN, Signals::NONE);
    assert_eq!(site.drain(), [main, claimed]);
}

#[test]
fn the_least_worth_makes_room() {
    let mut site = taught("value-index");
    let mut other = self::site("value-index", &[("capacity", "2")]);
    for class in 0..8 {
        let (counts, published) = site.engine.learning().counts(ClassId(class));
        other.engine.restore_counts(ClassId(class), &counts, published);
    }
    other.now = site.now;
    site = busy(other);
    let [search, main] = [SEARCH, MAIN].map(|class| newcomer(&mut site, class, Signals::NONE));
    let another = newcomer(&mut site, MAIN, Signals::NONE);
    assert!(site.refusal(search).is_some());
    assert_eq!(site.drain(), [main, another]);
}

#[test]
fn whoever_waits_when_it_becomes_known_is_ranked_by_it() {
    let mut site = site("value-index", &[]);
    // These sessions take less than ten seconds, so nothing has been published yet.
    sessions(&mut site, 200, MAIN, Signals::NONE, 2);
    assert!(!site.engine.learning().is_known());
    let mut site = busy(site);
    site.prove(1, &[SHIPPING]);
    site.prove(2, &[LOGIN]);
    let payment = site.arrive_in(1, PAYMENT);
    site.now = site.now + TimeSpan::from_secs(10);
    // Shipping is nearer to an order than any first page, and less near than the payment.
    let shipping = site.arrive_in(2, SHIPPING);
    assert!(site.engine.learning().is_known());
    assert_eq!(site.drain(), [payment, shipping]);
}

fn learned(site: &Site, class: ClassId) -> Learned {
    let learned = site.engine.learning().learned(site.engine.classes());
    learned[class.index()].clone()
}

#[test]
fn who_looks_at_her_receipt_again_has_not_ordered_again() {
    let mut site = site("value-index", &[]);
    served(&mut site, 1, MAIN, Signals::NONE);
    (0..50).for_each(|_| served(&mut site, 1, CONFIRM, Signals::NONE));
    assert!((site.engine.learning().orders() - 1.0).abs() < 0.01);
}

#[test]
fn an_order_that_succeeds_at_the_second_attempt_is_an_order() {
    let mut site = site("value-index", &[]);
    served(&mut site, 1, MAIN, CART);
    for revenue in [0.0, 1.0, 1.0] {
        brings(&mut site, 1, CONFIRM, CART, revenue);
    }
    assert!((site.engine.learning().orders() - 1.0).abs() < 0.01);
    let (_, ordered, _) = site.engine.learning().signals(CART);
    assert!((ordered - 1.0).abs() < 0.01, "{ordered}");
}

#[test]
fn what_ran_in_vain_counts_whoever_asked_for_it() {
    let mut site = site("value-index", &[]);
    let mut play = |ends: &[End], gone: usize| {
        for _ in 0..300 {
            for end in ends {
                let id = site.arrive(DETAILS);
                site.tell(Event::Finished { id, end: *end });
            }
            for _ in 0..gone {
                let id = site.arrive(DETAILS);
                site.leave(id);
            }
        }
        learned(&site, DETAILS).completes
    };
    // These requests have no session. Their cost is learned all the same.
    assert!((play(&[End::ANSWERED; 3], 1) - 0.75).abs() < 0.1);
    assert!(play(&[End::TimedOut], 0) < 0.4);
    let late = End::Answered { in_time: false, held_up: false, done: true };
    assert!(play(&[End::ANSWERED], 0) > 0.6);
    assert!(play(&[late], 0) < 0.4);
}

#[test]
fn a_session_that_began_elsewhere_is_no_beginning_here() {
    let mut site = site("value-index", &[]);
    let (signals, revenue) = (CART, Utility::new(1.0));
    let session = SessionKey(7);
    site.tell(Event::Served {
        session,
        service: Service { had_begun: true, ..Service::content(PAYMENT) },
        signals,
        revenue: Utility::default(),
        in_time: true,
    });
    site.arrive_in(7, CONFIRM);
    site.tell(Event::Served {
        session,
        service: Service { had_begun: true, ..Service::content(CONFIRM) },
        signals,
        revenue,
        in_time: true,
    });
    assert!(learned(&site, PAYMENT).first_visits <= 0.0);
    assert!((site.engine.learning().orders() - 1.0).abs() < 0.01);
    for shown in [CART, Signals::NONE] {
        let (sessions, ordered, _) = site.engine.learning().signals(shown);
        assert!(sessions <= 0.0 && ordered <= 0.0, "{shown:?}: {sessions}, {ordered}");
    }
}

#[test]
fn what_a_session_showed_means_nothing_where_other_signals_are_looked_for() {
    let mut site = site("value-index", &[]);
    served(&mut site, 1, MAIN, CART);
    let learn = Learn { kinds: 1, ..Learn::default() };
    site.reconfigure(
        with_revenue(),
        None,
        Options { limit: 1.into(), learn, ..Options::default() },
    );
    served(&mut site, 1, CONFIRM, CART);
    let ordered = |shown| site.engine.learning().signals(shown).1;
    assert!(ordered(CART) <= 0.0 && ordered(Signals::NONE) > 0.9);
}

#[test]
fn what_was_counted_of_signals_goes_on_only_where_the_same_are_looked_for() {
    let mut before = site("value-index", &[]);
    served(&mut before, 1, MAIN, CART);
    let (kinds, counts) = before.engine.learning().signal_counts();
    let sessions = |kinds: u64, counts: &[[f64; 3]]| {
        let mut next = site("value-index", &[]);
        next.engine.restore_signals(kinds, counts);
        next.engine.learning().signals(CART).0
    };
    assert!(sessions(kinds, &counts) > 0.9);
    assert!(sessions(kinds + 1, &counts) <= 0.0);
    assert!(sessions(kinds, &counts[1..]) <= 0.0);
}

#[test]
fn a_new_class_is_worth_what_its_tier_is_before_anybody_comes() {
    let mut site = taught("value-index");
    site.arrive(MAIN);
    let known = learned(&site, MAIN).index[0].unwrap();
    let mut classes = with_revenue();
    classes.push(Class {
        name: "wallet".into(),
        requires: ClassSet::NONE,
        ..classes[PAYMENT.index()].clone()
    });
    let wallet = ClassId(8);
    let policy = bywash_engine::catalog::find("value-index").unwrap();
    let settings = policy.settings([]).unwrap();
    let options = Options { limit: 1.into(), ..Options::default() };
    site.reconfigure(classes, Some(&settings), options);
    let index = |class| learned(&site, class).index[0].unwrap();
    assert!(index(wallet) > index(MAIN), "{} and {}", index(wallet), index(MAIN));
    let Learned { before, utility, .. } = learned(&site, wallet);
    assert_eq!(before, Some(utility), "nothing of it has changed");
    // The index of an existing class has changed by no more than the bound allows for the time
    // since the last publication.
    assert!((index(MAIN) / known - 1.0).abs() < 0.01, "{} after {known}", index(MAIN));
}
