//! Tests of the pages that read the database.

use std::cell::RefCell;

use bywash_bookstore::{BOOKS, CATEGORIES, FILES, Service};

use crate::databases::each;
use crate::site::Site;

#[test]
fn every_database_shows_the_same_pages() {
    let targets = [
        "/",
        "/search?q=harbour",
        "/search?q=favourite+be",
        "/browse",
        "/browse?category=law",
        "/book?id=1",
        "/book?id=4309",
        "/file/1",
        "/file/8618",
    ];
    let first: RefCell<Option<Vec<String>>> = RefCell::default();
    each(|database| {
        let site = Site::open(database);
        let pages: Vec<_> = targets
            .map(|target| {
                let reply = site.client().get(target);
                assert_eq!(reply.status, 200, "{target} on {database:?}: {}", reply.body);
                reply.body
            })
            .into();
        assert_eq!(&pages, first.borrow_mut().get_or_insert_with(|| pages.clone()), "{database:?}");
    });
}

#[test]
fn a_search_finds_what_a_page_says_whatever_the_case_and_invents_nothing() {
    each(|database| {
        let site = Site::open(database);
        let found = site.client().get("/search?q=window%2C+NO.+1+by+leo").body;
        assert_eq!(found.matches("<li>").count(), 1, "{found}");
        assert!(found.contains("The Yellow Window, No. 1</a> by Leo Sandoval, 45.49"), "{found}");
        let nothing = site.client().get("/search?q=xylophone").body;
        assert!(!nothing.contains("<li>"), "{nothing}");
        assert_eq!(site.client().get("/search?q=favourite").body.matches("<li>").count(), 20);
    });
}

#[test]
fn a_search_is_for_letters_and_never_a_pattern_or_a_statement() {
    each(|database| {
        let site = Site::open(database);
        let odd = [
            "%25",
            "_",
            "%27",
            "%5C",
            "%22",
            "%3F",
            "%241",
            "%3A1",
            "%25%25",
            "%5C%27",
            "%27+OR+1%3D1+--+",
            "%27%3B+DROP+TABLE+books%3B+--",
            "*%2F",
            "%C3%A9",
            "%E6%97%A5%E6%9C%AC",
            "%F0%9F%93%9A",
            "%FF",
        ];
        for words in odd {
            let reply = site.client().get(&format!("/search?q={words}"));
            assert_eq!(reply.status, 200, "{words} on {database:?}: {}", reply.body);
            assert!(!reply.body.contains("<li>"), "{words} on {database:?}: {}", reply.body);
        }
        assert!(site.client().get("/search?q=harbour").body.contains("<li>"), "{database:?}");
    });
}

#[test]
fn a_shelf_has_books_of_its_category_only() {
    each(|database| {
        let site = Site::open(database);
        for category in CATEGORIES {
            let shelf = site.client().get(&format!("/browse?category={category}")).body;
            let first = shelf.split("/book?id=").nth(1).unwrap();
            let id = first.split('"').next().unwrap();
            let book = site.client().get(&format!("/book?id={id}")).body;
            assert!(book.contains(&format!("care about {category}.")), "{category}: {book}");
        }
        assert_eq!(site.client().get("/browse?category=%27").status, 404);
    });
}

#[test]
fn what_is_not_there_is_said() {
    each(|database| {
        let site = Site::open(database);
        for target in ["/book?id=0", "/book?id=4310", "/book?id=9223372036854775807", "/file/0"] {
            assert_eq!(site.client().get(target).status, 404, "{target}");
        }
        assert_eq!(site.client().get(&format!("/file/{FILES}")).status, 200);
        assert_eq!(site.client().get(&format!("/book?id={BOOKS}")).status, 200);
        let stats = site.wait_until_settled();
        let select = stats.service(Service::Select);
        assert_eq!((select.received, select.served, select.failed), (4, 4, 0), "{select:?}");
        assert!(stats.database.reachable && stats.busy_us > 0, "{stats:#?}");
    });
}
