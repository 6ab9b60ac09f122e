//! Tests of clients that leave before their request is answered.

use std::time::Duration;

use bywash_shop::{Burn, Options, Stage};

use crate::site::{FOREVER, Site, walk};

/// A demand so long that a client leaves before its request is answered, even on a busy machine.
const WHILE: Duration = Duration::from_millis(700);

#[test]
fn by_default_the_work_of_who_has_left_is_done_in_full() {
    let site = Site::narrow(false);
    let client = site.client().ask("GET", "/", WHILE);
    site.wait_until(|stats| stats.running == 1);
    client.leave();
    site.wait_until(|stats| stats.departed == 1);
    let stats = site.wait_until_settled();
    assert_eq!((stats.stage(Stage::Main).wasted, stats.stage(Stage::Main).answered), (1, 0));
    assert!(stats.busy_us_wasted >= 700_000 && stats.busy_us_useful == 0, "{stats:#?}");
}

#[test]
fn by_default_even_a_request_left_in_the_queue_is_worked_on() {
    let site = Site::narrow(false);
    let running = site.client().ask("GET", "/", WHILE);
    site.wait_until(|stats| stats.running == 1);
    let waiting = site.client().ask("GET", "/browse", Duration::from_millis(1));
    site.wait_until(|stats| stats.queue_length == 1);
    waiting.leave();
    site.wait_until(|stats| stats.departed == 1);
    assert_eq!(running.reply().status, 200);
    let browse = site.wait_until_settled().stage(Stage::Browse);
    assert_eq!((browse.wasted, browse.skipped), (1, 0));
    assert!(browse.busy_us_wasted >= 1_000);
}

#[test]
fn by_default_who_leaves_while_confirming_has_ordered_all_the_same() {
    let site = Site::narrow(false);
    let mut client = site.client();
    walk(&mut client);
    let confirming = client.ask("POST", "/confirm", WHILE);
    site.wait_until(|stats| stats.running == 1 && stats.stage(Stage::Confirm).received == 1);
    confirming.leave();
    site.wait_until(|stats| stats.stage(Stage::Confirm).wasted == 1);
    assert_eq!(site.orders().len(), 1);
}

#[test]
fn a_noticing_shop_skips_the_request_of_who_left_the_queue() {
    let site = Site::narrow(true);
    let running = site.client().ask("GET", "/", FOREVER);
    site.wait_until(|stats| stats.running == 1);
    let waiting = site.client().ask("GET", "/browse", FOREVER);
    site.wait_until(|stats| stats.queue_length == 1);
    waiting.leave();
    site.wait_until(|stats| stats.departed == 1);
    running.leave();
    let browse = site.wait_until(|stats| stats.stage(Stage::Browse).skipped == 1);
    assert_eq!(browse.stage(Stage::Browse).busy_us_wasted, 0);
}

#[test]
fn a_noticing_shop_stops_the_running_work_of_who_has_left() {
    for burn in [Burn::Timer, Burn::Cpu] {
        let site = Site::with(|options| Options { burn, notice_close: true, ..options });
        let mut client = site.client();
        walk(&mut client);
        let confirming = client.ask("POST", "/confirm", FOREVER);
        site.wait_until(|stats| stats.running == 1 && stats.stage(Stage::Confirm).received == 1);
        confirming.leave();
        let stats = site.wait_until(|stats| stats.stage(Stage::Confirm).wasted == 1);
        assert!(stats.busy_us_wasted < 60_000_000, "{stats:#?}");
        assert!(site.orders().is_empty());
    }
}

#[test]
fn at_rest_every_request_received_has_exactly_one_outcome() {
    let site =
        Site::with(|options| Options { workers: 2, backlog: 4, notice_close: true, ..options });
    let sent: Vec<_> =
        (0..20).map(|_| site.client().ask("GET", "/", Duration::from_millis(3))).collect();
    for (number, pending) in sent.into_iter().enumerate() {
        if number % 3 == 0 {
            pending.leave();
        } else {
            pending.reply();
        }
    }
    // A client may leave before its request is read. Every request that was read gets an outcome.
    site.wait_until(|stats| stats.stage(Stage::Main).received >= 13);
    site.wait_until_settled();
}
