//! Tests of the running share (the share of the slots that one holder may have while others wait),
//! and of the share of slow clients.

use std::collections::HashMap;

use bywash_engine::{
    Action, AddressKey, End, Event, Options, Reason, Request, RequestId, SessionKey, Upload,
};
use bywash_units::{Ratio, TimeSpan};

use crate::dice::Dice;
use crate::site::{MAIN, Site, classes};

fn site(slots: u32, given: &[(&str, &str)]) -> Site {
    let options = Options { limit: slots.into(), ..Options::default() };
    Site::with("session-first", given, classes(), options)
}

/// Makes a request that does not count against its address while it waits, as is the gateway's
/// default.
fn from(site: &mut Site, address: u64) -> RequestId {
    let address = Some(AddressKey(address));
    site.request(Request { address, charged: false, ..Request::of(MAIN) })
}

fn slow(site: &mut Site, id: RequestId, rate: u64) -> Vec<Action> {
    site.tell(Event::ClientSlow { id, rate })
}

fn stopped(actions: &[Action]) -> Vec<RequestId> {
    let stopped = |action: &Action| match action {
        Action::Terminate { id, reason: Reason::SlowClient, .. } => Some(*id),
        _ => None,
    };
    actions.iter().filter_map(stopped).collect()
}

#[test]
fn an_address_with_half_of_the_slots_lets_others_go_first() {
    let mut site = site(4, &[]);
    for _ in 0..4 {
        from(&mut site, 1);
    }
    let of_one: Vec<RequestId> = (0..3).map(|_| from(&mut site, 1)).collect();
    let others: Vec<RequestId> = (2..4).map(|address| from(&mut site, address)).collect();
    // Three, and then two, of the four running requests are of the first address.
    assert_eq!(site.next(), others[0]);
    assert_eq!(site.next(), others[1]);
    // No request of another address waits, so the first address may have all slots again.
    assert_eq!([site.next(), site.next()], of_one[..2]);
}

#[test]
fn an_address_below_its_share_keeps_its_turn() {
    let mut site = site(4, &[]);
    from(&mut site, 1);
    for address in 10..13 {
        from(&mut site, address);
    }
    let (first, second) = (from(&mut site, 1), from(&mut site, 20));
    assert_eq!([site.next(), site.next()], [first, second]);
}

#[test]
fn an_office_behind_one_address_loses_nobody_to_its_share() {
    let mut site = site(4, &[("capacity", "1000")]);
    for _ in 0..500 {
        from(&mut site, 1);
    }
    from(&mut site, 2);
    let started = site.drain().len();
    assert_eq!(started, 497, "all that waited");
    let refused = site.log.iter().any(|action| matches!(action, Action::Shed { .. }));
    assert!(!refused);
}

#[test]
fn proven_sessions_behind_one_address_have_a_share_each() {
    let mut site = site(4, &[]);
    let arrive = |site: &mut Site, session| {
        let (session, address) = (Some(SessionKey(session)), Some(AddressKey(1)));
        site.request(Request { session, address, charged: false, ..Request::of(MAIN) })
    };
    for session in 1..=8 {
        site.prove(session, &[MAIN]);
    }
    for session in 1..=4 {
        arrive(&mut site, session);
    }
    let waiting: Vec<RequestId> = (5..=8).map(|session| arrive(&mut site, session)).collect();
    let stranger = from(&mut site, 2);
    assert_eq!(site.drain(), [&waiting[..], &[stranger]].concat());
}

#[test]
fn a_request_that_was_set_back_is_the_first_to_be_evicted() {
    let mut site = site(4, &[("capacity", "2"), ("floor_share", "0")]);
    for _ in 0..4 {
        from(&mut site, 1);
    }
    let set_back = from(&mut site, 1);
    let other = from(&mut site, 2);
    assert_eq!(site.next(), other);
    from(&mut site, 3);
    from(&mut site, 4);
    assert_eq!(site.refusal(set_back), Some(Reason::SetBack));
}

/// Checks that a holder above its share never gets a slot while a request of a holder below its
/// share waits.
#[test]
fn a_holder_above_its_share_never_goes_before_others() {
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let slots = 2 + dice.below(6) as u32;
        let mut site =
            site(slots, &[("floor_share", "0"), ("capacity", "12"), ("principal_cap", "100")]);
        let mut holder: HashMap<RequestId, u64> = HashMap::new();
        let (mut waiting, mut running): (Vec<RequestId>, Vec<RequestId>) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            let before = site.log.len();
            if dice.percent(60) || running.is_empty() {
                // Most requests come from one address.
                let address = if dice.percent(70) { 0 } else { 1 + dice.below(5) };
                let id = from(&mut site, address);
                holder.insert(id, address);
                waiting.push(id);
            } else {
                let id = running.remove(dice.below(running.len() as u64) as usize);
                site.tell(Event::Finished { id, end: End::ANSWERED });
            }
            let new = site.log[before..].to_vec();
            for action in new {
                match action {
                    Action::Dispatch { id, .. } => {
                        let runs = |of: u64| running.iter().filter(|id| holder[*id] == of).count();
                        let full = |of: u64| runs(of) >= (slots as usize / 2).max(2);
                        let below = |other: &&RequestId| !full(holder[*other]);
                        let passed = waiting.iter().find(below);
                        assert!(
                            !full(holder[&id]) || passed.is_none(),
                            "seed {seed}: {id:?} went before {passed:?}"
                        );
                        waiting.retain(|other| *other != id);
                        running.push(id);
                    }
                    Action::Shed { id, .. } => waiting.retain(|other| *other != id),
                    Action::Terminate { .. } | Action::Cancel { .. } => unreachable!(),
                }
            }
        }
    }
}

#[test]
fn slow_clients_keep_their_slots_while_nobody_waits() {
    let mut site = site(4, &[]);
    for address in 0..4 {
        let id = from(&mut site, address);
        assert_eq!(slow(&mut site, id, 700), []);
    }
    assert_eq!(site.engine.slow_clients(), 4);
}

#[test]
fn while_others_wait_slow_clients_keep_one_slot_and_the_slowest_go_first() {
    let mut site = site(4, &[]);
    let ids: Vec<RequestId> = (0..4).map(|address| from(&mut site, address)).collect();
    for (id, rate) in ids.iter().zip([20_000, 700, 125_000, 60]) {
        slow(&mut site, *id, rate);
    }
    let mut stopped_for = |address| {
        let before = site.log.len();
        site.arrive_from(address, MAIN);
        stopped(&site.log[before..])
    };
    assert_eq!(stopped_for(9), [ids[3]], "one slot is enough for one visitor");
    assert_eq!(stopped_for(10), [ids[1]]);
    assert_eq!(stopped_for(11), [ids[0]]);
    assert_eq!(stopped_for(12), [], "one slot is theirs");
    assert_eq!((site.engine.slow_clients(), site.engine.running()), (1, 4));
}

#[test]
fn a_share_below_one_slot_is_a_share_of_the_time() {
    let mut site = site(1, &[]);
    let held = |site: &mut Site| {
        let id = from(site, 1);
        from(site, 2);
        let since = site.now;
        // The driver reports once a second that the client is slow.
        while stopped(&slow(site, id, 700)).is_empty() {
            site.now = site.now + TimeSpan::from_secs(1);
            assert!(site.now.since(since) < TimeSpan::from_secs(60), "it is never stopped");
        }
        let held = site.now.since(since);
        site.drain();
        held.as_secs_f64()
    };
    // At first, an eighth of a minute is saved. Later an eighth of the passing time is added.
    assert!((7.0..=10.0).contains(&held(&mut site)));
    assert!(held(&mut site) <= 1.0, "nothing is saved");
    site.now = site.now + TimeSpan::from_secs(32);
    assert!((3.5..=5.5).contains(&held(&mut site)), "half a minute's share");
}

#[test]
fn a_client_that_becomes_slow_while_others_wait_is_stopped_then() {
    let mut site = site(2, &[]);
    let ids = [from(&mut site, 1), from(&mut site, 2)];
    let visitor = from(&mut site, 3);
    assert_eq!(stopped(&slow(&mut site, ids[0], 700)), []);
    assert_eq!(stopped(&slow(&mut site, ids[1], 90)), [ids[1]]);
    assert_eq!(site.refusal(visitor), None);
    assert_eq!(site.engine.running(), 2);
}

#[test]
fn a_client_that_has_caught_up_is_slow_no_longer() {
    let mut site = site(2, &[]);
    let ids = [from(&mut site, 1), from(&mut site, 2)];
    for id in ids {
        slow(&mut site, id, 700);
    }
    site.tell(Event::ClientCaughtUp { id: ids[0] });
    from(&mut site, 3);
    assert_eq!(stopped(&site.log), []);
    assert_eq!(site.engine.slow_clients(), 1);
}

#[test]
fn a_proven_session_is_stopped_after_strangers_however_slow_it_is() {
    let mut site = site(3, &[]);
    site.prove(7, &[MAIN]);
    let proven = site.arrive_in(7, MAIN);
    let strangers = [from(&mut site, 1), from(&mut site, 2)];
    slow(&mut site, proven, 1);
    for id in strangers {
        slow(&mut site, id, 1_000_000);
    }
    from(&mut site, 3);
    from(&mut site, 4);
    assert_eq!(stopped(&site.log), strangers);
}

#[test]
fn of_equally_slow_clients_the_address_with_most_requests_goes_first() {
    let mut site = site(4, &[]);
    let users = from(&mut site, 5);
    let of_one = [from(&mut site, 1), from(&mut site, 1), from(&mut site, 1)];
    slow(&mut site, users, 700);
    for id in of_one {
        slow(&mut site, id, 900);
    }
    site.arrive_from(9, MAIN);
    site.arrive_from(10, MAIN);
    assert_eq!(stopped(&site.log), of_one[..2]);
}

#[test]
fn what_a_slow_client_gives_back_counts_once() {
    let mut site = site(2, &[]);
    let ids = [from(&mut site, 1), from(&mut site, 2)];
    for id in ids {
        slow(&mut site, id, 700);
    }
    site.leave(ids[0]);
    site.tell(Event::Finished { id: ids[1], end: End::ANSWERED });
    assert_eq!((site.engine.slow_clients(), site.engine.running()), (0, 0));
    // A report about a request that has ended has no effect.
    assert_eq!(slow(&mut site, ids[0], 5), []);
    assert_eq!(site.engine.slow_clients(), 0);
}

#[test]
fn with_all_slots_for_slow_clients_none_is_stopped() {
    let options = Options { limit: 2.into(), slow_share: Ratio::new(1.0), ..Options::default() };
    let mut site = Site::with("session-first", &[], classes(), options);
    for address in 0..2 {
        let id = from(&mut site, address);
        slow(&mut site, id, 1);
    }
    from(&mut site, 3);
    site.pass(TimeSpan::from_millis(10));
    assert_eq!(stopped(&site.log), []);
}

/// Runs two requests of an address with slow clients, and lets a visitor arrive. So one of the two
/// is stopped.
fn stop_one_of(site: &mut Site, address: u64) {
    let before = site.log.len();
    let ids = [from(site, address), from(site, address)];
    site.now = site.now + TimeSpan::from_millis(500);
    for id in ids {
        slow(site, id, 700);
    }
    from(site, 50);
    assert_eq!(stopped(&site.log[before..]).len(), 1);
}

/// Returns a site with two slots. One request of an address with slow clients has just been
/// stopped.
fn site_with_slow_address(given: &[(&str, &str)]) -> Site {
    let mut site = site(2, given);
    stop_one_of(&mut site, 1);
    site
}

#[test]
fn an_address_that_was_stopped_as_slow_waits_behind_all_others() {
    let mut site = site_with_slow_address(&[("floor_share", "0.5")]);
    let again = from(&mut site, 1);
    for address in 10..14 {
        from(&mut site, address);
    }
    let order = site.drain();
    assert_eq!((order.len(), order.last()), (5, Some(&again)));
}

#[test]
fn a_slow_address_is_trusted_again_after_a_minute_and_after_twice_as_long_the_next_time() {
    let mut site = site_with_slow_address(&[]);
    let order = |site: &mut Site, seconds| {
        empty(site);
        site.now = site.now + TimeSpan::from_secs(seconds);
        let _running = [from(site, 50), from(site, 50)];
        let pair = [from(site, 1), from(site, 10)];
        let order = site.drain();
        assert_eq!(order.len(), 2);
        order == pair
    };
    assert!(!order(&mut site, 59));
    assert!(order(&mut site, 1));
    empty(&mut site);
    stop_one_of(&mut site, 1);
    assert!(!order(&mut site, 119));
    assert!(order(&mut site, 1));
}

#[test]
fn an_upload_that_was_stopped_before_it_was_judged_speaks_against_nobody() {
    let mut site = site(2, &[]);
    for address in [1, 1] {
        let id = from(&mut site, address);
        slow(&mut site, id, 8192);
    }
    from(&mut site, 50);
    assert_eq!(stopped(&site.log).len(), 1);
    let pair = [from(&mut site, 1), from(&mut site, 10)];
    assert_eq!(site.drain(), pair);
}

#[test]
fn a_slow_session_that_has_proven_itself_waits_behind_strangers_who_are_not_slow() {
    let mut site = site(2, &[]);
    site.prove(7, &[MAIN]);
    site.prove(8, &[MAIN]);
    let ids = [site.arrive_in(7, MAIN), site.arrive_in(7, MAIN)];
    site.now = site.now + TimeSpan::from_millis(500);
    for id in ids {
        slow(&mut site, id, 700);
    }
    from(&mut site, 50);
    let slow_one = site.arrive_in(7, MAIN);
    let stranger = from(&mut site, 10);
    let other = site.arrive_in(8, MAIN);
    assert_eq!(site.drain(), [other, stranger, slow_one]);
}

#[test]
fn a_request_of_a_slow_address_that_waits_does_not_make_it_overload() {
    let mut site = site_with_slow_address(&[("floor_share", "0.5")]);
    from(&mut site, 1);
    for _ in 0..100 {
        from(&mut site, 50);
        from(&mut site, 50);
        site.now = site.now + TimeSpan::from_millis(100);
        site.next();
        site.next();
        assert!(!site.engine.status(site.now).lifo);
    }
}

#[test]
fn a_slow_request_does_not_take_the_floor_share_of_its_class() {
    let mut site = site_with_slow_address(&[("floor_share", "0.5")]);
    empty(&mut site);
    let _running = [from(&mut site, 50), from(&mut site, 50)];
    let slow_one = from(&mut site, 1);
    let stranger = from(&mut site, 10);
    site.prove(7, &[MAIN]);
    for _ in 0..10 {
        site.arrive_in(7, MAIN);
    }
    assert_eq!(site.drain().last(), Some(&slow_one));
    assert!(site.log.contains(&Action::Dispatch { id: stranger, reason: Reason::FloorShare }));
    assert!(!site.log.contains(&Action::Dispatch { id: slow_one, reason: Reason::FloorShare }));
}

#[test]
fn a_refusal_at_a_full_queue_says_whether_the_address_is_why() {
    let mut site = site_with_slow_address(&[("capacity", "2")]);
    empty(&mut site);
    for _ in 0..4 {
        from(&mut site, 50);
    }
    let refused = [from(&mut site, 1), from(&mut site, 50)];
    let reasons = refused.map(|id| site.refusal(id));
    assert_eq!(reasons, [Some(Reason::SetBack), Some(Reason::QueueFull)]);
}

#[test]
fn while_many_are_slow_an_address_that_is_refused_and_asks_again_waits_behind_patient_ones() {
    let mut site = site(2, &[("capacity", "3")]);
    attack(&mut site);
    // The queue is full, so three requests are refused.
    let _running = [from(&mut site, 50), from(&mut site, 50)];
    let known: Vec<RequestId> = (0..3).map(|_| from(&mut site, 50)).collect();
    for _ in 0..3 {
        let refused = from(&mut site, 160);
        assert!(site.refusal(refused).is_some());
        site.now = site.now + TimeSpan::from_secs(1);
    }
    assert!(known.contains(&site.next()));
    let insistent = from(&mut site, 160);
    assert!(known.contains(&site.next()));
    let patient = from(&mut site, 161);
    assert_eq!(site.drain()[1..], [patient, insistent]);
}

#[test]
fn strangers_who_wait_already_when_an_attack_begins_are_the_first_to_be_evicted() {
    let mut site = site(2, &[("capacity", "3")]);
    // These are one stop fewer than the engine takes for an attack.
    stop_from(&mut site, 1..=12);
    let ids = [from(&mut site, 99), from(&mut site, 99)];
    let (first, known, second) = (from(&mut site, 160), from(&mut site, 50), from(&mut site, 161));
    site.now = site.now + TimeSpan::from_millis(500);
    slow(&mut site, ids[0], 700);
    slow(&mut site, ids[1], 700);
    assert!(site.log.contains(&Action::Dispatch { id: known, reason: Reason::Best }));
    for _ in 0..3 {
        from(&mut site, 50);
    }
    assert_eq!([first, second].map(|id| site.refusal(id)), [Some(Reason::SetBack); 2]);
}

/// Stops enough requests of slow clients for the engine to assume an attack.
fn attack(site: &mut Site) {
    stop_from(site, 1..=20);
}

/// Stops one request of a slow client at each address, half a second apart.
fn stop_from(site: &mut Site, addresses: std::ops::RangeInclusive<u64>) {
    for address in addresses {
        stop_one_of(site, address);
        empty(site);
    }
}

/// Answers all running and waiting requests.
fn empty(site: &mut Site) {
    while site.engine.running() > 0 {
        site.finish();
    }
}

#[test]
fn an_address_whose_other_clients_take_their_answers_is_not_slow() {
    let mut site = site(2, &[]);
    for _ in 0..8 {
        from(&mut site, 1);
    }
    empty(&mut site);
    stop_one_of(&mut site, 1);
    let (again, other) = (from(&mut site, 1), from(&mut site, 10));
    assert_eq!(site.drain(), [again, other]);
}

#[test]
fn while_many_are_slow_addresses_of_which_nothing_is_known_wait_behind_known_ones() {
    let mut site = site(2, &[]);
    from(&mut site, 50);
    site.prove(7, &[MAIN]);
    empty(&mut site);
    attack(&mut site);
    let order = |site: &mut Site, stranger: u64| {
        let _running = [from(site, 50), from(site, 50)];
        let stranger = from(site, stranger);
        let (visitor, proven) = (from(site, 50), site.arrive_in(7, MAIN));
        let order = site.drain();
        empty(site);
        (order, [proven, visitor, stranger], [proven, stranger, visitor])
    };
    let (got, behind, _) = order(&mut site, 160);
    assert_eq!(got, behind);
    site.now = site.now + TimeSpan::from_secs(10);
    let (got, _, as_they_came) = order(&mut site, 161);
    assert_eq!(got, as_they_came);
}

/// Makes a request of a new session whose body has not been received completely.
fn upload(site: &mut Site, address: u64) -> RequestId {
    let address = Some(AddressKey(address));
    site.request(Request {
        address,
        charged: false,
        upload: Upload::Unfinished,
        ..Request::of(MAIN)
    })
}

/// Returns whether the request holds a slot.
fn runs(site: &Site, id: RequestId) -> bool {
    site.log.iter().any(|action| matches!(action, Action::Dispatch { id: it, .. } if *it == id))
}

#[test]
fn uploads_of_strangers_hold_half_of_the_slots_and_leave_the_others_free() {
    let mut site = site(4, &[]);
    let uploads: Vec<RequestId> = (1..=3).map(|address| upload(&mut site, address)).collect();
    assert_eq!([0, 1, 2].map(|n| runs(&site, uploads[n])), [true, true, false]);
    assert!(!site.engine.has_free_slot(), "not for an upload");
    let visitors = [from(&mut site, 10), from(&mut site, 11)];
    assert!(visitors.iter().all(|id| runs(&site, *id)), "they wait for nobody");
    site.tell(Event::Finished { id: visitors[0], end: End::ANSWERED });
    assert!(!runs(&site, uploads[2]));
    site.tell(Event::Finished { id: uploads[0], end: End::ANSWERED });
    assert!(runs(&site, uploads[2]), "its turn has come");
}

#[test]
fn no_upload_is_stopped_for_a_request_that_has_a_slot() {
    let mut site = site(4, &[]);
    let uploads = [upload(&mut site, 1), upload(&mut site, 2)];
    let readers = [from(&mut site, 3), from(&mut site, 4)];
    for (ids, rate) in [(uploads, 2000), (readers, 1000)] {
        for id in ids {
            site.tell(Event::ClientSlow { id, rate });
        }
    }
    site.now = site.now + TimeSpan::from_secs(1);
    let visitor = from(&mut site, 10);
    assert!(runs(&site, visitor));
    assert_eq!(stopped(&site.log).len(), 1, "a reader, and nothing waits any more");
    assert!(uploads.iter().all(|id| !stopped(&site.log).contains(id)));
}

#[test]
fn an_upload_that_has_come_as_a_whole_leaves_its_share_to_others() {
    let mut site = site(4, &[]);
    let ids = [1, 2, 3].map(|address| upload(&mut site, address));
    site.tell(Event::BodyComplete { id: ids[2] });
    assert!(!runs(&site, ids[2]), "what completes while it waits counts when it runs");
    site.tell(Event::BodyComplete { id: ids[0] });
    assert!(runs(&site, ids[2]));
    site.tell(Event::BodyComplete { id: ids[0] });
    let fourth = upload(&mut site, 4);
    assert!(!runs(&site, fourth), "it counts once");
    site.tell(Event::Finished { id: ids[0], end: End::ANSWERED });
    assert!(!runs(&site, fourth));
}

#[test]
fn uploads_of_strangers_wait_behind_complete_requests_and_are_evicted_first() {
    let mut site = site(2, &[("capacity", "2"), ("floor_share", "0")]);
    let _running = [from(&mut site, 1), from(&mut site, 2)];
    let (first, visitor, second) = (upload(&mut site, 3), from(&mut site, 4), from(&mut site, 5));
    assert_eq!(site.refusal(first), Some(Reason::Evicted));
    assert_eq!([site.next(), site.next()], [visitor, second]);
    let refused = [from(&mut site, 6), from(&mut site, 7), upload(&mut site, 8)][2];
    assert_eq!(site.refusal(refused), Some(Reason::QueueFull));
}

#[test]
fn an_upload_takes_no_floor_share_while_uploads_hold_their_half() {
    let mut site = site(2, &[("floor_share", "0.5")]);
    upload(&mut site, 1);
    let mut runs_now = from(&mut site, 2);
    let waiting = upload(&mut site, 3);
    for _ in 0..10 {
        from(&mut site, 4);
    }
    for _ in 0..10 {
        let end = Event::Finished { id: runs_now, end: End::ANSWERED };
        let [Action::Dispatch { id, .. }] = site.tell(end)[..] else { panic!("{:?}", site.log) };
        assert_ne!(id, waiting);
        runs_now = id;
    }
}

#[test]
fn one_slot_is_an_uploads_too_and_with_all_slots_for_slow_clients_all_are() {
    let mut single = site(1, &[]);
    let id = upload(&mut single, 1);
    assert!(runs(&single, id));
    let options = Options { limit: 2.into(), slow_share: Ratio::new(1.0), ..Options::default() };
    let mut site = Site::with("session-first", &[], classes(), options);
    let ids = [upload(&mut site, 1), upload(&mut site, 2)];
    assert!(ids.iter().all(|id| runs(&site, *id)));
}

#[test]
fn uploads_of_proven_sessions_may_hold_all_slots() {
    let mut site = site(2, &[]);
    for session in 1..=2 {
        site.prove(session, &[MAIN]);
        let session = Some(SessionKey(session));
        let id = site.request(Request { session, upload: Upload::Unfinished, ..Request::of(MAIN) });
        assert!(runs(&site, id));
    }
}

#[test]
fn a_slow_upload_is_stopped_for_one_that_waits_although_slots_are_free() {
    let mut site = site(4, &[]);
    let reader = from(&mut site, 9);
    let uploads = [upload(&mut site, 1), upload(&mut site, 2)];
    slow(&mut site, reader, 1);
    for id in uploads {
        slow(&mut site, id, 700);
    }
    let waiting = upload(&mut site, 3);
    assert_eq!(stopped(&site.log).len(), 1);
    assert!(uploads.contains(&stopped(&site.log)[0]), "the slow reader holds no slot of uploads");
    assert!(runs(&site, waiting));
}

#[test]
fn of_equally_slow_clients_the_one_that_has_run_for_the_shortest_time_is_stopped() {
    let mut site = site(4, &[]);
    let mut ids = Vec::new();
    for address in 1..=4 {
        ids.push(from(&mut site, address));
        site.now = site.now + TimeSpan::from_secs(1);
    }
    for id in [ids[2], ids[0], ids[3], ids[1]] {
        slow(&mut site, id, 700);
    }
    from(&mut site, 10);
    from(&mut site, 11);
    assert_eq!(stopped(&site.log), [ids[3], ids[2]]);
}

#[test]
fn no_reader_is_stopped_for_an_upload_that_may_not_have_its_slot() {
    let mut site = site(4, &[]);
    let readers = [from(&mut site, 8), from(&mut site, 9)];
    let _uploads = [upload(&mut site, 1), upload(&mut site, 2)];
    let waiting = upload(&mut site, 3);
    for id in readers {
        slow(&mut site, id, 20_000);
    }
    upload(&mut site, 4);
    assert_eq!(stopped(&site.log), []);
    assert!(!runs(&site, waiting));
    from(&mut site, 10);
    assert_eq!(stopped(&site.log), readers[..1]);
}

#[test]
fn half_as_many_stops_as_there_are_slots_make_an_attack() {
    for (stops, is_attack) in [(15, false), (16, true)] {
        let mut site = site(32, &[]);
        for address in 0..=stops {
            from(&mut site, address);
        }
        empty(&mut site);
        let ids: Vec<RequestId> = (0..32).map(|n| from(&mut site, 1000 + n)).collect();
        site.now = site.now + TimeSpan::from_millis(500);
        // Slow clients may hold four slots, so the rest of these requests are stopped.
        for id in &ids[..stops as usize + 4] {
            slow(&mut site, *id, 700);
        }
        for address in 1..=stops {
            from(&mut site, address);
        }
        assert_eq!(stopped(&site.log).len() as u64, stops);
        let (stranger, known) = (from(&mut site, 3000), from(&mut site, 0));
        assert_eq!(site.next(), if is_attack { known } else { stranger });
    }
}

#[test]
fn while_more_uploads_wait_than_may_run_addresses_of_which_nothing_is_known_wait_behind_known_ones()
{
    for (uploads, behind) in [(4, false), (5, true)] {
        let mut site = site(4, &[]);
        from(&mut site, 50);
        empty(&mut site);
        for address in 1..=uploads {
            upload(&mut site, address);
        }
        let running = [from(&mut site, 50), from(&mut site, 60)];
        let (stranger, known) = (from(&mut site, 61), from(&mut site, 50));
        site.tell(Event::Finished { id: running[1], end: End::ANSWERED });
        assert_eq!(runs(&site, known), behind);
        assert_eq!(runs(&site, stranger), !behind);
    }
}

/// Checks after random events that uploads of new sessions hold no more than half of the slots.
/// Checks that no request that may run waits while a slot is free.
#[test]
fn a_free_slot_is_only_kept_from_uploads() {
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let slots = 1 + dice.below(6) as usize;
        let mut site = site(slots as u32, &[("capacity", "12"), ("principal_cap", "100")]);
        let mut uploads: HashMap<RequestId, bool> = HashMap::new();
        let (mut waiting, mut running): (Vec<RequestId>, Vec<RequestId>) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            let before = site.log.len();
            if dice.percent(60) || running.is_empty() {
                let (address, is_upload) = (dice.below(8), dice.percent(60));
                let id =
                    if is_upload { upload(&mut site, address) } else { from(&mut site, address) };
                uploads.insert(id, is_upload);
                waiting.push(id);
            } else if dice.percent(40) {
                site.now = site.now + TimeSpan::from_millis(500);
                slow(&mut site, running[dice.below(running.len() as u64) as usize], 700);
            } else {
                let id = running.remove(dice.below(running.len() as u64) as usize);
                site.tell(Event::Finished { id, end: End::ANSWERED });
            }
            for action in &site.log[before..] {
                match *action {
                    Action::Dispatch { id, .. } => {
                        waiting.retain(|other| *other != id);
                        running.push(id);
                    }
                    Action::Shed { id, .. } => waiting.retain(|other| *other != id),
                    Action::Terminate { id, .. } => running.retain(|other| *other != id),
                    Action::Cancel { .. } => unreachable!(),
                }
            }
            let held = running.iter().filter(|id| uploads[*id]).count();
            let most = (slots / 2).max(1);
            assert!(held <= most, "seed {seed}: {held} uploads run");
            let may = |id: &&RequestId| !uploads[*id] || held < most;
            let waits = waiting.iter().find(may);
            assert!(running.len() >= slots || waits.is_none(), "seed {seed}: {waits:?} waits");
        }
    }
}
