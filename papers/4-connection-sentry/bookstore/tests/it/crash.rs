//! Tests of databases that become unavailable and return.

use std::time::Duration;

use bywash_bookstore::{Bookstore, BookstoreError, Options, Service};

use crate::databases::{Database, each_server_alone};
use crate::forwarder::Forwarder;
use crate::site::{Site, named, options, wait_for};

#[test]
fn a_crash_of_the_database_loses_only_what_ran() {
    each_server_alone(|database| {
        let site = Site::open(database);
        let mut client = site.client();
        client.post("/cart", "id=7");
        assert_eq!(client.post("/buy", "").status, 200);
        client.post("/cart", "id=8");

        let mut direct = database.connect_directly();
        direct.hold();
        let request = format!("crash-{}", site.bookstore.address().port());
        let pending = site.client().send("GET", "/search?q=harbour", &named(&request), "");
        wait_for(|| direct.running(&request).pop().ok_or(format!("{database:?}")));
        database.crash();
        // The status is 200 if the server was available again in time for the second attempt.
        assert!([200, 503].contains(&pending.reply().status), "{database:?}");

        for _ in 0..4 {
            assert_eq!(site.client().get("/search?q=harbour").status, 200, "{database:?}");
        }
        assert_eq!(client.post("/buy", "").status, 200, "{database:?}");
        let sid = client.sid.clone().unwrap();
        let select = format!("select count(*) from orders where sid = '{sid}'");
        assert_eq!(database.connect_directly().query(&select), [2], "{database:?}");
        let stats = site.wait_until_settled();
        assert!(stats.database.reachable, "{stats:#?}");
        assert!(stats.services.values().map(|one| one.failed).sum::<u64>() <= 1, "{stats:#?}");
    });
}

#[test]
fn a_database_that_is_away_is_503_until_it_is_back() {
    each_server_alone(|database| {
        let forwarder = Forwarder::new(database.address());
        let site = Site::open(&database.at(&forwarder.address));
        let mut client = site.client();
        assert_eq!(client.post("/cart", "id=7").status, 200);
        forwarder.cut();
        for _ in 0..4 {
            let reply = site.client().get("/search?q=harbour");
            assert_eq!(reply.status, 503, "{database:?}");
            assert!(reply.body.contains("the database is not available"), "{}", reply.body);
        }
        assert_eq!(client.post("/buy", "").status, 503, "{database:?}");
        // A request that does not need the database is still served.
        assert_eq!(site.client().get("/file/1").status, 200);
        assert_eq!(site.client().get("/-/health").status, 200);
        let stats = site.wait_until_settled();
        assert!(!stats.database.reachable && stats.database.lost == 5, "{stats:#?}");
        assert_eq!(stats.service(Service::Search).failed, 4);
        forwarder.open();
        assert_eq!(client.post("/buy", "").status, 200, "{database:?}");
        assert!(site.wait_until_settled().database.reachable);
    });
}

#[test]
fn a_server_that_says_nothing_is_taken_for_lost() {
    each_server_alone(|database| {
        let forwarder = Forwarder::new(database.address());
        let silence = Duration::from_secs(3);
        let site = Site::with(Options { silence, ..options(&database.at(&forwarder.address)) });
        forwarder.block();
        assert_eq!(site.client().get("/").status, 503, "{database:?}");
        forwarder.open();
        assert_eq!(site.client().get("/").status, 200, "{database:?}");

        // A statement that was begun and got no answer is not retried.
        let mut direct = database.connect_directly();
        direct.hold();
        let request = format!("silent-{}", site.bookstore.address().port());
        let reply = site.client().exchange("GET", "/search?q=harbour", &named(&request), "");
        assert_eq!(reply.status, 503, "{database:?}");
        assert_eq!(direct.running(&request).len(), 1, "{database:?}");
        direct.release();
        assert_eq!(site.client().get("/").status, 200, "{database:?}");
    });
}

#[test]
fn a_store_does_not_start_without_its_database_and_says_why_without_the_password() {
    each_server_alone(|database| {
        let url = database.url().with_password("not-this-one").unwrap();
        let Err(error) = Bookstore::start(Options { database: url, ..options(database) }) else {
            panic!("{database:?}");
        };
        let words = error.to_string();
        assert!(matches!(error, BookstoreError::Schema(_)), "{words}");
        let why = match database {
            Database::Postgres(_) => "password authentication failed",
            _ => "Access denied",
        };
        assert!(words.contains(why) && !words.contains("not-this-one"), "{words}");
    });
}
