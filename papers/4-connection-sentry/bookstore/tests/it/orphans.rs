//! Tests of clients that leave before they get their answer: their requests are served to the end.

use bywash_bookstore::{Options, Service};
use tempfile::TempDir;

use crate::databases::{each_server_alone, sqlite};
use crate::site::{Site, options};

#[test]
fn the_search_of_who_has_left_is_computed_to_its_end() {
    each_server_alone(|database| {
        let site = Site::narrow(database);
        let mut direct = database.connect_directly();
        direct.hold();
        let client = site.client().send("GET", "/search?q=harbour", "", "");
        site.wait_until(|stats| stats.running == 1);
        client.leave();
        site.wait_until(|stats| stats.departed == 1);
        direct.release();
        let stats = site.wait_until_settled();
        let search = stats.service(Service::Search);
        assert_eq!((search.orphaned, search.served), (1, 0), "{stats:#?}");
        assert!(stats.busy_us_in_vain > 0 && stats.busy_us_in_vain < stats.busy_us_departed);
        assert_eq!(stats.busy_us_departed, stats.busy_us);
    });
}

#[test]
fn even_a_request_left_in_the_queue_is_worked_on() {
    let folder = TempDir::new().unwrap();
    let database = sqlite(folder.path());
    let site = Site::with(Options { backlog: 1, ..options_of_one(&database) });
    let mut direct = database.connect_directly();
    // Hold the write lock of the database, so that a request that writes must wait.
    direct.execute("BEGIN IMMEDIATE");
    let writing = site.client().send("POST", "/cart", "", "id=1");
    site.wait_until(|stats| stats.running == 1);
    let queued = site.client().send("GET", "/search?q=harbour", "", "");
    site.wait_until(|stats| stats.queue_length == 1);

    // The queue is full. Only requests that do not use the queue are answered.
    assert_eq!(site.client().get("/file/1").status, 503);
    assert_eq!(site.client().get("/-/health").status, 200);
    assert_eq!(site.client().get("/-/stats").status, 200);

    queued.leave();
    site.wait_until(|stats| stats.departed == 1);
    direct.execute("COMMIT");
    assert_eq!(writing.reply().status, 200);
    let stats = site.wait_until_settled();
    assert_eq!(stats.service(Service::Search).orphaned, 1);
    assert_eq!(stats.service(Service::File).refused, 1);
}

fn options_of_one(database: &crate::databases::Database) -> Options {
    Options { workers: 1, ..options(database) }
}
