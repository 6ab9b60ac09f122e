//! One side of the comparison: a shop, a gateway in front of it, and what became of its visitors.

use std::path::PathBuf;

use bywash_config::Config;
use bywash_gateway::Gateway;
use bywash_load::{Options, Run};
use bywash_scenario::{RunResult, Scenario};
use bywash_shop::{Order, Shop};
use bywash_units::Span;

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
}

pub(super) struct Side {
    kind: Kind,
    shop: Shop,
    gateway: Gateway,
    folder: Folder,
}

/// A run on one side, over.
pub(super) struct Outcome {
    pub(super) kind: Kind,
    pub(super) run: Run,
    /// Read back from the shop's database.
    pub(super) orders: Vec<Order>,
}

/// A folder for one shop's database that goes when the demo does.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self, Failure> {
        let name = format!("bywash-demo-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name.replace(' ', "-"));
        std::fs::create_dir_all(&path).map_err(Failure::running)?;
        Ok(Self(path))
    }

    fn database(&self) -> PathBuf {
        self.0.join("shop.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind is a temporary folder: nothing to fail for.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Requests that may wait inside the shop: the listen backlog that gunicorn and uvicorn set.
const BACKLOG: usize = 2048;

impl Side {
    pub(super) fn open(kind: Kind, scenario: &Scenario) -> Result<Self, Failure> {
        let folder = Folder::new(kind.label())?;
        let workers = scenario.workers as usize;
        let shop = Shop::start(bywash_shop::Options {
            database: folder.database(),
            workers,
            backlog: BACKLOG,
            ..bywash_shop::Options::default()
        });
        let shop = shop.map_err(Failure::running)?;
        let gateway = bywash_gateway::start(config(scenario, &shop)?).map_err(Failure::running)?;
        gateway.bypass(kind == Kind::Plain);
        Ok(Self { kind, shop, gateway, folder })
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
        let Self { kind, shop, gateway, folder } = self;
        gateway.stop(Span::from_secs(5));
        let busy = busy(&shop).saturating_sub(before);
        shop.stop();
        run.tally.worked(Span::from_micros(busy));
        let orders = bywash_shop::orders(&folder.database()).map_err(Failure::running)?;
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
        let path = class.path.split('?').next().unwrap_or_default();
        let tier = match class.tier {
            bywash_scenario::Tier::Transact => "transact",
            bywash_scenario::Tier::Browse => "browse",
        };
        let after: Vec<String> =
            class.after.iter().map(|i| format!("\"{}\"", scenario.classes[*i].name)).collect();
        text.push_str(&format!(
            "[class.{}]\nmatch = [\"{} {path}\"]\ntier = \"{tier}\"\nutility = {}\n",
            class.name,
            class.method,
            class.utility.get(),
        ));
        if !after.is_empty() {
            text.push_str(&format!("after = [{}]\n", after.join(", ")));
        }
    }
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
