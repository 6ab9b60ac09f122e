//! One side of the demo with a flash crowd: a shop, a gateway in front of it, and the outcome for
//! its visitors.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bywash_command::Failure;
use bywash_load::{Options, Run};
use bywash_scenario::Scenario;
use bywash_shop::{Order, Shop};

use super::folder::Folder;
use super::phases::{Phases, overload};
use super::screen::Screen;
use super::side::{GRACE, ProxyKind, Side, Site, SiteConfig, rho};
use super::words::SHOP;
use crate::{classes, shop};

/// A shop with its database.
pub(super) struct ShopSite {
    shop: Shop,
    database: PathBuf,
}

/// The result of a run on one side of the comparison.
pub(super) struct Outcome {
    pub(super) kind: ProxyKind,
    pub(super) run: Run,
    /// The orders that the shop's database has after the run.
    orders: Vec<Order>,
}

impl Outcome {
    fn of(kind: ProxyKind, mut run: Run, site: &ShopSite) -> Result<Self, Failure> {
        run.tally.worked(shop::busy(&site.shop));
        let orders = bywash_shop::orders(&site.database).map_err(Failure::running)?;
        Ok(Self { kind, run, orders })
    }

    /// Returns the number of orders that visitors saw confirmed although the database does not have
    /// them.
    pub(super) fn count_missing(&self) -> usize {
        shop::count_missing(&self.run.confirmed, &self.orders)
    }
}

impl Site for ShopSite {
    fn address(&self) -> SocketAddr {
        self.shop.address()
    }
}

/// Opens a shop with an empty database in `folder`, and a gateway of `kind` in front of the shop.
pub(super) fn open(
    kind: ProxyKind,
    scenario: &Scenario,
    folder: &Folder,
) -> Result<Side<ShopSite>, Failure> {
    let database = folder.file(match kind {
        ProxyKind::Plain => "plain.db",
        ProxyKind::Bywash => "bywash.db",
    });
    let shop = shop::open(&database, scenario)?;
    let own = SiteConfig {
        identify: "identify.session = \"cookie:sid\"".into(),
        classes: classes::toml(scenario),
    };
    Side::open(kind, ShopSite { shop, database }, &own, scenario, folder)
}

impl Side<ShopSite> {
    /// Plays the visitors of the crowd against this side.
    pub(super) fn play_crowd(
        &self,
        scenario: &Scenario,
        seed: u64,
        screen: &Screen,
    ) -> Result<Run, Failure> {
        let options = Options { tag: Some("demo".into()), ..self.options(rho(scenario), seed) };
        self.play(scenario, options, &mut |progress| screen.show(self.kind, progress))
    }

    /// Stops the gateway and the shop, and returns the outcome of `run`.
    pub(super) fn end(self, run: Run) -> Result<Outcome, Failure> {
        let kind = self.kind;
        Outcome::of(kind, run, &self.close())
    }

    /// Waits at most [`GRACE`] until the shop is idle, and returns the outcome of `run`. The
    /// gateway and the shop keep running.
    pub(super) fn settle(&self, run: Run) -> Result<Outcome, Failure> {
        let end = Instant::now() + GRACE.to_std();
        let is_busy = || {
            let stats = self.site.shop.stats();
            stats.running + stats.queue_length > 0
        };
        while is_busy() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        Outcome::of(self.kind, run, &self.site)
    }
}

/// Counts the orders in both shops' databases. An order carries the number of its visitor.
pub(super) fn count_orders(
    scenario: &Scenario,
    seed: u64,
    sides: [&Outcome; 2],
) -> Result<Phases, Failure> {
    let mut phases = Phases::plan(scenario, seed, overload(scenario), &SHOP);
    for side in sides {
        phases.count(side.kind, side.orders.iter().map(shop::visitor))?;
    }
    Ok(phases)
}
