//! Tests gateways that share slots over real NATS servers, which `make test-fleet` starts. Without the
//! variable `BYWASH_NATS` the tests report `NOT TESTED` and pass.

use std::time::{Duration, Instant};

use crate::fake::{Fake, fleet, keys, servers};
use async_nats::ConnectOptions;
use bywash_fleet_nats::Unread;
use bywash_token::{FleetKeys, Secret, Secrets};

/// The slots of all gateways together.
const LIMIT: u32 = 48;

/// Waits until `is_so` holds. Checks meanwhile that the gateways have no more slots than the limit.
fn until(gateways: &[Fake], what: &str, is_so: impl Fn(&[Fake]) -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is_so(gateways) {
        within_limit(gateways);
        let slots: Vec<u32> = gateways.iter().map(Fake::slots).collect();
        assert!(Instant::now() < end, "{what}: {slots:?} {:?}", gateways[0].status());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn within_limit(gateways: &[Fake]) {
    let began = Instant::now();
    let slots: u32 = gateways.iter().map(Fake::slots).sum();
    // Slots can move between two readings only if a heartbeat passes.
    assert!(slots <= LIMIT || began.elapsed() > Duration::from_millis(100), "{slots} slots");
}

fn three(subject: &str) -> Option<Vec<Fake>> {
    let servers = servers()?;
    let start = |name| Fake::start(fleet(name, subject, &servers), LIMIT);
    Some(["one", "two", "three"].map(start).into())
}

fn share(gateways: &[Fake]) -> bool {
    gateways.iter().all(|gateway| gateway.slots() == LIMIT / 3)
}

fn all_are_heard(gateways: &[Fake]) -> bool {
    gateways.iter().all(|gateway| {
        let known = gateway.status().gateways;
        known.len() == 3 && known.iter().all(|other| other.is_current)
    })
}

#[test]
fn slots_go_to_the_gateway_with_work_and_come_back() {
    let Some(gateways) = three("lent") else { return };
    until(&gateways, "each has its share", share);
    gateways[1].wait_in_line(1_000);
    until(&gateways, "the second borrows", |all| all[1].slots() >= LIMIT - 4);
    assert!(gateways.iter().all(|gateway| gateway.slots() >= 1));
    gateways[1].wait_in_line(0);
    until(&gateways, "the slots come back", share);
}

#[test]
fn a_gateway_that_ends_gives_back_what_it_borrowed() {
    let Some(mut gateways) = three("ended") else { return };
    until(&gateways, "each has its share", share);
    gateways[2].wait_in_line(1_000);
    until(&gateways, "the third borrows", |all| all[2].slots() >= LIMIT - 4);
    gateways.pop();
    // The share of the gateway that has ended stays unused, because it may only be cut off.
    until(&gateways, "the others have their shares", |all| {
        all.iter().all(|gateway| gateway.slots() == LIMIT / 3)
    });
}

#[test]
fn each_gateway_shows_the_state_of_all() {
    let Some(gateways) = three("shown") else { return };
    until(&gateways, "all are heard", all_are_heard);
    let status = gateways[0].status();
    let names: Vec<&str> = status.gateways.iter().map(|gateway| gateway.name.as_str()).collect();
    assert_eq!(names, ["one", "three", "two"]);
    assert!(status.is_connected);
    assert_eq!((status.limit, status.share), (LIMIT, LIMIT / 3));
    until(&gateways, "all follow one", |all| {
        let allocator = all[0].status().allocator;
        allocator.is_some() && all.iter().all(|gateway| gateway.status().allocator == allocator)
    });
}

#[test]
fn a_second_program_with_a_name_gets_one_slot_and_is_told() {
    let Some(gateways) = three("twice") else { return };
    until(&gateways, "each has its share", share);
    let second = Fake::start(fleet("one", "twice", &servers().unwrap()), LIMIT);
    let end = Instant::now() + Duration::from_secs(20);
    while !second.status().rejected.contains_key("two_runs") {
        assert!(Instant::now() < end, "{:?}", second.status());
        std::thread::sleep(Duration::from_millis(20));
    }
    // The second program has one slot besides the share that it has not pledged.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(second.slots(), 1);
    within_limit(&gateways);
}

#[test]
fn a_decision_made_at_any_gateway_is_known_at_all() {
    let Some(gateways) = three("decided") else { return };
    until(&gateways, "all are heard", all_are_heard);
    let began = Instant::now();
    gateways[1].decide("two", "browse");
    until(&gateways, "all know it", |all| all.iter().all(|gateway| gateway.decisions().len() == 1));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    gateways[0].decide("one", "search");
    until(&gateways, "all know both", |all| {
        all.iter().all(|gateway| gateway.decisions().len() == 2)
    });
}

#[test]
fn a_decision_that_no_gateway_sends_any_more_is_learned_by_those_that_lack_it() {
    let Some(gateways) = three("missed") else { return };
    gateways[1].remember("two", "browse");
    gateways[2].remember("three", "search");
    until(&gateways, "all know both", |all| {
        all.iter().all(|gateway| gateway.decisions().len() == 2)
    });
    let stamps = |gateway: &Fake| -> Vec<_> {
        gateway.decisions().into_iter().map(|note| note.fleet).collect()
    };
    assert_eq!(stamps(&gateways[1]), stamps(&gateways[0]));
    assert_eq!(stamps(&gateways[2]), stamps(&gateways[0]));
}

#[test]
fn a_document_is_read_at_any_gateway() {
    let Some(gateways) = three("read") else { return };
    until(&gateways, "all are heard", all_are_heard);
    assert_eq!(gateways[0].read("three", "/long"), Ok("long ".repeat(10_000)));
    assert_eq!(gateways[0].read("four", "/long"), Err(Unread::Unknown));
    assert_eq!(gateways[0].read("two", "/none"), Err(Unread::TooLong));
}

#[test]
fn each_gateway_learns_what_all_others_have_observed() {
    let Some(gateways) = three("learn") else { return };
    let names = ["one", "two", "three"];
    until(&gateways, "each has learned from the others", |gateways| {
        gateways.iter().zip(names).all(|(gateway, own)| {
            let learned = gateway.learned();
            assert!(learned.iter().all(|one| !one.starts_with(&format!("{own}:"))), "{learned:?}");
            let others = names.into_iter().filter(|name| *name != own);
            others
                .map(|name| format!("{name}: observed by {name}"))
                .all(|one| learned.contains(&one))
        })
    });
}

#[test]
fn differences_between_gateways_are_shown_and_stop_nothing() {
    let Some(servers) = servers() else { return };
    let gateways = [
        Fake::start(fleet("one", "differs", &servers), LIMIT),
        Fake::start_with(fleet("two", "differs", &servers), LIMIT, "other", 60_000),
        Fake::start(fleet("three", "differs", &servers), LIMIT / 3),
    ];
    until(&gateways, "each difference is shown", |all| all[0].status().warnings.len() == 3);
    let mut warnings = gateways[0].status().warnings;
    warnings.sort();
    assert_eq!(
        warnings,
        [
            "the clock of two is more than 5 s ahead of the clock here, so its decisions begin and \
             end at other times",
            "three has the limit 16, not 48",
            "two has another configuration of its policies or classes",
        ]
    );
    until(&gateways, "each has slots", |all| all[..2].iter().all(|one| one.slots() == LIMIT / 3));
}

#[test]
fn a_gateway_without_servers_has_one_slot_and_then_its_share() {
    let nowhere = ["nats://127.0.0.1:9".to_owned()];
    let gateway = Fake::start(fleet("one", "nowhere", &nowhere), LIMIT);
    assert!(gateway.slots() <= 1);
    let gateways = [gateway];
    until(&gateways, "its share", |all| all[0].slots() == LIMIT / 3);
    let status = gateways[0].status();
    assert!(!status.is_connected && status.problem.is_some(), "{status:?}");
}

#[test]
fn messages_that_no_gateway_sent_are_counted_and_change_nothing() {
    let Some(gateways) = three("forged") else { return };
    until(&gateways, "each has its share", share);
    let forged = |keys: &FleetKeys, subject: &str, text: &str| keys.sign(subject, text.as_bytes());
    let others = FleetKeys::new(&Secrets::fresh(Secret::from_bytes([9; 32])));
    let all = "forged.all";
    let messages: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"no signature".to_vec(),
        vec![b'x'; 1 << 20],
        forged(&others, all, r#"{"version":1,"message":{"refusal":{"member":1,"run":1}}}"#),
        forged(
            &keys(),
            "forged.to.1",
            r#"{"version":1,"message":{"refusal":{"member":1,"run":1}}}"#,
        ),
        forged(&keys(), all, r#"{"version":2,"message":{}}"#),
        forged(&keys(), all, "no JSON"),
        forged(
            &keys(),
            all,
            r#"{"version":1,"message":{"announcement":{"from":{"member":1,"run":1}}}}"#,
        ),
    ];
    let count = messages.len() as u64;
    let url = servers().unwrap().remove(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = ConnectOptions::new().connect(url).await.unwrap();
        for message in messages {
            client.publish(all, message.into()).await.unwrap();
        }
        client.flush().await.unwrap();
    });
    until(&gateways, "they are counted", |all| {
        all.iter().all(|gateway| gateway.status().rejected.values().sum::<u64>() >= count)
    });
    let rejected = gateways[0].status().rejected;
    let of = |reason: &str| rejected.get(reason).copied().unwrap_or(0);
    let found = ["unsigned", "too_long", "other_version", "malformed", "stranger"].map(of);
    assert_eq!(found, [4, 1, 1, 1, 1], "{rejected:?}");
    assert!(share(&gateways));
}
