//! Tests clients of every kind at once. Afterwards no request or connection is left, and the
//! counters agree.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::setup::{Running, Setup, get, post};
use crate::upstream::{Upstream, ok};

/// The minimum duration of the test. It continues until the clients have sent more than `SENT`
/// requests.
const LASTS: Duration = Duration::from_secs(1);
const SENT: u64 = 200;
/// The maximum duration of the test. It is longer than `SENT` requests take on a busy machine.
const LONGEST: Duration = Duration::from_secs(60);
const CROWD: u64 = 24;

/// A generator of pseudo-random numbers, with the same numbers for the same seed.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Returns the delay in milliseconds and the response for a target. Some responses are errors,
/// broken off, chunked or malformed.
fn moody(target: &str) -> (u64, Vec<u8>) {
    let number: u64 = target.rsplit('/').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let answer = match number % 11 {
        0 => b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nbroken off".to_vec(),
        1 => b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n".to_vec(),
        2 => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_vec(),
        3 => b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_vec(),
        4 => b"nonsense\r\n\r\n".to_vec(),
        5 => Vec::new(),
        6 => ok(&"x".repeat(100_000)),
        _ => ok("fine"),
    };
    (number % 4, answer)
}

fn upstream() -> Upstream {
    Upstream::script(|mut wire| {
        while let Ok(request) = wire.request() {
            let (millis, answer) = moody(request.target());
            std::thread::sleep(Duration::from_millis(millis));
            let ends = answer.is_empty() || answer.ends_with(b"off");
            if wire.try_send(answer).is_err() || ends {
                return;
            }
        }
    })
}

/// The numbers of requests that the clients have sent, that were refused, and whose clients have
/// left.
#[derive(Default)]
struct Books {
    sent: AtomicU64,
    refused: AtomicU64,
    left: AtomicU64,
}

fn count(number: &AtomicU64) {
    number.fetch_add(1, Ordering::SeqCst);
}

fn request(chance: &mut Chance, class: &str) -> (String, bool) {
    let target = format!("/{class}/{}", chance.below(1000));
    match chance.below(4) {
        0 => (post(&target, &"y".repeat(chance.below(3000) as usize)), false),
        1 => (post(&target, &"y".repeat(40_000)), true),
        _ => (get(&target), false),
    }
}

/// Runs a client that waits for each of its responses.
fn stay(gateway: &Running, chance: &mut Chance, books: &Books) {
    let mut client = gateway.client();
    for _ in 0..=chance.below(4) {
        let (request, large) = request(chance, "stay");
        client.send(request);
        count(&books.sent);
        let Ok(answer) = client.answer() else { return };
        if answer.field("retry-after").is_some() {
            count(&books.refused);
            if large {
                // The unread rest of a large body ends the connection.
                return;
            }
        }
    }
}

/// Runs a client that does not wait for its response.
fn leave(gateway: &Running, chance: &mut Chance, books: &Books) {
    let mut client = gateway.client();
    let _ = client.try_send(request(chance, "leave").0);
    count(&books.left);
    for _ in 0..chance.below(3) {
        std::thread::yield_now();
        client.has_nothing_to_read();
    }
    match chance.below(3) {
        0 => client.reset(),
        1 => drop(client.stream.shutdown(std::net::Shutdown::Write)),
        _ => drop(client),
    }
}

#[test]
fn a_crowd_leaves_nothing_behind_and_its_books_are_balanced() {
    let gone_through = run_clients("enforce", "enforce");
    for outcome in ["served", "shed", "upstream_error"] {
        assert!(gone_through[outcome] > 0, "{gone_through:?}");
    }
}

#[test]
fn a_crowd_that_is_partly_only_observed_leaves_nothing_behind_either() {
    let gone_through = run_clients("observe", "enforce");
    assert!(gone_through["served"] > 0, "{gone_through:?}");
}

/// Runs all clients. Returns the outcomes of the requests whose clients stayed.
fn run_clients(pages: &str, orders: &str) -> BTreeMap<String, u64> {
    let upstream = upstream();
    let gateway = Setup::before(&upstream)
        .limit(4)
        .set("listen.workers", "2")
        .set("scheduler.capacity", "6")
        .set("queue.max_wait", "'40ms'")
        .set("class.stay", &format!("{{ match = ['GET /stay/**'], mode = '{pages}' }}"))
        .set(
            "class.order",
            &format!("{{ match = ['POST /stay/**'], tier = 'transaction', mode = '{orders}' }}"),
        )
        .start();
    let books = Books::default();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for seed in 0..CROWD {
            let (gateway, books) = (&gateway, &books);
            scope.spawn(move || {
                let mut chance = Chance(seed);
                let goes_on = || {
                    let are_few = books.sent.load(Ordering::SeqCst) <= SENT;
                    begun.elapsed() < if are_few { LONGEST } else { LASTS }
                };
                while goes_on() {
                    let visit = if chance.below(3) == 0 { leave } else { stay };
                    visit(gateway, &mut chance, books);
                }
            });
        }
    });
    gateway.waits_for("connections", 0);
    gateway.is_idle_again();
    let of = |classes: &[&str]| outcomes(&gateway, classes);
    let (stayed, left) = (of(&["stay", "order"]), of(&["other"]));
    let seen = |count: &AtomicU64| count.load(Ordering::SeqCst);
    let sum = |outcomes: &BTreeMap<String, u64>| outcomes.values().sum::<u64>();
    assert!(seen(&books.sent) > SENT, "hardly anybody came");
    assert_eq!(sum(&stayed), seen(&books.sent), "{stayed:?}");
    assert_eq!(stayed["orphaned"], 0, "{stayed:?}");
    assert_eq!(stayed["shed"] + stayed["expired"], seen(&books.refused), "{stayed:?}");
    // A client that leaves early may have left before its request was read.
    assert!(sum(&left) <= seen(&books.left), "{left:?}");
    stayed
}

fn outcomes(gateway: &Running, classes: &[&str]) -> BTreeMap<String, u64> {
    let status = gateway.status();
    let mut sums = BTreeMap::new();
    let all = status["classes"].as_array().unwrap().iter();
    for class in all.filter(|class| classes.contains(&class["name"].as_str().unwrap())) {
        for (name, count) in class["outcomes"].as_object().unwrap() {
            *sums.entry(name.clone()).or_default() += count.as_u64().unwrap();
        }
    }
    sums
}
