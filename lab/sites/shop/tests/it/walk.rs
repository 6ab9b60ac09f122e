//! Tests of a customer's visit, from the front page to the order.

use std::fs;
use std::thread;

use bywash_shop::{Options, Shop, ShopError, Stage, orders};

use crate::client::Client;
use crate::site::{Folder, Site, walk};

#[test]
fn a_full_walk_leaves_exactly_one_committed_order() {
    let site = Site::open();
    let mut client = site.client();
    walk(&mut client);
    let reply = client.exchange("POST", "/confirm", "shop-order-tag: run-1_A\r\n", "");
    assert_eq!(reply.status, 200);

    let orders = site.orders();
    assert_eq!(orders.len(), 1);
    assert_eq!(Some(&orders[0].session), client.sid.as_ref());
    assert_eq!(orders[0].tag.as_deref(), Some("run-1_A"));
    assert!(orders[0].total.0 > 0 && orders[0].at_ms > 0);
    assert!(reply.body.contains(&orders[0].total.to_string()), "{}", reply.body);
}

#[test]
fn every_stage_of_a_walk_is_counted_once() {
    let site = Site::open();
    let mut client = site.client();
    walk(&mut client);
    client.post("/confirm", "");
    let stats = site.wait_until_settled();
    for stage in Stage::ALL {
        let counted = stats.stage(stage);
        assert_eq!((counted.received, counted.answered), (1, 1), "{stage:?}: {counted:?}");
    }
    assert_eq!((stats.orders, stats.departed), (1, 0));
}

#[test]
fn nothing_is_ordered_before_every_step_was_taken() {
    let site = Site::open();
    let mut client = site.client();
    let mut expect = |method: &str, target: &str, missing: &str| {
        let reply = client.post("/confirm", "");
        assert_eq!(reply.status, 409, "before {target}");
        assert!(reply.body.contains(missing), "before {target}: {}", reply.body);
        assert_eq!(client.exchange(method, target, "", "").status, 200);
    };
    expect("GET", "/details?id=1", "cart");
    expect("POST", "/login", "log in");
    expect("POST", "/shipping", "address");
    expect("POST", "/payment", "pay");
    assert!(site.orders().is_empty());
    assert_eq!(client.post("/confirm", "").status, 200);
}

#[test]
fn a_cart_is_ordered_once() {
    let site = Site::open();
    let mut client = site.client();
    walk(&mut client);
    assert_eq!(client.post("/confirm", "").status, 200);
    assert_eq!(client.post("/confirm", "").status, 409);
    assert_eq!(site.orders().len(), 1);
}

#[test]
fn a_cart_confirmed_by_many_at_once_is_ordered_once() {
    let site = Site::open();
    let mut client = site.client();
    walk(&mut client);
    let sent: Vec<_> = (0..16).map(|_| client.send("POST", "/confirm", "", "")).collect();
    let replies = sent.into_iter().map(|pending| pending.reply().status);
    assert_eq!(replies.filter(|status| *status == 200).count(), 1);
    assert_eq!(site.orders().len(), 1);
}

#[test]
fn a_second_order_of_a_session_is_paid_again() {
    let site = Site::open();
    let mut client = site.client();
    walk(&mut client);
    client.post("/confirm", "");
    client.get("/details?id=9");
    assert_eq!(client.post("/confirm", "").status, 409);
    client.post("/payment", "reference=card");
    assert_eq!(client.post("/confirm", "").status, 200);
    assert_eq!(site.orders().len(), 2);
}

#[test]
fn the_total_is_the_price_of_what_was_looked_at() {
    let site = Site::open();
    let mut client = site.client();
    walk(&mut client);
    client.get("/details?id=7");
    client.post("/confirm", "");
    let mut other = site.client();
    walk(&mut other);
    other.post("/confirm", "");
    let totals: Vec<_> = site.orders().iter().map(|order| order.total.0).collect();
    assert_eq!(totals[0], 2 * totals[1]);
}

#[test]
fn visitors_who_buy_at_the_same_time_all_get_their_orders() {
    let site = Site::open();
    let address = site.shop.address();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(move || {
                let mut client = Client::new(address);
                walk(&mut client);
                assert_eq!(client.post("/confirm", "").status, 200);
            });
        }
    });
    assert_eq!(site.orders().len(), 8);
    let stats = site.wait_until_settled();
    assert!(Stage::ALL.iter().all(|stage| stats.stage(*stage).failed == 0));
}

#[test]
fn a_search_finds_by_part_of_the_name_and_invents_nothing() {
    let site = Site::open();
    let mut client = site.client();
    let found = client.get("/search?q=%6Camp").body;
    assert!(found.contains("desk lamp"), "{found}");
    let nothing = client.get("/search?q=%25").body;
    assert!(!nothing.contains("<li>"), "{nothing}");
}

#[test]
fn a_session_is_kept_and_a_strange_one_is_replaced() {
    let site = Site::open();
    let mut client = site.client();
    let first = client.get("/").new_sid().expect("a session");
    assert_eq!(client.get("/browse").new_sid(), None);
    for strange in ["", "garbage", &"0".repeat(32), "'; DROP TABLE orders; --"] {
        let new = Client::with_sid(site.shop.address(), strange).get("/").new_sid();
        let new = new.unwrap_or_else(|| panic!("{strange:?} was adopted"));
        assert!(new != first && new != strange && new.len() == 32);
    }
}

#[test]
fn orders_are_still_there_when_the_database_is_opened_again() {
    let folder = Folder::new();
    for round in 1..=2 {
        let shop = Shop::start(folder.options()).unwrap();
        let mut client = Client::new(shop.address());
        walk(&mut client);
        assert_eq!(client.post("/confirm", "").status, 200);
        assert_eq!(shop.stats().orders, round);
        shop.stop();
        assert_eq!(folder.orders().len() as u64, round);
    }
}

#[test]
fn a_file_that_is_no_database_of_a_shop_is_refused() {
    let folder = Folder::new();
    fs::write(folder.database(), "once upon a time ".repeat(100)).unwrap();
    let refused = |options: Options| Shop::start(options).err().unwrap();
    assert!(matches!(refused(folder.options()), ShopError::Database { .. }));
    assert!(matches!(orders(&folder.database()), Err(ShopError::Database { .. })));
}

#[test]
fn reading_the_orders_of_no_file_makes_none() {
    let folder = Folder::new();
    assert!(orders(&folder.database()).is_err());
    assert!(!folder.database().exists());
}
