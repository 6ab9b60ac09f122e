//! Tests of the findings of a watch, from known requests and a known use of resources.

use std::net::Ipv4Addr;

use bywash_control::{
    Act, BYTES, Change, Client, DecisionMeta, Elephant, Entry, FileRule, Resource, RuleLimits,
    RuleStore, SLOTS, Seen, Timestamp, Watch, Watched, Window,
};
use bywash_units::{Time, TimeSpan};

fn at(seconds: f64) -> Time {
    Time::from_nanos((seconds * 1e9) as u64)
}

fn client(number: u64) -> Client {
    Client { key: number, network: Ipv4Addr::from_bits(number as u32).into() }
}

/// Returns an elephant with this pattern that uses the database.
fn entry(pattern: &str) -> Entry {
    let mut store = RuleStore::default();
    let found = serde_json::json!({
        "pattern": pattern, "twins": [], "resource": "db", "capacity": 2.0, "used": 1.0, "cost": 0.3,
        "interval": [0.3, 0.3], "share": 0.7, "rate": 2.0, "provisional": false, "by_one": 0.2,
        "transacts": false, "correlation": null
    });
    let found = serde_json::from_value(found).expect("an elephant");
    store.found(Timestamp::UNIX_EPOCH, vec![found], Act::Propose);
    store.entries()[0].clone()
}

fn processors() -> Watched {
    Watched { name: "db".into(), consists_of: Resource::Processors, capacity: 2.0, idle: 0.0 }
}

/// Returns a pseudo-random number from 0 to below 1, derived from `number`.
fn chance(number: u64) -> f64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64
        / (1_u64 << 53) as f64
}

/// Returns a watch after half an hour of load: up to three searches per second that take 300 ms of
/// the database, and ten items per second that take 1 ms. The searches come from `clients` clients.
fn watched(search: &str, clients: u64) -> Watch {
    let mut watch = Watch::new(Vec::new(), vec![processors()], TimeSpan::from_secs(1800));
    for second in 0..1800_u64 {
        let mut used = 0.0;
        let searches = (chance(second) * 4.0) as u64;
        for n in 0..searches + 10 {
            let from = second as f64 + 0.05 * n as f64;
            let is_search = n < searches;
            let cost = if is_search { 0.3 } else { 0.001 };
            used += cost;
            let target = if is_search {
                format!("{search}{n}")
            } else {
                format!("/item/{}", second * 10 + n)
            };
            watch.request(
                at(from + cost),
                &Seen {
                    method: "GET",
                    target: &target,
                    client: client(if is_search { second % clients } else { 1000 + n }),
                    rule: None,
                    worked: Some((at(from), at(from + cost))),
                    response: Some(TimeSpan::from_secs_f64(cost)),
                    bytes: if is_search { 1_000 } else { 50_000 },
                    transacts: false,
                    is_good: true,
                },
            );
        }
        watch.used(0, at(second as f64), at(second as f64 + 1.0), used);
        watch.advance(at(second as f64 + 1.0));
    }
    watch.advance(at(1840.0));
    watch
}

/// Returns the watches of two gateways with one database, after half an hour of load as in
/// [`watched`]. Each request goes to the gateway that `choose` returns for whether it is a search,
/// and for its number. If `reads`, each gateway reads once a second the requests that the other has
/// served. The second gateway has begun half a second before the first, so its seconds end at other
/// times.
fn two_gateways(choose: impl Fn(bool, u64) -> usize, reads: bool) -> [Watch; 2] {
    let local = |gateway: usize, time: f64| at(time + 0.5 * gateway as f64);
    let mut watches =
        [(); 2].map(|()| Watch::new(Vec::new(), vec![processors()], TimeSpan::from_secs(1800)));
    let (mut read, mut used_before) = ([0; 2], 0.0);
    for half in 0..3600_u64 {
        let (second, begin) = (half / 2, half as f64 / 2.0);
        let end = begin + 0.5;
        let searches = (chance(second) * 4.0) as u64;
        let mut used = 0.0;
        for n in 0..searches + 10 {
            let is_search = n < searches;
            let from = second as f64 + 0.5 * chance(1_000_000 + 100 * second + n);
            let to = from + if is_search { 0.3 } else { 0.001 };
            used += (to.min(end) - from.max(begin)).max(0.0);
            if !(begin..end).contains(&to) {
                continue;
            }
            let gateway = choose(is_search, second + n);
            let page = if is_search { "/search?q=" } else { "/item/" };
            let seen = Seen {
                method: "GET",
                target: &format!("{page}{second}{n}"),
                client: client(second % 500),
                rule: None,
                worked: Some((local(gateway, from), local(gateway, to))),
                response: Some(TimeSpan::from_secs_f64(to - from)),
                bytes: 1_000,
                transacts: false,
                is_good: true,
            };
            watches[gateway].request(local(gateway, to), &seen);
        }
        let reader = 1 - half as usize % 2;
        let now = local(reader, end);
        watches[reader].used(0, local(reader, end - 1.0), now, used_before + used);
        watches[reader].advance(now);
        used_before = used;
        let other = 1 - reader;
        if reads {
            for second in watches[other].seconds(local(other, end), read[reader]) {
                read[reader] = second.number;
                watches[reader].elsewhere(now, &second);
            }
        }
    }
    watches.map(|mut watch| {
        watch.advance(at(1840.0));
        watch
    })
}

#[test]
fn a_cost_is_that_of_one_request_if_gateways_read_each_others_requests() {
    let take_turns = |_, number| usize::from(number % 2 == 1);
    for watch in two_gateways(take_turns, true) {
        let found = watch.elephants(100.0, None);
        let [search] = &found[..] else { panic!("one is: {found:?}") };
        assert_eq!(search.pattern, "/search?q");
        assert!((search.cost - 0.3).abs() < 0.05 && search.share > 0.9, "{search:?}");
    }
    // Otherwise each gateway attributes all of the use to its own requests.
    for watch in two_gateways(take_turns, false) {
        let found = watch.elephants(100.0, None);
        assert!(found[0].cost > 0.4, "{found:?}");
    }
}

#[test]
fn a_gateway_names_an_elephant_that_only_another_gateway_serves() {
    let searches_go_to_the_other = |is_search, _| usize::from(is_search);
    for watch in two_gateways(searches_go_to_the_other, true) {
        let found = watch.elephants(100.0, None);
        let [search] = &found[..] else { panic!("one is: {found:?}") };
        assert_eq!(search.pattern, "/search?q");
        assert!((search.cost - 0.3).abs() < 0.05, "{search:?}");
    }
}

#[test]
fn an_elephant_is_found_by_name_with_its_cost_and_whose_it_is() {
    let watch = watched("/search?q=", 500);
    let found = watch.elephants(100.0, None);
    let [search] = &found[..] else { panic!("one is: {found:?}") };
    assert_eq!((search.pattern.as_str(), search.resource.as_str()), ("/search?q", "db"));
    assert!((search.cost - 0.3).abs() < 0.03 && search.share > 0.9, "{search:?}");
    assert!(!search.provisional && search.by_one < 0.12 && !search.transacts, "{search:?}");
}

#[test]
fn of_a_resource_that_is_not_read_any_more_nothing_is_said() {
    let mut watch = watched("/search?q=", 500);
    let is_found = |watch: &Watch| {
        watch.elephants(100.0, None).iter().any(|elephant| elephant.resource == "db")
    };
    watch.advance(at(1900.0));
    assert!(is_found(&watch));
    watch.advance(at(1930.0));
    assert!(!is_found(&watch));
}

#[test]
fn a_watch_that_begins_late_has_not_seen_what_was_before() {
    let mut watch = Watch::new(Vec::new(), Vec::new(), TimeSpan::from_secs(1800));
    let begins = 36_000.0;
    watch.advance(at(begins));
    for second in 0..100 {
        let from = begins + f64::from(second);
        watch.request(
            at(from + 0.5),
            &Seen {
                method: "GET",
                target: "/search",
                client: client(1),
                rule: None,
                worked: Some((at(from), at(from + 0.5))),
                response: Some(TimeSpan::from_millis(500)),
                bytes: 1,
                transacts: false,
                is_good: true,
            },
        );
    }
    watch.advance(at(begins + 100.0));
    let found = watch.elephants(1.0, None);
    assert!((found[0].used - 0.5).abs() < 0.02, "half of the only slot: {found:?}");
}

#[test]
fn an_elephant_that_is_one_clients_says_so() {
    let found = watched("/search?q=", 1).elephants(100.0, None);
    assert!(found[0].by_one > 0.99, "{found:?}");
    let one = found[0].one_client.as_ref().expect("who makes all of it is named");
    assert!(one.address == "0.0.0.0" && one.at_least > 0.99, "{one:?}");
}

#[test]
fn bytes_and_slots_are_counted_where_there_are_few() {
    let watch = watched("/search?q=", 500);
    // The responses have half a megabyte per second in total, nearly all of it for items.
    let found = watch.elephants(0.5, Some(1e6));
    let of = |resource: &str| {
        let of = found.iter().filter(|elephant| elephant.resource == resource);
        of.map(|elephant| elephant.pattern.as_str()).collect::<Vec<_>>()
    };
    assert_eq!((of("bytes"), of("slots")), (vec!["/item/*"], vec!["/search?q"]));
    let item = found.iter().find(|elephant| elephant.resource == "bytes").expect("it is found");
    assert!((item.cost - 50_000.0).abs() < 1.0 && (item.used - 0.5).abs() < 0.05, "{item:?}");
}

#[test]
fn many_that_hold_slots_no_longer_than_others_are_no_elephant_and_more_than_all_is_all() {
    let mut watch = Watch::new(Vec::new(), Vec::new(), TimeSpan::from_secs(1800));
    watch.advance(at(0.0));
    let mut asked = |target: &str, from: f64, held: f64| {
        let seen = Seen {
            method: "GET",
            target,
            client: client(1),
            rule: None,
            worked: Some((at(from), at(from + held))),
            response: Some(TimeSpan::from_secs_f64(held)),
            bytes: 1,
            transacts: false,
            is_good: true,
        };
        watch.request(at(from + held), &seen);
    };
    // Requests for pictures together hold more than half of the slots. Each lasts half as long as
    // the average request.
    for second in 0..100 {
        let from = f64::from(second);
        (0..24).for_each(|_| asked("/logo.png", from, 0.05));
        (0..2).for_each(|_| asked("/search", from, 0.5));
        asked("/cart", from, 0.1);
    }
    watch.advance(at(100.0));
    // More than two slots are held, although there is only one. Requests for the cart hold a tenth
    // of a slot.
    let found = watch.elephants(1.0, None);
    let named: Vec<&str> = found.iter().map(|elephant| elephant.pattern.as_str()).collect();
    assert_eq!(named, ["/search"], "{found:?}");
    assert!((found[0].used - 2.3).abs() < 0.1, "{found:?}");
}

#[test]
fn a_gauge_tells_ants_from_elephants() {
    let gauge = watched("/search?q=", 500).gauge(&entry("/search?q"), at(1000.0), at(1100.0));
    assert!((gauge.ants.answered - 10.0).abs() < 0.5, "{gauge:?}");
    assert!(
        gauge.elephants.p50.is_some_and(|p50| (p50 - 0.3).abs() < 0.01) && gauge.used > Some(0.1),
        "{gauge:?}"
    );
}

/// Reports `seconds` seconds of requests to the watch, from second `begins` on. Each second has a
/// request for a page with a new number, and one for each page of `names`.
fn told(watch: &mut Watch, begins: f64, seconds: u64, names: &[&str]) {
    for second in 0..seconds {
        let from = begins + second as f64;
        let numbered = format!("/{}", 1000 + second);
        for target in names.iter().copied().chain([numbered.as_str()]) {
            let worked = Some((at(from), at(from + 0.1)));
            let (response, client) = (Some(TimeSpan::from_millis(100)), client(second));
            let (method, bytes, transacts, is_good) = ("GET", 1, false, true);
            let seen = Seen {
                method,
                target,
                client,
                worked,
                rule: None,
                response,
                bytes,
                transacts,
                is_good,
            };
            watch.request(at(from + 0.1), &seen);
        }
        watch.advance(at(from + 1.0));
    }
}

#[test]
fn an_elephants_rule_leaves_alone_what_is_a_route_of_its_own() {
    let empty = || Watch::new(Vec::new(), vec![processors()], TimeSpan::from_secs(1800));
    let mut watch = empty();
    told(&mut watch, 0.0, 100, &["/cart", "/search?q=1", "/cart/old"]);
    let found = watched("/search?q=", 500).elephants(100.0, None).remove(0);
    let (now, mut store) = (Timestamp::UNIX_EPOCH, RuleStore::default());
    store.found(now, vec![Elephant { pattern: "/*".into(), ..found }], Act::Auto);
    let exempt = |store: &RuleStore| store.in_force()[0].exempt.clone();
    assert_eq!(exempt(&store), [""; 0]);
    assert!(
        store.exempt(&watch) && exempt(&store) == ["/cart", "/search?q"],
        "{:?}",
        exempt(&store)
    );
    assert!(!store.exempt(&watch), "nothing has changed");
    // After a restart the watch knows no routes, and learns them again.
    let mut read = RuleStore::read(&store.text()).unwrap();
    let mut after = empty();
    told(&mut after, 0.0, 10, &["/account"]);
    assert!(
        read.exempt(&after) && exempt(&read) == ["/account", "/cart", "/search?q"],
        "{:?}",
        exempt(&read)
    );
    // After 15 minutes the watch is settled.
    told(&mut after, 10.0, 900, &["/account"]);
    assert!(read.exempt(&after) && exempt(&read) == ["/account"], "{:?}", exempt(&read));
    // Until a folder has many pages, each page has a name of its own, which is later withdrawn.
    let elephant = |pattern: &str| Elephant {
        pattern: pattern.into(),
        ..watched("/search?q=", 500).elephants(100.0, None).remove(0)
    };
    let mut slugs = RuleStore::default();
    slugs.found(now, vec![elephant("/product/*")], Act::Auto);
    let mut fresh = empty();
    told(&mut fresh, 0.0, 10, &["/product/lamp", "/product/table"]);
    assert!(!slugs.exempt(&fresh) && exempt(&slugs).is_empty(), "{:?}", exempt(&slugs));
    // A change of the rule by an operator does not change its exemptions.
    let (by, why, lasts) = ("me".into(), "it is slow".into(), TimeSpan::from_secs(3600));
    read.approve(now, 1, Change::default(), DecisionMeta { by, why, lasts }).unwrap();
    assert_eq!(exempt(&read), ["/account"]);
    assert!(read.exported().contains("# in the file, the rule also applies to: \"/account\""));
    // A rule in the configuration file applies to all requests that its pattern matches.
    let limits = RuleLimits {
        bytes: None,
        ..read.entries()[0].found.as_ref().map(RuleLimits::proposed).unwrap()
    };
    let rule = FileRule { pattern: "/*".into(), limits, why: "so".into() };
    read.file_says(now, &[rule]).unwrap();
    assert!(!read.exempt(&after) && exempt(&read).is_empty(), "{:?}", exempt(&read));
}

#[test]
fn what_was_used_is_told_window_by_window_and_by_route() {
    let watch = watched("/search?q=", 1000);
    let routes = [("/search?q", 0.3), ("/item/*", 0.001), ("/nothing", 1.0)];
    let spent = watch.spent("db", &routes, 0.0, None).unwrap();
    assert!(
        (spent.step - 5.0).abs() < 1e-9 && spent.windows.len() >= 359,
        "{}",
        spent.windows.len()
    );
    for window in &spent.windows {
        let [search, item, none] = window.routes[..] else { panic!() };
        assert!((window.used - search.used - item.used).abs() < 0.04, "{window:?}");
        assert!((search.used - 0.3 * search.requests / 10.0).abs() < 1e-9, "{window:?}");
        assert!(none.requests < 1e-9 && (45.0..=55.0).contains(&item.requests), "{window:?}");
    }
    let sum = |of: fn(&Window) -> f64| spent.windows.iter().map(of).sum::<f64>();
    let part = sum(|window| window.routes[0].used) / sum(|window| window.used);
    assert!((part - 0.968).abs() < 0.02, "{part}");
}

#[test]
fn slots_and_bytes_are_counted_window_by_window() {
    let watch = watched("/search?q=", 1000);
    let routes = [("/search?q", 0.3), ("/item/*", 0.001)];
    let slots = watch.spent(SLOTS, &routes, 4.0, None).unwrap();
    let bytes = watch.spent(BYTES, &routes, 4.0, Some(1e6)).unwrap();
    let asked = |window: &&Window| window.until <= at(1800.0);
    assert!(slots.windows.last().is_some_and(|last| last.used < 1e-9), "nobody asked any more");
    let both = slots.windows.iter().filter(asked).zip(bytes.windows.iter().filter(asked));
    for (held, sent) in both.skip(1) {
        let of_routes = |window: &Window| window.routes.iter().map(|route| route.used).sum::<f64>();
        assert!((held.used - of_routes(held)).abs() < 1e-9, "all are of these routes");
        assert!(
            (held.routes[0].used - 0.3 * held.routes[0].requests / 20.0).abs() < 0.03,
            "{held:?}"
        );
        assert!((0.4..0.6).contains(&sent.routes[1].used), "{sent:?}");
    }
    assert!(watch.spent(BYTES, &routes, 4.0, None).is_none(), "as many as go out is not known");
    assert!(watch.spent("disk", &routes, 4.0, None).is_none());
    let (seen, used) = watch.held(4.0);
    assert!(seen >= TimeSpan::from_secs(1800) && (0.08..0.14).contains(&used), "{used}");
}

#[test]
fn every_route_is_told_with_what_it_takes_and_all_others_together() {
    let (routes, others) = watched("/search?q=", 1).routes();
    let [search, item] = &routes[..] else { panic!("{routes:?}") };
    assert_eq!([search.pattern.as_str(), item.pattern.as_str()], ["/search?q", "/item/*"]);
    assert!((search.lasts - 0.3).abs() < 1e-3 && (item.lasts - 0.001).abs() < 1e-4);
    assert!((item.rate - 10.0).abs() < 0.5 && (1.2..1.8).contains(&search.rate), "{routes:?}");
    assert!((search.slots - search.rate * search.lasts).abs() < 1e-9);
    assert!((item.bytes / item.rate - 50_000.0).abs() < 1.0);
    assert!(search.by_one > 0.9 && item.by_one < 0.2, "{routes:?}");
    assert!(others.pattern.is_empty() && others.rate < 0.1, "{others:?}");
}

#[test]
fn a_route_is_told_by_its_name_be_it_much_or_little() {
    let watch = watched("/search?q=", 1);
    let item = watch.named("/item/*", 100.0).expect("it is told apart");
    assert_eq!((item.resource.as_str(), item.consists_of), (SLOTS, Resource::Slots));
    assert!((item.rate - 10.0).abs() < 0.5 && item.share < 0.1, "{item:?}");
    assert!((item.cost - 0.001).abs() < 1e-4 && !item.provisional, "{item:?}");
    assert_eq!(watch.named("/nothing", 100.0), None);
    assert_eq!(watch.named("", 100.0), None);
    assert_eq!(watch.named("/item/*", 0.0), None, "of no slots");
}

#[test]
fn what_these_and_all_others_got_is_told_window_by_window() {
    let watch = watched("/search?q=", 1);
    let answers = watch.answers(&entry("/search?q"), at(1801.0));
    assert_eq!((answers.len(), answers[89].until), (90, at(1800.0)));
    for window in &answers {
        assert!(window.elephants.p50.is_none_or(|p50| (p50 - 0.3).abs() < 1e-6), "{window:?}");
        assert!((window.ants.answered - 10.0).abs() < 1.5, "{window:?}");
    }
    let nobody = watch.answers(&entry("/nothing"), at(1801.0));
    assert!(nobody.iter().all(|window| window.elephants.answered < 1e-9), "all are others");
}
