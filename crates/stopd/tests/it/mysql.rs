//! Tests with MySQL, which does not number statements. The cancelled statement may differ from the
//! one that was found. MariaDB, renamed by a proxy, takes the role of MySQL.

use bywash_config::Database;

use crate::client::Client;
use crate::databases::{Connection, End, long};
use crate::faulty_proxy::{Conduct, FaultyProxy, place};
use crate::site::{Product, Site, peace};

const KIND: Product = Product::MariaDb;

/// Sets up a site, a client and two connections to the database. Returns `None` if the database is
/// unavailable.
fn mysql(change: impl Fn(&mut Database)) -> Option<(Site, Client, Connection, Connection)> {
    let proxy = FaultyProxy::before(KIND.address()?, Conduct::SaysMySql);
    let site = Site::of(KIND, |settings| {
        settings.server.address = place(proxy.address);
        change(settings);
    })?;
    let app = Client::of(&site);
    Some((site, app, Connection::new(KIND), Connection::new(KIND)))
}

fn lease(app: &mut Client, request: &str, works: &Connection) {
    assert_eq!(app.ask(&format!("1 LEASE {request} shop {}", works.number)), "1 OK");
}

#[test]
fn nothing_is_cancelled_where_writes_are_not() {
    let _peace = peace();
    let Some((_site, mut app, works, watch)) = mysql(|_| {}) else { return };
    lease(&mut app, "r1", &works);
    works.begin_seen(&long(KIND).replace("20", "0.3"), &watch);
    assert_eq!(app.ask("2 STOP r1 client_left"), "2 OK cancelled=0 spared=1");
    assert_eq!(works.end(), End::Done);
}

#[test]
fn what_is_leased_is_cancelled_where_writes_are_and_the_connection_lives_on() {
    let _peace = peace();
    let Some((_site, mut app, works, watch)) = mysql(|settings| settings.writes = true) else {
        return;
    };
    lease(&mut app, "r1", &works);
    works.begin_seen(long(KIND), &watch);
    assert_eq!(app.ask("2 STOP r1 client_left"), "2 OK cancelled=1 spared=0");
    assert_eq!(works.end(), End::Cancelled);
    assert_eq!(app.ask(&format!("3 RELEASE r1 shop {}", works.number)), "3 OK");
    assert_eq!(works.run("SELECT 1"), End::Done);
}

#[test]
fn what_nobody_leased_is_spared_all_the_same() {
    let _peace = peace();
    let set = |settings: &mut Database| (settings.writes, settings.query_tags) = (true, true);
    let Some((_site, mut app, works, watch)) = mysql(set) else { return };
    let query = format!("/*bywash-request='r1'*/ {}", long(KIND).replace("20", "0.3"));
    works.begin_seen(&query, &watch);
    assert_eq!(app.ask("2 STOP r1 client_left"), "2 OK cancelled=0 spared=1");
    assert_eq!(works.end(), End::Done);
}

#[test]
fn one_that_was_released_is_not_touched() {
    let _peace = peace();
    let Some((_site, mut app, works, watch)) = mysql(|settings| settings.writes = true) else {
        return;
    };
    lease(&mut app, "r1", &works);
    assert_eq!(app.ask(&format!("2 RELEASE r1 shop {}", works.number)), "2 OK");
    lease(&mut app, "r2", &works);
    works.begin_seen(&long(KIND).replace("20", "0.3"), &watch);
    assert_eq!(app.ask("3 STOP r1 client_left"), "3 OK cancelled=0 spared=0");
    assert_eq!(works.end(), End::Done);
}
