//! Tests against a poisoner: a client that requests a page whenever the site is busy with something
//! else, so that the page appears to cause the load. The tests check the finding about the page,
//! and how far its evidence prevents a rule without approval.
//!
//! The tests run in virtual time, with the watch and the rule store as the gateway uses them and
//! with `act = "auto"`. The site has two processors and a load that rises and falls for half an
//! hour. The poisoner does not know where the load comes from. `cargo test -p bywash-control --test
//! it poisoning:: -- --nocapture` prints the figures of docs/figures/elephants.md.

use std::net::Ipv4Addr;

use bywash_control::{Act, Client, Elephant, Resource, RuleStore, Seen, Timestamp, Watch, Watched};
use bywash_units::{Time, TimeSpan};

/// The origin of the load during which the poisoner sends its requests.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    /// A job of the machine itself, such as a backup, without requests.
    Job,
    /// A page that many clients request.
    Searches,
}

/// A client that makes [`PAGE`] look heavy on purpose. One request for the page takes [`COST`]
/// seconds of a processor.
#[derive(Clone, Copy, Debug)]
struct Poison {
    load: Load,
    /// The number of addresses from which the poisoner sends requests.
    addresses: u64,
    /// The number of the poisoner's requests per second while the site is busy.
    rate: u64,
    /// The duration of one request for the page, in seconds.
    lasts: f64,
    seed: u64,
}

/// The duration, in seconds, of a request for a page that waits for another system.
const SLOW: f64 = 0.8;

const PAGE: &str = "/about";
const COST: f64 = 0.002;

fn at(seconds: f64) -> Time {
    Time::from_nanos((seconds * 1e9) as u64)
}

/// Returns a pseudo-random number from 0 to below 1, derived from `number`.
fn chance(number: u64) -> f64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64
        / (1_u64 << 53) as f64
}

fn ask(watch: &mut Watch, target: &str, client: u64, from: f64, lasts: f64) {
    let worked = Some((at(from), at(from + lasts)));
    let response = Some(TimeSpan::from_secs_f64(lasts));
    let (method, bytes, transacts, is_good) = ("GET", 1_000, false, true);
    let client = Client { key: client, network: Ipv4Addr::from_bits(client as u32).into() };
    let rule = None;
    let seen = Seen { method, target, client, worked, rule, response, bytes, transacts, is_good };
    watch.request(at(from + lasts), &seen);
}

impl Poison {
    /// Simulates half an hour of load. Returns the finding about the page, the true fraction of the
    /// page's work that the poisoner caused, and whether a rule holds the page back.
    fn played(&self) -> (Option<Elephant>, f64, bool) {
        let consists_of = Resource::Processors;
        let db = Watched { name: "db".into(), consists_of, capacity: 2.0, idle: 0.0 };
        let mut watch = Watch::new(Vec::new(), vec![db], TimeSpan::from_secs(1800));
        let mut store = RuleStore::default();
        let (mut hers, mut all, mut number, mut busy_until) = (0.0, 0.0, self.seed * 1_000_000, 0);
        for second in 0..1_830_u64 {
            let start = second as f64;
            let mut draw = || {
                number += 1;
                chance(number)
            };
            if second > busy_until && draw() < 0.05 {
                busy_until = second + 5 + (draw() * 20.0) as u64;
            }
            let is_busy = second < busy_until;
            let mut used = 0.1 * draw();
            for n in 0..20 {
                ask(
                    &mut watch,
                    &format!("/item/{n}"),
                    second * 20 + n,
                    start + 0.04 * n as f64,
                    COST,
                );
                used += COST;
            }
            // One visitor per second, who is not the poisoner, requests the page.
            ask(&mut watch, PAGE, 1_000_000 + second, start + 0.5, self.lasts);
            (used, all) = (used + COST, all + COST);
            match (self.load, is_busy) {
                (Load::Job, true) => used += 1.5 + 0.3 * draw(),
                (Load::Searches, true) => {
                    for n in 0..5 + (draw() * 3.0) as u64 {
                        let target = format!("/search?q={n}");
                        ask(&mut watch, &target, second * 9 + n, start + 0.1 * n as f64, 0.3);
                        used += 0.3;
                    }
                }
                (Load::Job | Load::Searches, false) => {}
            }
            for n in (0..self.rate).filter(|_| is_busy) {
                let client = 10 + (second * self.rate + n) % self.addresses;
                ask(
                    &mut watch,
                    PAGE,
                    client,
                    start + 0.9 * n as f64 / self.rate as f64,
                    self.lasts,
                );
                (used, all, hers) = (used + COST, all + COST, hers + COST);
            }
            watch.used(0, at(start), at(start + 1.0), used.min(2.0));
            watch.advance(at(start + 1.0));
            if second % 60 == 59 {
                let now = Timestamp::from_second(second.cast_signed()).expect("a time");
                store.found(now, watch.elephants(100.0, None), Act::Auto);
            }
        }
        let found = watch.elephants(100.0, None).into_iter().find(|one| one.pattern == PAGE);
        let is_held = store.in_force().iter().any(|rule| rule.pattern == PAGE);
        (found, hers / all, is_held)
    }
}

#[test]
fn what_one_client_makes_look_heavy_is_shown_as_hers_and_left_alone() {
    for seed in 1..=3 {
        for rate in [1, 2, 5, 20] {
            let poison = Poison { load: Load::Job, addresses: 1, rate, lasts: SLOW, seed };
            let (found, hers, is_held) = poison.played();
            let shown = found.as_ref().map(|one| (one.of_capacity(), one.by_one, one.provisional));
            println!("{poison:?}: {hers:.2} hers; of capacity, by one, provisional: {shown:.2?}");
            // A poisoner with no more than this fraction of the work looks like one client among
            // many.
            assert!(!is_held || hers <= 0.31, "{poison:?}: {hers}");
            println!("  held back: {is_held}");
            if let Some(found) = found {
                assert!(found.by_one >= hers - 0.05, "{poison:?}: {found:?}");
            }
        }
    }
}

#[test]
fn the_poison_works_where_nobody_looks_whose_it_is() {
    let poison = Poison { load: Load::Job, addresses: 1, rate: 20, lasts: COST, seed: 1 };
    let (found, ..) = poison.played();
    let found = found.expect("it correlates, so it is found");
    assert!(!found.provisional && found.of_capacity() > 0.2, "{found:?}");
}

#[test]
fn a_page_that_is_asked_for_with_the_searches_does_not_take_their_blame() {
    for seed in 1..=3 {
        let poison = Poison { load: Load::Searches, addresses: 1, rate: 5, lasts: COST, seed };
        let (found, hers, is_held) = poison.played();
        println!("{poison:?}: {hers:.2} hers; {:.2?}", found.as_ref().map(Elephant::of_capacity));
        assert!(!is_held, "{poison:?}");
        assert!(found.is_none_or(|one| one.of_capacity() < 0.2 || one.by_one > 0.3), "{poison:?}");
    }
}

#[test]
fn a_page_that_is_over_in_no_time_is_not_held_back_for_what_it_cannot_have_used() {
    let mut was_found = false;
    for seed in 1..=3 {
        for (addresses, rate) in [(1, 1), (1, 2), (3, 20), (8, 20)] {
            let poison = Poison { load: Load::Job, addresses, rate, lasts: COST, seed };
            let (found, hers, is_held) = poison.played();
            println!(
                "{poison:?}: {hers:.2} hers; {:.2?}",
                found.as_ref().map(|one| (one.cost, one.lasts))
            );
            assert!(!is_held, "{poison:?}");
            was_found |= found.is_some_and(|one| !one.provisional && !one.is_plausible());
        }
    }
    assert!(was_found, "the poison works, but for that");
}

/// Checks that a poisoner with one or two addresses never gets the page held back by a rule. With
/// three or more addresses it may succeed, because it looks like many clients.
#[test]
fn with_how_many_addresses_one_looks_like_many() {
    for addresses in [1, 2, 3, 4, 8] {
        let held: Vec<bool> = (1..=3)
            .map(|seed| {
                Poison { load: Load::Job, addresses, rate: 20, lasts: SLOW, seed }.played().2
            })
            .collect();
        let count = held.iter().filter(|is_held| **is_held).count();
        println!("{addresses} addresses: held back in {count} of {}", held.len());
        assert!(addresses > 2 || count == 0, "{addresses}");
    }
}
