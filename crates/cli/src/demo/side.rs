//! One side of the comparison: a shop, a gateway in front of it, and what became of its visitors.

use std::fmt::Write as _;
use std::path::PathBuf;

use bywash_config::Config;
use bywash_gateway::{Gateway, Inheritance};
use bywash_load::{Options, Run};
use bywash_scenario::file::Class;
use bywash_scenario::{RunResult, Scenario, Tier};
use bywash_shop::{Order, Shop};
use bywash_units::Span;

use super::folder::Folder;
use super::screen::Screen;
use crate::failure::Failure;

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
        let mut rows: Vec<u64> = self.orders.iter().filter_map(visitor).collect();
        let mut missing = 0;
        for seen in &self.run.confirmed {
            match rows.iter().position(|row| row == seen) {
                // A visitor may have bought twice: each row answers for one order.
                Some(row) => {
                    rows.swap_remove(row);
                }
                None => missing += 1,
            }
        }
        missing
    }
}

/// The number of the visitor who made an order: the last part of its tag.
pub(super) fn visitor(order: &Order) -> Option<u64> {
    order.tag.as_deref()?.rsplit('-').next()?.parse().ok()
}

/// Requests that may wait inside the shop: the listen backlog that gunicorn and uvicorn set.
const BACKLOG: usize = 2048;

impl Side {
    /// A shop with an empty database in `folder`, and a gateway.
    pub(super) fn open(kind: Kind, scenario: &Scenario, folder: &Folder) -> Result<Self, Failure> {
        let database = folder.file(kind.file());
        let workers = scenario.workers as usize;
        let shop = Shop::start(bywash_shop::Options {
            database: database.clone(),
            workers,
            backlog: BACKLOG,
            ..bywash_shop::Options::default()
        });
        let shop = shop.map_err(Failure::running)?;
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
        let before = self.busy();
        let run = bywash_load::run(scenario, &options, &mut |p| screen.show(self.kind, p));
        let mut run = run.map_err(Failure::running)?;
        let Self { kind, shop, gateway, database } = self;
        gateway.stop(Span::from_secs(5));
        let busy = busy(&shop).saturating_sub(before);
        shop.stop();
        run.tally.worked(Span::from_micros(busy));
        let orders = bywash_shop::orders(&database).map_err(Failure::running)?;
        Ok(Outcome { kind, run, orders })
    }

    fn busy(&self) -> u64 {
        busy(&self.shop)
    }
}

/// Microseconds that the shop's workers have been busy.
fn busy(shop: &Shop) -> u64 {
    let stats = shop.stats();
    stats.busy_us_useful + stats.busy_us_wasted
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
    for class in &scenario.classes {
        let after = class.after.iter().map(|i| scenario.classes[*i].name.as_str());
        add_class(&mut text, class, &after.collect::<Vec<_>>());
    }
    let read = Config::parse(&text, "the demo's configuration");
    read.map(|(config, _)| config).map_err(Failure::running)
}

fn add_class(text: &mut String, class: &Class, after: &[&str]) {
    let path = class.path.split('?').next().unwrap_or_default();
    let tier = match class.tier {
        Tier::Transact => "transact",
        Tier::Browse => "browse",
    };
    // Writing to a text cannot fail. A list of names is the same in Rust and in TOML.
    let _ = writeln!(
        text,
        "[class.{}]\nmatch = [\"{} {path}\"]\ntier = \"{tier}\"\nutility = {}\nafter = {after:?}",
        class.name,
        class.method,
        class.utility.get(),
    );
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
