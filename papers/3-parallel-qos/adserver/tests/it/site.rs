//! The set-up of the tests: an ad server with its own database, which is removed with it, and the
//! steps with which most tests begin.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bywash_adserver::{AdServer, Options, RequestStats, Selection, Stats};
use serde_json::Value;
use tempfile::TempDir;

use crate::client::{Client, Reply};

/// The time limit of a wait, longer than anything that a test waits for.
const SOON: Duration = Duration::from_secs(20);

/// The number of seconds in an hour.
pub(crate) const HOUR: u64 = 3_600;

/// A running ad server with its database in a temporary folder.
pub(crate) struct Site {
    pub(crate) server: Option<AdServer>,
    options: Options,
    _folder: TempDir,
}

impl Site {
    pub(crate) fn open() -> Self {
        Self::with(|options| options)
    }

    pub(crate) fn with(change: impl FnOnce(Options) -> Options) -> Self {
        let folder = TempDir::new().unwrap();
        let database = folder.path().join("adserver.db");
        let options = change(Options { database, threads: 2, workers: 2, ..Options::default() });
        let server = Some(AdServer::start(options.clone()).unwrap());
        Self { server, options, _folder: folder }
    }

    /// Runs `test` once for each method of selecting banners.
    pub(crate) fn each(test: impl Fn(Site)) {
        for selection in [Selection::Scan, Selection::Wheels] {
            println!("{selection:?}");
            test(Self::with(|options| Options { selection, ..options }));
        }
    }

    /// Stops the server cleanly, and starts it again on the same database.
    pub(crate) fn restart(&mut self) {
        self.server.take().unwrap().stop();
        self.server = Some(AdServer::start(self.options.clone()).unwrap());
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.server.as_ref().unwrap().address())
    }

    /// Waits until the statistics meet `condition`, and returns them. Panics if the time [`SOON`]
    /// is over.
    pub(crate) fn wait_until(&self, mut condition: impl FnMut(&Stats) -> bool) -> Stats {
        let stats = || self.server.as_ref().unwrap().stats();
        wait_for(|| Some(stats()).filter(&mut condition), || format!("{:#?}", stats()))
    }

    /// Waits until every request received so far has its outcome, and returns the statistics.
    pub(crate) fn wait_until_settled(&self) -> Stats {
        self.wait_until(|stats| {
            stats.levels.values().chain([&stats.clicks, &stats.office]).all(is_settled)
        })
    }
}

fn is_settled(stats: &RequestStats) -> bool {
    let RequestStats { received, refused, answered, failed, orphaned, .. } = *stats;
    received == refused + answered + failed + orphaned
}

/// Calls `look` until it returns a value, and returns the value. Panics with the message `why` if
/// the time [`SOON`] is over.
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>, why: impl Fn() -> String) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < SOON, "never came true: {}", why());
        thread::yield_now();
    }
}

/// Returns the present time in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Returns the form of a contract with `impressions` impressions, half of whose flight is over.
/// `banner` has the form fields of its banner.
pub(crate) fn half_over(impressions: u64, banner: &str) -> String {
    // The flight began a little less than an hour ago, because no older contract may be signed.
    let (from, to) = (now() - HOUR + 60, now() + HOUR - 60);
    format!("advertiser=Someone&impressions={impressions}&from={from}&to={to}&{banner}")
}

/// Returns the form fields of one banner with these concepts.
pub(crate) fn banner(concepts: &str) -> String {
    format!("landing=https://example.com/{concepts}&size=468x60&concepts={concepts}")
}

impl Client {
    pub(crate) fn json(&mut self, target: &str) -> Value {
        json(&self.get(target), 200)
    }

    pub(crate) fn delete(&mut self, target: &str) -> Reply {
        self.exchange("DELETE", target, "", "")
    }

    /// Registers these concepts, and a slot that has capacity for all banners about them.
    pub(crate) fn set_up(&mut self, concepts: &str) {
        for concept in concepts.split(',') {
            assert_eq!(self.post("/concepts", &format!("name={concept}")).status, 201);
        }
        assert_eq!(self.post("/publishers", "name=Daily").status, 201);
        self.slot(concepts, 100_000_000);
    }

    /// Adds a slot of the first publisher, and returns the id of the slot.
    pub(crate) fn slot(&mut self, concepts: &str, per_day: u64) -> u64 {
        let fields =
            format!("publisher=1&size=468x60&concepts={concepts}&impressions_per_day={per_day}");
        json(&self.post("/slots", &fields), 201)["slot"].as_u64().unwrap()
    }

    /// Signs the contract with these form fields, and returns its id.
    pub(crate) fn sign(&mut self, fields: &str) -> u64 {
        json(&self.post("/contracts", fields), 201)["contract"].as_u64().unwrap()
    }

    /// Requests a page. Returns the id of each of its banners, and the address of a click on the
    /// banner.
    pub(crate) fn page(&mut self, query: &str) -> Vec<(u64, String)> {
        let page = self.json(&format!("/ad?{query}"));
        let banners = page["banners"].as_array().unwrap().iter();
        let parts = |one: &Value| {
            (one["banner"].as_u64().unwrap(), one["click"].as_str().unwrap().to_owned())
        };
        banners.map(parts).collect()
    }

    /// Requests pages until at least `at_least` banners were placed, and then a hundred more pages.
    /// Returns the total number of banners placed.
    pub(crate) fn drain(&mut self, query: &str, at_least: u64) -> u64 {
        let mut placed = 0;
        let mut ask = || {
            placed += self.page(query).len() as u64;
            placed
        };
        wait_for(|| (ask() >= at_least).then_some(()), || format!("{at_least} placed"));
        (0..100).map(|_| ask()).last().unwrap()
    }
}

pub(crate) fn json(reply: &Reply, status: u16) -> Value {
    assert_eq!(reply.status, status, "{}", reply.body);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    serde_json::from_str(&reply.body).unwrap()
}
