//! Tests of carts and orders.

use std::thread;

use bywash_bookstore::{Bookstore, SchemaError};

use crate::client::Client;
use crate::databases::{Database, each};
use crate::site::{Site, named, options};

fn orders(database: &Database, client: &Client) -> Vec<i64> {
    let sid = client.sid.as_ref().expect("a session");
    database
        .connect_directly()
        .query(&format!("select total_cents from orders where sid = '{sid}'"))
}

#[test]
fn a_cart_becomes_exactly_one_order_over_its_total() {
    each(|database| {
        let site = Site::open(database);
        let mut client = site.client();
        assert_eq!(client.post("/buy", "").status, 409);
        for id in [1, 1, 2] {
            let reply = client.post("/cart", &format!("id={id}"));
            assert_eq!(reply.status, 200, "{}", reply.body);
        }
        assert!(orders(database, &client).is_empty());
        let bought = client.post("/buy", "");
        assert_eq!(bought.status, 200, "{}", bought.body);
        assert_eq!(client.post("/buy", "").status, 409);
        let orders = orders(database, &client);
        assert_eq!(orders.len(), 1, "{database:?}");
        let total = format!("{}.{:02}", orders[0] / 100, orders[0] % 100);
        assert!(bought.body.contains(&format!("over {total} is placed")), "{}", bought.body);
        assert!(orders[0] > 2 * 4_549, "two of 45.49 and another: {orders:?}");
    });
}

#[test]
fn a_cart_bought_by_many_at_once_is_ordered_once() {
    each(|database| {
        let site = Site::open(database);
        let mut client = site.client();
        client.post("/cart", "id=7");
        let sent: Vec<_> = (0..16).map(|_| client.send("POST", "/buy", "", "")).collect();
        let mut replies: Vec<_> = sent.into_iter().map(|pending| pending.reply().status).collect();
        replies.sort_unstable();
        assert_eq!((replies[0], &replies[1..]), (200, &[409; 15][..]), "{database:?}");
        assert_eq!(orders(database, &client).len(), 1, "{database:?}");
    });
}

#[test]
fn books_put_into_one_cart_by_many_at_once_are_all_in_it() {
    each(|database| {
        let site = Site::open(database);
        let mut client = site.client();
        client.post("/cart", "id=7");
        let sent: Vec<_> = (0..16).map(|_| client.send("POST", "/cart", "", "id=7")).collect();
        assert!(sent.into_iter().all(|pending| pending.reply().status == 200), "{database:?}");
        client.post("/buy", "");
        // The cart has seventeen copies of one book.
        assert_eq!(orders(database, &client)[0] % 17, 0, "{database:?}");
    });
}

#[test]
fn visitors_who_buy_at_the_same_time_all_get_their_orders() {
    each(|database| {
        let site = Site::open(database);
        let address = site.bookstore.address();
        thread::scope(|scope| {
            for id in 1..=8 {
                scope.spawn(move || {
                    let mut client = Client::new(address);
                    client.post("/cart", &format!("id={id}"));
                    assert_eq!(client.post("/buy", "").status, 200);
                    assert_eq!(orders(database, &client).len(), 1);
                });
            }
        });
    });
}

#[test]
fn an_order_knows_the_request_that_placed_it() {
    each(|database| {
        let site = Site::open(database);
        let mut client = site.client();
        client.post("/cart", "id=3");
        let request = format!("order-of-{}", client.sid.clone().unwrap());
        assert_eq!(client.exchange("POST", "/buy", &named(&request), "").status, 200);
        let select = format!("select count(*) from orders where request = '{request}'");
        assert_eq!(database.connect_directly().query(&select), [1]);
    });
}

#[test]
fn a_strange_session_is_replaced_and_a_strange_book_is_not_put_into_a_cart() {
    each(|database| {
        let site = Site::open(database);
        for strange in ["", "garbage", &"0".repeat(32), "'; DROP TABLE orders; --"] {
            let mut client = Client::with_sid(site.bookstore.address(), strange);
            assert_eq!(client.post("/buy", "").status, 409, "{strange}");
            let new = client.post("/cart", "id=1").new_sid();
            assert!(new.is_some_and(|new| new != strange), "{strange:?} was adopted");
        }
        let reply = site.client().post("/cart", "id=4310");
        assert_eq!((reply.status, reply.new_sid()), (404, None));
    });
}

#[test]
fn books_and_orders_are_there_when_the_store_is_opened_again() {
    each(|database| {
        let site = Site::open(database);
        let mut client = site.client();
        client.post("/cart", "id=5");
        client.post("/buy", "");
        client.post("/cart", "id=6");
        site.bookstore.stop();
        let site = Site::with(bywash_bookstore::Options { pages: None, ..options(database) });
        assert_eq!(orders(database, &client).len(), 1);
        let mut again = Client::with_sid(site.bookstore.address(), client.sid.as_ref().unwrap());
        assert_eq!(again.post("/buy", "").status, 200, "the cart is still there");
        assert_eq!(database.connect_directly().query("select count(*) from books"), [4309]);
    });
}

#[test]
fn a_database_of_another_cost_is_refused() {
    each(|database| {
        Site::open(database);
        let wanted = bywash_bookstore::Options { pages: Some(2), ..options(database) };
        let Err(error) = Bookstore::start(wanted) else { panic!("{database:?}") };
        let pages = SchemaError::Pages { found: 1, wanted: 2 };
        assert_eq!(error.to_string(), pages.to_string());
    });
}
