//! Tests of the shop's capacity: a fixed number of workers, and one bounded first-come-first-served
//! queue.

use std::time::Duration;

use bywash_shop::{Options, Stage};

use crate::site::{FOREVER, Site};

#[test]
fn with_one_worker_the_second_request_waits_for_the_first() {
    let site = Site::narrow(true);
    let first = site.client().ask("GET", "/", FOREVER);
    site.wait_until(|stats| stats.running == 1);
    let second = site.client().ask("GET", "/browse", Duration::ZERO);
    let stats = site.wait_until(|stats| stats.queue_length == 1);
    assert_eq!((stats.running, stats.stage(Stage::Browse).answered), (1, 0));
    first.leave();
    assert_eq!(second.reply().status, 200);
}

#[test]
fn waiting_requests_are_served_in_the_order_they_came() {
    let site = Site::narrow(true);
    let holder = site.client().ask("GET", "/", FOREVER);
    site.wait_until(|stats| stats.running == 1);
    let older = site.client().ask("GET", "/browse", Duration::ZERO);
    site.wait_until(|stats| stats.queue_length == 1);
    let newer = site.client().ask("GET", "/search?q=rug", Duration::ZERO);
    site.wait_until(|stats| stats.queue_length == 2);
    holder.leave();
    assert_eq!(newer.reply().status, 200);
    assert_eq!(site.shop.stats().stage(Stage::Browse).answered, 1);
    assert_eq!(older.reply().status, 200);
}

#[test]
fn as_many_requests_run_at_a_time_as_there_are_workers() {
    let site = Site::with(|options| Options { workers: 3, notice_close: true, ..options });
    let sent: Vec<_> = (0..5).map(|_| site.client().ask("GET", "/", FOREVER)).collect();
    site.wait_until(|stats| stats.running == 3 && stats.queue_length == 2);
    drop(sent);
    site.wait_until_settled();
}

#[test]
fn a_full_queue_is_answered_503_at_once() {
    let site =
        Site::with(|options| Options { workers: 1, backlog: 1, notice_close: true, ..options });
    let running = site.client().ask("GET", "/", FOREVER);
    site.wait_until(|stats| stats.running == 1);
    let waiting = site.client().ask("GET", "/", Duration::ZERO);
    site.wait_until(|stats| stats.queue_length == 1);

    assert_eq!(site.client().get("/browse").status, 503);
    assert_eq!(site.shop.stats().stage(Stage::Browse).refused, 1);
    // Health and statistics are served without the queue.
    assert_eq!(site.client().get("/-/health").status, 200);
    assert_eq!(site.client().get("/-/stats").status, 200);

    running.leave();
    assert_eq!(waiting.reply().status, 200);
}

#[test]
fn the_demand_of_a_request_occupies_its_worker_for_at_least_that_long() {
    let site = Site::narrow(false);
    let demand = Duration::from_millis(30);
    assert_eq!(site.client().ask("GET", "/", demand).reply().status, 200);
    let stats = site.wait_until_settled();
    assert!(stats.busy_us_useful >= 30_000, "{stats:#?}");
}

#[test]
fn a_request_without_demand_gets_that_of_its_stage() {
    let mut demand = [FOREVER; 8];
    demand[Stage::Browse.index()] = Duration::ZERO;
    let site = Site::with(|options| Options { demand, notice_close: true, ..options });
    let long = site.client().send("GET", "/", "", "");
    assert_eq!(site.client().get("/browse").status, 200);
    assert_eq!(site.wait_until(|stats| stats.running == 1).stage(Stage::Main).answered, 0);
    long.leave();
}

#[test]
fn a_shop_that_closes_refuses_who_waits_and_breaks_off_what_runs() {
    let site = Site::narrow(false);
    let running = site.client().ask("GET", "/", FOREVER);
    site.wait_until(|stats| stats.running == 1);
    let waiting = site.client().ask("GET", "/", FOREVER);
    site.wait_until(|stats| stats.queue_length == 1);
    site.shop.stop();
    assert_eq!(running.reply().status, 503);
    assert_eq!(waiting.reply().status, 503);
}

#[test]
fn a_shop_that_closes_lets_short_work_end() {
    let site = Site::narrow(false);
    let running = site.client().ask("GET", "/", Duration::from_millis(100));
    site.wait_until(|stats| stats.running == 1);
    site.shop.stop();
    assert_eq!(running.reply().status, 200);
}
