//! Tests of the log: each cause for which nothing cancels queries is logged once.

use std::cell::{Cell, RefCell};
use std::sync::Once;

use bywash_tower::{StopClient, StopClientStats};
use log::{LevelFilter, Log, Metadata, Record};
use tokio::time::timeout;

use crate::stop_client::{FakeDaemon, lease, named};
use crate::{Search, millis, secs};

const FORBIDDEN: &str = "N ERR forbidden add this user to stopd.leases";

thread_local! {
    /// The records of this thread, which runs one test at a time.
    static LOGGED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// Whether the logger panics at a record of this thread.
    static PANICS: Cell<bool> = const { Cell::new(false) };
}

struct Logger;

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        assert!(!PANICS.get(), "the logger panics");
        LOGGED
            .with_borrow_mut(|logged| logged.push(format!("{} {}", record.level(), record.args())));
    }

    fn flush(&self) {}
}

/// Collects what this thread logs from now on.
fn listen() {
    static SET: Once = Once::new();
    SET.call_once(|| log::set_logger(&Logger).unwrap());
    log::set_max_level(LevelFilter::Warn);
    LOGGED.take();
}

/// Leases connections for this number of requests, and releases them.
async fn queries(stop_client: &StopClient, count: usize) {
    let search = Search::new();
    for _ in 0..count {
        let (leased, _end) = lease(stop_client, &named(&search, "r1"), 7).await;
        leased.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn requests_without_a_name_are_logged_once() {
    listen();
    let (search, stop_client) = (Search::new(), StopClient::at("/nowhere/at/all"));
    for _ in 0..2 {
        let (leased, _end) = lease(&stop_client, &search.class.begin(None), 7).await;
        leased.unwrap().release().await.unwrap();
    }
    assert_eq!(stop_client.stats(), StopClientStats { unnamed: 2, ..StopClientStats::default() });
    let logged = LOGGED.take();
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert!(logged[0].starts_with("WARN a query runs for a request without a name"), "{logged:?}");
}

#[tokio::test]
async fn queries_without_a_daemon_are_logged_once() {
    listen();
    let stop_client = StopClient::at("/nowhere/at/all");
    queries(&stop_client, 2).await;
    assert_eq!(stop_client.stats().unreachable, 2);
    let text =
        "WARN no stop daemon answers at /nowhere/at/all: queries run, and nothing cancels them";
    assert_eq!(LOGGED.take(), [text]);
}

#[tokio::test]
async fn a_logger_that_panics_fails_only_the_query_that_is_logged() {
    listen();
    let stop_client = StopClient::at("/nowhere/at/all");
    PANICS.set(true);
    let of_task = stop_client.clone();
    let first = tokio::spawn(async move { queries(&of_task, 1).await });
    assert!(first.await.unwrap_err().is_panic());
    PANICS.set(false);
    queries(&stop_client, 1).await;
    assert_eq!((stop_client.stats().unreachable, LOGGED.take()), (2, vec![]));
}

#[tokio::test]
async fn refused_leases_are_logged_once_in_the_daemons_words() {
    for (answer, text) in [
        (FORBIDDEN, "ERR forbidden add this user to stopd.leases".to_owned()),
        ("N ERR because it is so", "ERR because it is so".to_owned()),
        ("N ERR \u{1b}[2J\u{e9}", "ERR ?[2J?".to_owned()),
        (
            "N ERR full 0123456789012345678901234567890123456789012345678901234567890123456789\
          0123456789012345678901234567890123456789012345678901234567890123456789\
          0123456789012345678901234567890123456789012345678901234567890123456789",
            format!("ERR full {}0", "0123456789".repeat(19)),
        ),
    ] {
        listen();
        let daemon = FakeDaemon::new(move |_| vec![answer]);
        let stop_client = daemon.stop_client();
        queries(&stop_client, 2).await;
        assert_eq!(stop_client.stats().refused, 2);
        let logged = LOGGED.take();
        assert_eq!(logged.len(), 1, "{logged:?}");
        let end = format!(" refused a lease (later ones are only counted): {text}");
        assert!(logged[0].starts_with("WARN the stop daemon at /"), "{logged:?}");
        assert!(logged[0].ends_with(&end), "{logged:?} {end}");
    }
}

#[tokio::test]
async fn refused_stops_are_logged_once_in_the_daemons_words() {
    listen();
    let daemon = FakeDaemon::new(|words| vec![if words[0] == "STOP" { FORBIDDEN } else { "N OK" }]);
    let (search, stop_client) = (Search::new(), daemon.stop_client());
    for _ in 0..2 {
        let token = named(&search, "r1");
        let (leased, _end) = lease(&stop_client, &token, 7).await;
        token.leave();
        drop(leased.unwrap().release().await);
    }
    let both = async {
        while stop_client.stats().refused < 2 {
            tokio::time::sleep(millis(1)).await;
        }
    };
    timeout(secs(20), both).await.expect("the daemon answers both stops");
    let logged = LOGGED.take();
    let end = " refused a stop (later ones are only counted): ERR forbidden add this user to \
               stopd.leases";
    assert!(logged.len() == 1 && logged[0].ends_with(end), "{logged:?}");
}

#[tokio::test]
async fn a_stop_that_comes_too_late_is_not_logged() {
    listen();
    let search = Search::new();
    let token = named(&search, "r1");
    let of_daemon = token.clone();
    let daemon = FakeDaemon::new(move |_| {
        // The request cancels its termination before the daemon answers its lease.
        of_daemon.cancel_termination().unwrap();
        vec!["N STOPPED client_left"]
    });
    let stop_client = daemon.stop_client();
    assert!(lease(&stop_client, &token, 7).await.0.is_ok());
    assert_eq!((stop_client.stats().refused, LOGGED.take()), (1, vec![]));
}
