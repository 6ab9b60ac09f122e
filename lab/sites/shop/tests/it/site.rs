//! A running shop for tests, with a database of its own. The database is removed when the value is
//! dropped.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use bywash_shop::{Options, Order, Shop, StageStats, Stats, orders};

use crate::client::{Client, Pending};

/// A time limit for events that must happen. It is longer than any demand that a test waits for.
const SOON: Duration = Duration::from_secs(20);

/// A demand so long that no test waits until its request ends.
pub(crate) const FOREVER: Duration = Duration::from_secs(60);

/// A folder for database files, which is removed when the value is dropped.
pub(crate) struct Folder(PathBuf);

/// A running shop in a folder.
pub(crate) struct Site {
    pub(crate) shop: Shop,
    folder: Folder,
}

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("shop-{}-{number}", process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("shop.db")
    }

    pub(crate) fn orders(&self) -> Vec<Order> {
        orders(&self.database()).unwrap()
    }

    /// Returns options for a shop whose database is in this folder. Its requests take no time
    /// except for their SQL statements.
    pub(crate) fn options(&self) -> Options {
        let demand = [Duration::ZERO; 8];
        Options { database: self.database(), demand, ..Options::default() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Site {
    pub(crate) fn open() -> Self {
        Self::with(|options| options)
    }

    /// Opens a shop with one worker, so that a single request occupies the whole shop.
    pub(crate) fn narrow(notice_close: bool) -> Self {
        Self::with(|options| Options { workers: 1, notice_close, ..options })
    }

    pub(crate) fn with(change: impl FnOnce(Options) -> Options) -> Self {
        let folder = Folder::new();
        let shop = Shop::start(change(folder.options())).unwrap();
        Self { shop, folder }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.shop.address())
    }

    pub(crate) fn orders(&self) -> Vec<Order> {
        self.folder.orders()
    }

    /// Waits until `condition` holds for the shop's statistics, and returns these statistics.
    /// Panics if the condition does not hold in time.
    pub(crate) fn wait_until(&self, condition: impl Fn(&Stats) -> bool) -> Stats {
        let begun = Instant::now();
        loop {
            let stats = self.shop.stats();
            if condition(&stats) {
                return stats;
            }
            assert!(begun.elapsed() < SOON, "never came true: {stats:#?}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until every request received so far has an outcome, and returns the statistics.
    pub(crate) fn wait_until_settled(&self) -> Stats {
        self.wait_until(|stats| stats.stages.values().all(is_settled))
    }
}

impl Client {
    /// Sends a request that occupies a worker for `demand`, without waiting for the answer.
    pub(crate) fn ask(&self, method: &str, target: &str, demand: Duration) -> Pending {
        let header = format!("shop-demand-us: {}\r\n", demand.as_micros());
        self.send(method, target, &header, "")
    }
}

fn is_settled(stage: &StageStats) -> bool {
    stage.received == stage.refused + stage.skipped + stage.answered + stage.wasted
}

/// Sends all requests of a customer's visit except the final one, which confirms the order.
pub(crate) fn walk(client: &mut Client) {
    for target in ["/", "/browse", "/search?q=lamp", "/details?id=7"] {
        assert_eq!(client.get(target).status, 200, "{target}");
    }
    for target in ["/login", "/shipping", "/payment"] {
        assert_eq!(client.post(target, "").status, 200, "{target}");
    }
}
