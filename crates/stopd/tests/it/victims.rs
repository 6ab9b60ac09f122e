//! Tests with real databases: statements that are cancelled, and statements that never are.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use bywash_config::Mode;

use crate::client::Client;
use crate::databases::{Connection, End, long};
use crate::faulty_proxy::{Conduct, FaultyProxy, place};
use crate::messages::in_millis;
use crate::site::{PEACE, Product, Site, peace};

/// Runs a test with each database that is available.
fn with_each(test: impl Fn(Product)) {
    let _peace = peace();
    run_with_each(test);
}

fn run_with_each(test: impl Fn(Product)) {
    for kind in Product::ALL.into_iter().filter(|kind| kind.address().is_some()) {
        test(kind);
    }
}

fn lease(client: &mut Client, request: &str, connection: &Connection) {
    assert_eq!(client.ask(&format!("1 LEASE {request} shop {}", connection.number)), "1 OK");
}

fn release(client: &mut Client, request: &str, connection: &Connection) -> String {
    client.ask(&format!("2 RELEASE {request} shop {}", connection.number))
}

#[test]
fn the_query_of_a_request_that_is_stopped_is_cancelled_and_its_connection_lives_on() {
    with_each(|kind| {
        let site = Site::of(kind, |_| {}).unwrap();
        let (mut app, mut gateway) = (Client::of(&site), Client::of(&site));
        let (works, watch) = (Connection::new(kind), Connection::new(kind));
        lease(&mut app, "r1", &works);
        works.begin_seen(long(kind), &watch);
        assert_eq!(gateway.ask("7 STOP r1 client_left"), "7 OK cancelled=1 spared=0");
        assert_eq!(works.end(), End::Cancelled);
        assert_eq!(release(&mut app, "r1", &works), "2 OK");
        assert_eq!(works.run("SELECT 1"), End::Done);
        site.until("it is written down", |site| site.log().contains(r#""what":"cancelled""#));
        assert!(!site.log().contains("SELECT"), "what a query says is nobody's business");
    });
}

#[test]
fn a_connection_that_was_released_is_not_touched() {
    with_each(|kind| {
        let site = Site::of(kind, |_| {}).unwrap();
        let mut app = Client::of(&site);
        let (works, watch) = (Connection::new(kind), Connection::new(kind));
        lease(&mut app, "r1", &works);
        assert_eq!(release(&mut app, "r1", &works), "2 OK");
        lease(&mut app, "r2", &works);
        let short = long(kind).replace("20", "0.3");
        works.begin_seen(&short, &watch);
        assert_eq!(app.ask("3 STOP r1 client_left"), "3 OK cancelled=0 spared=0");
        assert_eq!(works.end(), End::Done);
    });
}

#[test]
fn a_query_that_begins_after_the_stop_under_the_same_lease_is_cancelled_as_well() {
    with_each(|kind| {
        let site = Site::of(kind, |_| {}).unwrap();
        let mut app = Client::of(&site);
        let works = Connection::new(kind);
        lease(&mut app, "r1", &works);
        assert_eq!(app.ask("2 STOP r1 client_left"), "2 OK cancelled=0 spared=0");
        assert_eq!(works.run(long(kind)), End::Cancelled);
        assert_eq!(works.run(long(kind)), End::Cancelled);
        assert_eq!(release(&mut app, "r1", &works), "2 OK");
    });
}

#[test]
fn a_statement_that_takes_its_time_to_end_is_cancelled_once() {
    let kind = Product::Postgres;
    let _peace = peace();
    let Some(site) = Site::of(kind, |_| {}) else { return };
    let (mut app, mut gateway) = (Client::of(&site), Client::of(&site));
    let (works, watch) = (Connection::new(kind), Connection::new(kind));
    let stubborn = format!("stubborn_{}", works.number);
    let body =
        "BEGIN PERFORM pg_sleep(20); EXCEPTION WHEN query_canceled THEN PERFORM pg_sleep(0.5); END";
    let create = format!("CREATE FUNCTION {stubborn}() RETURNS void LANGUAGE plpgsql AS '{body}'");
    assert_eq!(watch.run(&create), End::Done);
    lease(&mut app, "r1", &works);
    works.begin_seen(&format!("SELECT {stubborn}()"), &watch);
    // Wait until the function sleeps. Before that, it would not catch the cancellation.
    let number = works.number;
    watch.until_one(&format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {number} AND wait_event = 'PgSleep'"
    ));
    assert_eq!(gateway.ask("2 STOP r1 client_left"), "2 OK cancelled=1 spared=0");
    // Both stops cause further searches for the statement, but it is cancelled only once.
    assert_eq!(app.ask("3 STOP r1 client_left"), "3 OK cancelled=0 spared=0");
    assert_eq!(works.end(), End::Done, "a second cancellation would have ended it");
    assert_eq!(site.log().matches("cancelled").count(), 1);
    watch.run(&format!("DROP FUNCTION {stubborn}"));
}

#[test]
fn what_writes_is_spared_unless_the_operator_says_otherwise() {
    with_each(|kind| {
        let (works, watch) = (Connection::new(kind), Connection::new(kind));
        let table = format!("orders_{}", works.number);
        assert_eq!(works.run(&format!("CREATE TABLE {table} (a INT)")), End::Done);
        let sleep = long(kind).replace("20", "0.4");
        let write = match kind {
            Product::Postgres => format!("INSERT INTO {table} SELECT 1 FROM ({sleep}) AS s"),
            Product::MariaDb => format!("INSERT INTO {table} {sleep}"),
        };
        let site = Site::of(kind, |_| {}).unwrap();
        let mut app = Client::of(&site);
        lease(&mut app, "r1", &works);
        works.begin_seen(&write, &watch);
        assert_eq!(app.ask("2 STOP r1 client_left"), "2 OK cancelled=0 spared=1");
        assert_eq!(works.end(), End::Done);
        assert_eq!(release(&mut app, "r1", &works), "2 OK");
        drop(site);
        let site = Site::of(kind, |settings| settings.writes = true).unwrap();
        let mut app = Client::of(&site);
        lease(&mut app, "r1", &works);
        works.begin_seen(&write, &watch);
        assert_eq!(app.ask("2 STOP r1 client_left"), "2 OK cancelled=1 spared=0");
        // MariaDB's interrupted SLEEP returns 1, which the statement inserts before it fails.
        assert_eq!(works.end(), End::Cancelled);
        assert_eq!(watch.count(&format!("SELECT COUNT(*) FROM {table}")), 1);
        works.run(&format!("DROP TABLE {table}"));
    });
}

#[test]
fn a_read_in_a_transaction_that_has_written_is_spared_where_it_would_be_undone() {
    let kind = Product::Postgres;
    let _peace = peace();
    let Some(site) = Site::of(kind, |_| {}) else { return };
    let mut app = Client::of(&site);
    let (works, watch) = (Connection::new(kind), Connection::new(kind));
    works.run("CREATE TEMPORARY TABLE basket (a int); BEGIN; INSERT INTO basket VALUES (1)");
    lease(&mut app, "r1", &works);
    works.begin_seen("SELECT pg_sleep(0.4)", &watch);
    assert_eq!(app.ask("2 STOP r1 client_left"), "2 OK cancelled=0 spared=1");
    assert_eq!(works.end(), End::Done);
    assert_eq!(works.run("COMMIT"), End::Done);
    assert_eq!(works.count("SELECT count(*) FROM basket"), 1);
}

/// Checks a request on which two services work, because one calls the other. The called service
/// ends first.
#[test]
fn the_query_of_another_service_for_the_same_request_goes_on() {
    with_each(|kind| {
        let site = Site::of(kind, |settings| settings.query_tags = true).unwrap();
        let (mut outer, mut inner) = (Client::of(&site), Client::of(&site));
        let (works, watch) = (Connection::new(kind), Connection::new(kind));
        lease(&mut outer, "r1", &works);
        let query = format!("/*bywash-request='r1'*/ {}", long(kind).replace("20", "0.4"));
        works.begin_seen(&query, &watch);
        let stop = "2 STOP r1 client_left scope=own";
        assert_eq!(inner.ask(stop), "2 OK cancelled=0 spared=0");
        assert_eq!(works.end(), End::Done);
        lease(&mut inner, "r1", &watch);
    });
}

#[test]
fn only_queries_of_the_user_that_the_operator_has_named_are_cancelled() {
    with_each(|kind| {
        let site = Site::of(kind, |settings| settings.user = Some("warehouse".into())).unwrap();
        let mut app = Client::of(&site);
        let (works, watch) = (Connection::new(kind), Connection::new(kind));
        lease(&mut app, "r1", &works);
        works.begin_seen(&long(kind).replace("20", "0.3"), &watch);
        assert_eq!(app.ask("2 STOP r1 client_left"), "2 OK cancelled=0 spared=1");
        assert_eq!(works.end(), End::Done);
    });
}

#[test]
fn a_query_that_nobody_leased_is_found_by_the_query_tag_in_front_of_it_if_the_operator_says_so() {
    with_each(|kind| {
        let tagged = |tag: &str| format!("/*{tag}*/ {}", long(kind));
        let trace = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let (works, watch) = (Connection::new(kind), Connection::new(kind));
        let site = Site::of(kind, |settings| settings.query_tags = true).unwrap();
        let mut gateway = Client::of(&site);
        works.begin_seen(&tagged("bywash-request='m1'"), &watch);
        assert_eq!(gateway.ask("1 STOP m1 client_left"), "1 OK cancelled=1 spared=0");
        assert_eq!(works.end(), End::Cancelled);
        works.begin_seen(&tagged(&format!("traceparent='{trace}'")), &watch);
        let stop = format!("2 STOP m2 client_left traceparent={trace}");
        assert_eq!(gateway.ask(&stop), "2 OK cancelled=1 spared=0");
        assert_eq!(works.end(), End::Cancelled);
        // A tagged statement that begins a moment after the stop is still found.
        assert_eq!(gateway.ask("3 STOP m3 client_left"), "3 OK cancelled=0 spared=0");
        assert_eq!(works.run(&tagged("bywash-request='m3'")), End::Cancelled);
        drop(site);
        let site = Site::of(kind, |_| {}).unwrap();
        let mut gateway = Client::of(&site);
        works.begin_seen(&tagged("bywash-request='m4'").replace("20", "0.3"), &watch);
        assert_eq!(gateway.ask("1 STOP m4 client_left"), "1 OK cancelled=0 spared=0");
        assert_eq!(works.end(), End::Done);
    });
}

#[test]
fn a_query_tag_that_contradicts_a_lease_saves_the_query() {
    with_each(|kind| {
        let site = Site::of(kind, |settings| settings.query_tags = true).unwrap();
        let mut app = Client::of(&site);
        let (works, watch) = (Connection::new(kind), Connection::new(kind));
        lease(&mut app, "c1", &works);
        let query = format!("/*bywash-request='c2'*/ {}", long(kind).replace("20", "0.4"));
        works.begin_seen(&query, &watch);
        assert_eq!(app.ask("2 STOP c2 client_left"), "2 OK cancelled=0 spared=1");
        assert_eq!(app.ask("3 STOP c1 client_left"), "3 OK cancelled=0 spared=1");
        assert_eq!(works.end(), End::Done);
    });
}

#[test]
fn who_only_observes_cancels_nothing_and_counts_what_would_have_been() {
    with_each(|kind| {
        let site = Site::in_mode(kind, Mode::Observe, |_| {}).unwrap();
        let mut app = Client::of(&site);
        let (works, watch) = (Connection::new(kind), Connection::new(kind));
        lease(&mut app, "r1", &works);
        works.begin_seen(&long(kind).replace("20", "0.3"), &watch);
        assert_eq!(app.ask("2 STOP r1 client_left"), "2 OK cancelled=1 spared=0");
        assert_eq!(works.end(), End::Done);
        site.until("it is written down", |site| site.log().contains(r#""what":"would_cancel""#));
        // In observe mode, the stop does not make the daemon refuse a lease either.
        lease(&mut app, "r1", &works);
        assert_eq!(app.ask("4 LEASE r1 self 7"), "4 OK");
        assert_eq!(app.ask("5 STOP r1 deadline"), "5 OK cancelled=1 spared=0");
        assert_eq!(app.ask("6 RELEASE r1 self 7"), "6 OK");
        assert_eq!(site.number(r#"bywash_stopd_would_cancel_total{database="shop"}"#), 1.0);
        assert_eq!(site.number(r#"bywash_stopd_cancelled_total{database="shop"}"#), 0.0);
        assert!(site.get("/v1/status").contains(r#""mode":"observe""#));
    });
}

#[test]
fn a_database_that_refuses_the_privilege_is_complained_of_and_spares_all() {
    with_each(|kind| {
        let site = Site::of(kind, |settings| settings.server.user = "nobody".into()).unwrap();
        site.until("it complains", |site| {
            site.get("/v1/status").contains("\"complaints\":{\"shop\":")
        });
        let complaint = site.get("/v1/status");
        let wanted = match kind {
            Product::Postgres => "GRANT pg_signal_backend, pg_read_all_stats TO",
            Product::MariaDb => "GRANT PROCESS, CONNECTION ADMIN ON *.* TO nobody",
        };
        assert!(complaint.contains(wanted), "{complaint}");
        let mut app = Client::of(&site);
        let (works, watch) = (Connection::new(kind), Connection::new(kind));
        lease(&mut app, "r1", &works);
        works.begin_seen(&long(kind).replace("20", "0.3"), &watch);
        let answer = app.ask("2 STOP r1 client_left");
        assert!(answer.starts_with("2 OK cancelled=0 "), "{answer}");
        assert_eq!(works.end(), End::Done);
    });
}

#[test]
fn a_complaint_ends_with_its_cause_also_if_nobody_leaves() {
    with_each(|kind| {
        let site = Site::of(kind, |settings| {
            std::fs::write(settings.password_file.as_ref().unwrap(), "wrong\n").unwrap();
        });
        let site = site.unwrap();
        let connected = r#"bywash_stopd_connected{database="shop"}"#;
        site.until("it complains", |site| site.get("/v1/status").contains(r#""shop":"#));
        assert_eq!(site.number(connected), 0.0);
        std::fs::write(site.folder().join("password"), "lab\n").unwrap();
        site.until("it is well", |site| site.number(connected) == 1.0);
        assert!(site.get("/v1/status").contains(r#""complaints":{}"#));
        site.until("it is written down", |site| site.log().contains(r#""what":"well""#));
    });
}

#[test]
fn a_database_that_went_down_is_used_again_when_it_is_back() {
    let _alone = PEACE.write().unwrap_or_else(PoisonError::into_inner);
    run_with_each(|kind| {
        let site = Site::of(kind, |_| {}).unwrap();
        let mut app = Client::of(&site);
        let connected = r#"bywash_stopd_connected{database="shop"}"#;
        site.until("it is connected", |site| site.number(connected) == 1.0);
        kind.restart();
        // The first stop after the restart may find the old connection broken. Its answer is then
        // that nothing was done. MariaDB reports its uptime in whole seconds, so leases of its
        // first second are dropped. Later stops work again.
        let (works, watch) = (Connection::new(kind), Connection::new(kind));
        for request in 1.. {
            lease(&mut app, &format!("r{request}"), &works);
            works.begin_seen(&long(kind).replace("20", "1.5"), &watch);
            let answer = app.ask(&format!("2 STOP r{request} client_left"));
            let end = works.end();
            let released = release(&mut app, &format!("r{request}"), &works);
            assert!(released == "2 OK" || released.starts_with("2 ERR not_leased"), "{released}");
            if answer == "2 OK cancelled=1 spared=0" {
                assert_eq!(end, End::Cancelled);
                break;
            }
            assert!(request < 5, "{answer}");
        }
        assert_eq!(site.number(connected), 1.0);
    });
}

#[test]
fn a_lease_that_is_older_than_its_database_covers_nobody_who_has_its_number_now() {
    let _alone = PEACE.write().unwrap_or_else(PoisonError::into_inner);
    // MariaDB numbers its connections from one again after a restart. PostgreSQL uses process IDs.
    let kind = Product::MariaDb;
    let Some(site) = Site::of(kind, |_| {}) else { return };
    let mut app = Client::of(&site);
    let connected = r#"bywash_stopd_connected{database="shop"}"#;
    site.until("it is connected", |site| site.number(connected) == 1.0);
    // At least as many connections as are opened after the restart before the innocent one, so that
    // one of them has had its number.
    let old: Vec<Connection> = (0..12).map(|_| Connection::new(kind)).collect();
    for connection in &old {
        let number = connection.number;
        assert_eq!(app.ask(&format!("1 LEASE old{number} shop {number}")), "1 OK");
    }
    kind.restart();
    let new: Vec<Connection> = (0..12).map(|_| Connection::new(kind)).collect();
    let same = |one: &&Connection| old.iter().any(|old| old.number == one.number);
    let innocent = new.iter().find(same).expect("numbers begin again");
    let watch = new.iter().find(|one| one.number != innocent.number).expect("there are twelve");
    innocent.begin_seen(&long(kind).replace("20", "3"), watch);
    app.say(&format!("2 STOP old{} client_left", innocent.number));
    app.hear();
    assert_eq!(innocent.end(), End::Done);
    assert_eq!(site.number("bywash_stopd_leases"), 0.0);
}

#[test]
fn a_database_that_is_not_there_keeps_nobody_waiting() {
    for kind in Product::ALL {
        if kind.address().is_none() {
            continue;
        }
        let site = Site::of(kind, |settings| {
            settings.server.address =
                bywash_config::DatabaseAddress::Tcp { host: "127.0.0.1".into(), port: 1 };
        });
        let site = site.unwrap();
        let mut app = Client::of(&site);
        assert_eq!(app.ask("1 LEASE r1 shop 4711"), "1 OK");
        assert_eq!(app.ask("2 STOP r1 client_left"), "2 OK cancelled=0 spared=1");
        assert_eq!(app.ask("3 RELEASE r1 shop 4711"), "3 OK");
        assert!(site.get("/v1/status").contains("refused"), "{}", site.get("/v1/status"));
    }
}

/// Checks a cancellation whose answer is lost. The cancellation is the second message, after the
/// search.
#[test]
fn a_cancellation_whose_answer_is_lost_keeps_the_connection_from_everybody() {
    with_each(|kind| {
        let proxy = FaultyProxy::before(kind.address().unwrap(), Conduct::LosesAnswer);
        let site =
            Site::of(kind, |settings| settings.server.address = place(proxy.address)).unwrap();
        let (mut app, mut other) = (Client::of(&site), Client::of(&site));
        let (works, watch) = (Connection::new(kind), Connection::new(kind));
        let connected = r#"bywash_stopd_connected{database="shop"}"#;
        site.until("it is connected", |site| site.number(connected) == 1.0);
        lease(&mut app, "r1", &works);
        works.begin_seen(long(kind), &watch);
        proxy.lose_answer(2);
        assert_eq!(app.ask("2 STOP r1 client_left"), "2 OK cancelled=0 spared=1");
        assert_eq!(works.end(), End::Cancelled);
        let kept = release(&mut app, "r1", &works);
        assert!(kept.starts_with("2 ERR taken a cancellation may"), "{kept}");
        let taken = other.ask(&format!("5 LEASE r3 shop {}", works.number));
        assert!(taken.starts_with("5 ERR taken"), "{taken}");
        // After a pause, the daemon queries the database for other connections again.
        std::thread::sleep(std::time::Duration::from_millis(600));
        lease(&mut other, "r4", &watch);
        watch.begin(long(kind));
        let answer = other.ask("6 STOP r4 client_left");
        assert!(answer.starts_with("6 OK"), "{answer}");
        assert_eq!(watch.end(), End::Cancelled);
        let taken = other.ask(&format!("7 LEASE r3 shop {}", works.number));
        assert!(taken.starts_with("7 ERR taken"), "{taken}");
    });
}

/// Checks a slow cancellation: MariaDB's `KILL` can take two seconds.
#[test]
fn a_release_does_not_wait_for_a_cancellation_that_takes_long_and_its_connection_is_free_after_that()
 {
    with_each(|kind| {
        let proxy = FaultyProxy::before(kind.address().unwrap(), Conduct::DelaysAnswer);
        let site =
            Site::of(kind, |settings| settings.server.address = place(proxy.address)).unwrap();
        let (mut app, mut gateway) = (Client::of(&site), Client::of(&site));
        let (works, watch) = (Connection::new(kind), Connection::new(kind));
        let connected = r#"bywash_stopd_connected{database="shop"}"#;
        site.until("it is connected", |site| site.number(connected) == 1.0);
        lease(&mut app, "r1", &works);
        works.begin_seen(long(kind), &watch);
        proxy.lose_answer(2);
        gateway.say("2 STOP r1 client_left");
        assert_eq!(works.end(), End::Cancelled);
        let kept = release(&mut app, "r1", &works);
        assert!(kept.starts_with("2 ERR taken a cancellation may"), "{kept}");
        // When the stop is answered, the cancellation has ended.
        assert_eq!(gateway.hear(), "2 OK cancelled=1 spared=0");
        lease(&mut app, "r2", &works);
    });
}

#[test]
fn a_storm_of_stops_costs_the_database_no_more_than_its_budget() {
    with_each(|kind| {
        let site = Site::of(kind, |settings| {
            settings.query_tags = true;
            settings.statements_per_second = 20;
        });
        let site = site.unwrap();
        let mut gateway = Client::of(&site);
        let began = std::time::Instant::now();
        let late = in_millis(1000);
        let lines: Vec<String> =
            (1..=5000).map(|n| format!("{n} STOP s{n} client_left not-after={late}\n")).collect();
        let mut writer = gateway.stream().try_clone().unwrap();
        let writing = std::thread::spawn(move || {
            std::io::Write::write_all(&mut writer, lines.concat().as_bytes()).unwrap();
        });
        let mut answered = BTreeMap::new();
        for _ in 0..5000 {
            let line = gateway.hear();
            let (number, _) = line.split_once(" OK ").unwrap();
            *answered.entry(number.to_owned()).or_insert(0) += 1;
        }
        writing.join().unwrap();
        assert_eq!(answered.len(), 5000);
        let asked = site.number(r#"bywash_stopd_statements_total{database="shop"}"#);
        let most = 3.0 + began.elapsed().as_secs_f64() * 20.0;
        assert!((1.0..=most).contains(&asked), "{asked} of at most {most}");
    });
}

/// Checks a pooled connection that two requests use in turn, while stops for one of them arrive at
/// any time. A statement of the other request must never be cancelled. The bench `orphans` runs ten
/// thousand rounds of this.
#[test]
fn of_two_requests_that_share_a_connection_only_the_stopped_one_is_hit() {
    with_each(|kind| {
        let site = Site::of(kind, |_| {}).unwrap();
        let (mut app, mut gateway) = (Client::of(&site), Client::of(&site));
        let mut works = Connection::new(kind);
        let query = long(kind).replace("20", "0.003");
        let (mut hit, mut closed) = (0, 0);
        for round in 0..150 {
            let (victim, innocent) = (format!("a{round}"), format!("b{round}"));
            lease(&mut app, &victim, &works);
            works.begin(&query);
            // Each round stops at a different point of the query, or after its end.
            std::thread::sleep(std::time::Duration::from_micros(round * 40));
            gateway.say(&format!("1 STOP {victim} client_left"));
            hit += u32::from(works.end() == End::Cancelled);
            let released = release(&mut app, &victim, &works);
            if released != "2 OK" {
                // On a busy machine, the database was slow to answer the cancellation.
                assert!(released.starts_with("2 ERR taken a cancellation may"), "{released}");
                (works, closed) = (Connection::new(kind), closed + 1);
            }
            lease(&mut app, &innocent, &works);
            assert_eq!(works.run(&query), End::Done, "round {round}");
            assert_eq!(release(&mut app, &innocent, &works), "2 OK");
            gateway.hear();
        }
        assert!(hit > 10, "only {hit} of 150 were hit at all");
        assert!(closed < 75, "{closed} of 150 connections had to be closed");
    });
}
