//! The set-up of the tests: an auction site on each database. SQLite is always tested, and the
//! others are tested if `scripts/with-databases` has started them.
//!
//! All tests of a run share the tables of a server, so a test checks only the users and items that
//! it has created.

use std::env;
use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use bywash_auction::{Auction, DatabaseUrl, Options, Sizes};

use crate::client::{Client, Reply};

/// The sizes of a small auction site, so that its database is filled quickly.
pub(crate) const SIZES: Sizes = Sizes { users: 50, items: 120, bids: 4, comments: 60, seed: 5 };

/// An auction site that runs for one test.
pub(crate) struct Site {
    pub(crate) auction: Auction,
}

/// A user that was registered for one test.
#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) nickname: String,
}

/// Runs `test` once on every available database.
pub(crate) fn each(test: impl Fn(&Site)) {
    test(&Site::on(DatabaseUrl::Sqlite(None)));
    for url in servers() {
        test(&Site::on(url));
    }
}

fn servers() -> Vec<DatabaseUrl> {
    static REPORTED: Once = Once::new();
    let servers = [
        ("PostgreSQL", "postgres", env::var("BYWASH_POSTGRES").ok()),
        ("MariaDB", "mysql", env::var("BYWASH_MARIADB").ok()),
    ];
    REPORTED.call_once(|| {
        for (name, _, _) in servers.iter().filter(|(_, _, address)| address.is_none()) {
            // Write directly to stderr, because the test harness captures the output of passing
            // tests.
            let _ =
                writeln!(io::stderr(), "NOT TESTED: the auction on {name}: scripts/test-databases");
        }
    });
    let url = |(_, scheme, address): (_, _, Option<String>)| {
        address.map(|address| format!("{scheme}://shop:lab@{address}/shop").parse().unwrap())
    };
    servers.into_iter().filter_map(url).collect()
}

impl Site {
    pub(crate) fn on(database: DatabaseUrl) -> Self {
        let options = Options { database, workers: 4, sizes: SIZES, ..Options::default() };
        Self { auction: Auction::start(options).unwrap() }
    }

    pub(crate) fn get(&self, target: &str) -> Reply {
        Client::new(self.auction.address()).get(target)
    }

    pub(crate) fn post(&self, page: &str, form: &str) -> Reply {
        Client::new(self.auction.address()).post(&format!("/PHP/{page}.php"), form)
    }

    /// Registers a new user with a unique nickname.
    pub(crate) fn person(&self) -> Person {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let person = Person { nickname: format!("p{}-{number}", std::process::id()) };
        let reply = self.post("RegisterUser", &format!("{}&region=7", person.form()));
        assert_eq!(reply.status, 200, "{}", reply.body);
        person
    }

    /// Puts an item on sale, and returns the id of the item. `rest` has further form fields.
    pub(crate) fn item(&self, seller: &Person, rest: &str) -> i64 {
        let sale = "name=Thing&description=A+thing&category=20&initialPrice=10";
        let reply = self.post("RegisterItem", &format!("{}&{sale}&{rest}", seller.form()));
        assert_eq!(reply.status, 200, "{}", reply.body);
        number(&self.post("AboutMe", &seller.form()).body, "itemId=")
    }

    pub(crate) fn item_page(&self, item: i64) -> String {
        self.get(&format!("/PHP/ViewItem.php?itemId={item}")).body
    }
}

impl Person {
    pub(crate) fn form(&self) -> String {
        format!("nickname={}&password=secret", self.nickname)
    }

    /// Returns the user's id, which is read from a page that names the user.
    pub(crate) fn number(&self, site: &Site) -> i64 {
        let item = site.item(self, "");
        number(&site.item_page(item), "userId=")
    }
}

/// Returns the number that follows the last `mark` on a page.
pub(crate) fn number(page: &str, mark: &str) -> i64 {
    let (_, rest) = page.rsplit_once(mark).expect(page);
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}
