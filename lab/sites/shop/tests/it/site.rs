//! A shop with its own database, which is removed with it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use bywash_shop::{Options, Order, Shop, StageStats, Stats, orders};

use crate::client::{Client, Pending};

/// A time limit longer than any demand that a test waits for.
const SOON: Duration = Duration::from_secs(20);

/// A demand that no test waits for to end.
pub(crate) const FOREVER: Duration = Duration::from_secs(60);

/// A folder for database files.
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

    /// Returns options for a shop in this folder that only runs its SQL.
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

    /// Waits until `condition` holds for the statistics.
    pub(crate) fn wait_until(&self, condition: impl Fn(&Stats) -> bool) -> Stats {
        let begun = Instant::now();
        loop {
            let stats = self.shop.stats();
            if condition(&stats) {
                return stats;
            }
            assert!(begun.elapsed() < SOON, "never came true: {stats:#?}");
            thread::yield_now();
        }
    }

    /// Waits until every request received so far has its outcome.
    pub(crate) fn wait_until_settled(&self) -> Stats {
        self.wait_until(|stats| stats.stages.values().all(is_settled))
    }
}

impl Client {
    /// Sends a request that needs its worker for `demand`.
    pub(crate) fn ask(&self, method: &str, target: &str, demand: Duration) -> Pending {
        let header = format!("shop-demand-us: {}\r\n", demand.as_micros());
        self.send(method, target, &header, "")
    }
}

fn is_settled(stage: &StageStats) -> bool {
    stage.received == stage.refused + stage.skipped + stage.answered + stage.wasted
}

/// Takes a visitor to the point where only the confirmation is missing.
pub(crate) fn walk(client: &mut Client) {
    for target in ["/", "/browse", "/search?q=lamp", "/details?id=7"] {
        assert_eq!(client.get(target).status, 200, "{target}");
    }
    for target in ["/login", "/shipping", "/payment"] {
        assert_eq!(client.post(target, "").status, 200, "{target}");
    }
}
