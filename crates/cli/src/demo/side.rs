//! One side of the comparison: a shop, a gateway in front of it, and what became of its visitors.

use std::path::PathBuf;

use bywash_config::Config;
use bywash_gateway::{Gateway, Inheritance};
use bywash_load::{Options, Run};
use bywash_scenario::{RunResult, Scenario};
use bywash_shop::{Order, Shop};
use bywash_units::Span;

use super::folder::Folder;
use super::screen::Screen;
use crate::failure::Failure;
use crate::lab::{classes, shop};

/// What stands in front of the shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The gateway with every decision switched off: it passes on what comes.
    Plain,
    /// The gateway.
    Bywash,
}

impl Kind {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Plain => "plain proxy",
            Self::Bywash => "bywash",
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::Plain => "plain.db",
            Self::Bywash => "bywash.db",
        }
    }
}

pub(super) struct Side {
    kind: Kind,
    shop: Shop,
    gateway: Gateway,
    database: PathBuf,
}

/// A run on one side, over.
pub(super) struct Outcome {
    pub(super) kind: Kind,
    pub(super) run: Run,
    /// Read back from the shop's database.
    pub(super) orders: Vec<Order>,
}

impl Outcome {
    /// How many orders that a visitor saw confirmed are not in the database.
    pub(super) fn without_a_row(&self) -> usize {
        shop::without_a_row(&self.run.confirmed, &self.orders)
    }
}

impl Side {
    /// A shop with an empty database in `folder`, and a gateway.
    pub(super) fn open(kind: Kind, scenario: &Scenario, folder: &Folder) -> Result<Self, Failure> {
        let database = folder.file(kind.file());
        let shop = shop::open(&database, scenario)?;
        let gateway = bywash_gateway::start(config(scenario, &shop)?, Inheritance::default())
            .map_err(Failure::running)?;
        gateway.bypass(kind == Kind::Plain);
        Ok(Self { kind, shop, gateway, database })
    }

    pub(super) fn address(&self) -> String {
        format!("http://{}", self.gateway.http())
    }

    /// Sends the crowd, and closes the books.
    pub(super) fn play(
        self,
        scenario: &Scenario,
        seed: u64,
        screen: &Screen,
    ) -> Result<Outcome, Failure> {
        let options = Options {
            label: self.kind.label().into(),
            tag: Some("demo".into()),
            ..Options::new(self.address(), rho(scenario), seed)
        };
        let run = bywash_load::run(scenario, &options, &mut |p| screen.show(self.kind, p));
        let mut run = run.map_err(Failure::running)?;
        let Self { kind, shop, gateway, database } = self;
        gateway.stop(Span::from_secs(5));
        run.tally.worked(shop::busy(&shop));
        shop.stop();
        let orders = bywash_shop::orders(&database).map_err(Failure::running)?;
        Ok(Outcome { kind, run, orders })
    }
}

/// The crowd's level of load.
pub(super) fn rho(scenario: &Scenario) -> f64 {
    scenario.rho.first().copied().unwrap_or(1.0)
}

/// The gateway's configuration, as an operator would write it.
fn config(scenario: &Scenario, shop: &Shop) -> Result<Config, Failure> {
    let patience = scenario.client.patience.median();
    let mut text = format!(
        "version = 1\nmode = \"enforce\"\n\
         [listen]\nhttp = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [upstream]\nserver = \"http://{}\"\nlimit = {}\n\
         [order]\npolicy = \"session-first\"\npatience = \"{patience}\"\n\
         [log]\naccess = \"off\"\n",
        shop.address(),
        scenario.workers,
    );
    text.push_str(&classes::toml(scenario));
    let read = Config::parse(&text, "the demo's configuration");
    read.map(|(config, _)| config).map_err(Failure::running)
}

/// Both sides as one result.
pub(super) fn joined(
    scenario: &Scenario,
    seed: u64,
    plain: &Outcome,
    bywash: &Outcome,
) -> RunResult {
    let cell = |outcome: &Outcome| {
        let options = Options {
            label: outcome.kind.label().into(),
            ..Options::new(String::new(), rho(scenario), seed)
        };
        outcome.run.result(scenario, &options)
    };
    let mut result = cell(plain);
    let second = cell(bywash);
    result.invalid = result.invalid.or(second.invalid);
    result.cells.extend(second.cells);
    result
}
