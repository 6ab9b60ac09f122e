//! Tests that the rules of the auction hold with many concurrent requests.

use std::thread;

use crate::site::{SIZES, Site, each, number};

/// The number of concurrent clients.
const CLIENTS: i64 = 6;
/// The number of requests that each client sends.
const REQUESTS_EACH: i64 = 5;

/// Sends [`REQUESTS_EACH`] requests from each of [`CLIENTS`] concurrent clients. Returns the HTTP
/// statuses in any order.
fn request_concurrently(ask: impl Fn(i64) -> u16 + Sync) -> Vec<u16> {
    thread::scope(|scope| {
        let ask = &ask;
        let one = |person: i64| {
            (0..REQUESTS_EACH).map(|turn| ask(turn * CLIENTS + person)).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..CLIENTS).map(|person| scope.spawn(move || one(person))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn count(answers: &[u16], status: u16) -> i64 {
    answers.iter().filter(|one| **one == status).count().cast_signed() as i64
}

fn amounts(site: &Site, item: i64) -> Vec<String> {
    let page = site.get(&format!("/PHP/ViewBidHistory.php?itemId={item}")).body;
    let lines = page.lines().filter(|line| line.starts_with("<li>"));
    lines.map(|line| line.rsplit(": ").next().unwrap().replace("</li>", "")).collect()
}

#[test]
fn a_bid_exceeds_the_highest_however_many_bid_at_once() {
    each(|site| {
        let seller = site.person();
        let item = site.item(&seller, "");
        let bid = |amount: &str| {
            site.post("StoreBid", &format!("{}&itemId={item}&bid={amount}", seller.form())).status
        };
        assert_eq!(bid("9.99"), 409);
        assert_eq!(bid("10"), 200);
        assert_eq!(bid("10"), 409);
        let answers = request_concurrently(|number| bid(&(20 + number / 2).to_string()));
        assert_eq!(count(&answers, 200) + count(&answers, 409), CLIENTS * REQUESTS_EACH);
        let bids = amounts(site, item);
        assert_eq!(bids.len().cast_signed() as i64, 1 + count(&answers, 200));
        let mut different = bids.clone();
        different.dedup();
        assert_eq!(bids, different);
        assert_eq!(bids[0], "34.00");
        assert!(site.item_page(item).contains("the highest 34.00"));
    });
}

#[test]
fn no_more_is_sold_than_there_is_and_then_it_is_over() {
    each(|site| {
        let seller = site.person();
        let item = site.item(&seller, "buyNow=5&qty=11");
        let form = format!("{}&itemId={item}", seller.form());
        let answers =
            request_concurrently(|_| site.post("StoreBuyNow", &format!("{form}&qty=2")).status);
        assert_eq!((count(&answers, 200), count(&answers, 409)), (5, CLIENTS * REQUESTS_EACH - 5));
        assert_eq!(site.post("StoreBuyNow", &form).status, 200);
        let reply = site.post("StoreBuyNow", &form);
        assert_eq!((reply.status, reply.body.as_str()), (409, "the auction is over\n"));
        assert_eq!(site.post("StoreBid", &format!("{form}&bid=100")).status, 409);
        assert!(site.item_page(item).contains("<p>0 of "));
    });
}

#[test]
fn what_has_no_price_cannot_be_bought_at_once() {
    each(|site| {
        let seller = site.person();
        let item = site.item(&seller, "qty=5");
        let reply = site.post("StoreBuyNow", &format!("{}&itemId={item}", seller.form()));
        assert_eq!(reply.status, 409);
    });
}

#[test]
fn an_ended_auction_takes_no_bid_and_is_not_found() {
    each(|site| {
        let person = site.person();
        let over = SIZES.items;
        assert!(site.item_page(over).contains("The auction is over"));
        let reply = site.post("StoreBid", &format!("{}&itemId={over}&bid=9999", person.form()));
        assert_eq!((reply.status, reply.body.as_str()), (409, "the auction is over\n"));
        let link = format!("itemId={over}\"");
        for category in 1..=20 {
            let found = site
                .get(&format!("/PHP/SearchItemsByCategory.php?category={category}&nbOfItems=100"));
            assert!(!found.body.contains(&link), "{}", found.body);
        }
    });
}

#[test]
fn comments_of_many_clients_all_change_the_rating() {
    each(|site| {
        let seller = site.person();
        let (to, item) = (seller.number(site), site.item(&seller, ""));
        let form = format!("{}&itemId={item}&to={to}&comment=x", seller.form());
        let answers = request_concurrently(|number| {
            site.post("StoreComment", &format!("{form}&rating={}", number % 2)).status
        });
        assert_eq!(count(&answers, 200), CLIENTS * REQUESTS_EACH);
        let page = site.get(&format!("/PHP/ViewUserInfo.php?userId={to}")).body;
        let all = CLIENTS * REQUESTS_EACH;
        assert_eq!((number(&page, "rated "), number(&page, " in ")), (all / 2, all), "{page}");
    });
}

#[test]
fn a_nickname_is_given_once_however_many_want_it() {
    each(|site| {
        let name = format!("{}-twin", site.person().nickname);
        let form = format!("nickname={name}&password=x&region=1");
        let answers = request_concurrently(|_| site.post("RegisterUser", &form).status);
        assert_eq!((count(&answers, 200), count(&answers, 409)), (1, CLIENTS * REQUESTS_EACH - 1));
    });
}
