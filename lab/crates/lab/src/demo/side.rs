//! One side of the demo's comparison: a shop, a gateway in front of it, and the outcome for its
//! visitors.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bywash_command::Failure;
use bywash_command::streams::say;
use bywash_command::{admin_client, operators};
use bywash_config::Config;
use bywash_gateway::{Gateway, Inheritance};
use bywash_load::{Options, Run};
use bywash_scenario::{RunResult, Scenario};
use bywash_shop::{Order, Shop};
use bywash_units::TimeSpan;

use super::folder::{self, Folder};
use super::interactive;
use super::screen::Screen;
use crate::{classes, shop};

/// The proxy in front of the shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProxyKind {
    /// bywash with all its decisions switched off, so that it passes on all requests.
    Plain,
    /// bywash with all its decisions switched on.
    Bywash,
}

impl ProxyKind {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Plain => "plain proxy",
            Self::Bywash => "bywash",
        }
    }

    /// Returns the name of the state directory of the gateway.
    const fn state(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Bywash => folder::STATE,
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
    kind: ProxyKind,
    shop: Shop,
    gateway: Gateway,
    database: PathBuf,
    config: String,
}

/// The result of a run on one side of the comparison.
pub(super) struct Outcome {
    pub(super) kind: ProxyKind,
    pub(super) run: Run,
    /// The orders that the shop's database has after the run.
    pub(super) orders: Vec<Order>,
}

impl Outcome {
    fn of(kind: ProxyKind, mut run: Run, shop: &Shop, database: &Path) -> Result<Self, Failure> {
        run.tally.worked(shop::busy(shop));
        let orders = bywash_shop::orders(database).map_err(Failure::running)?;
        Ok(Self { kind, run, orders })
    }

    /// Returns the number of orders that visitors saw confirmed although the database does not have
    /// them.
    pub(super) fn count_missing(&self) -> usize {
        shop::count_missing(&self.run.confirmed, &self.orders)
    }
}

impl Side {
    /// Opens a shop with an empty database in `folder`, and a gateway of `kind` in front of the
    /// shop.
    pub(super) fn open(
        kind: ProxyKind,
        scenario: &Scenario,
        folder: &Folder,
    ) -> Result<Self, Failure> {
        let database = folder.file(kind.file());
        let shop = shop::open(&database, scenario)?;
        let key = folder.file(KEY);
        operators::ensure(&key).map_err(Failure::running)?;
        let state = folder.folder(kind.state()).map_err(Failure::running)?;
        let config = config(scenario, &shop, &admin(kind), &key, &state);
        let gateway = bywash_gateway::start(read(&config)?, Inheritance::default())
            .map_err(Failure::running)?;
        gateway.bypass(kind == ProxyKind::Plain);
        gateway.tell_decisions(|note| {
            if let Some(line) = interactive::describe(note) {
                say(format!("   {line}"));
            }
        });
        Ok(Self { kind, shop, gateway, database, config })
    }

    pub(super) fn address(&self) -> String {
        format!("http://{}", self.gateway.http())
    }

    /// Returns a link to the gateway's console, with a token, for the user who watches the demo.
    pub(super) fn console(&self, folder: &Folder) -> Result<String, Failure> {
        let key = folder.file(KEY);
        let key =
            operators::key(Some(&key))?.ok_or_else(|| Failure::running(admin_client::NO_KEY))?;
        let token = key.token(&operators::user(), true, TOKEN)?;
        Ok(format!("http://{}/#/login/{token}", self.gateway.admin()))
    }

    /// Returns the command that shows the gateway's state in a terminal (`bywash top`).
    pub(super) fn top(&self, folder: &Folder) -> String {
        let program = std::env::current_exe()
            .map_or_else(|_| "bywash".into(), |path| path.display().to_string());
        format!(
            "{program} top --admin {} --key {}",
            self.gateway.admin(),
            folder.file(KEY).display()
        )
    }

    /// Plays the visitors of the crowd against this side.
    pub(super) fn play(
        &self,
        scenario: &Scenario,
        seed: u64,
        screen: &Screen,
    ) -> Result<Run, Failure> {
        let options = Options {
            label: self.kind.label().into(),
            tag: Some("demo".into()),
            ..self.options(rho(scenario), seed)
        };
        let run = bywash_load::run(scenario, &options, &mut |p| screen.show(self.kind, p));
        run.map_err(Failure::running)
    }

    /// Reloads the gateway with the search for elephants switched on. The gateway measures the
    /// slots that requests hold. CPU use would reveal nothing, because the shop only waits instead
    /// of computing.
    pub(super) fn looks_for_elephants(&self) -> Result<(), Failure> {
        let config = format!("{}[resource.workers]\nread = \"gateway/slots\"\n", self.config);
        self.gateway.reload(read(&config)?).map_err(Failure::running)
    }

    /// Returns the options of the load generator for this side. Each visitor has an address of its
    /// own.
    pub(super) fn options(&self, rho: f64, seed: u64) -> Options {
        Options { own_addresses: true, ..Options::new(self.address(), rho, seed) }
    }

    /// Stops the gateway and the shop, and returns the outcome of `run`.
    pub(super) fn close(self, run: Run) -> Result<Outcome, Failure> {
        let Self { kind, shop, gateway, database, .. } = self;
        gateway.stop(GRACE);
        Outcome::of(kind, run, &shop, &database)
    }

    /// Waits at most [`GRACE`] until the shop is idle, and returns the outcome of `run`. The
    /// gateway and the shop keep running.
    pub(super) fn settle(&self, run: Run) -> Result<Outcome, Failure> {
        let end = Instant::now() + GRACE.to_std();
        let is_busy = || {
            let stats = self.shop.stats();
            stats.running + stats.queue_length > 0
        };
        while is_busy() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        Outcome::of(self.kind, run, &self.shop, &self.database)
    }
}

/// The maximum time to wait for remaining requests after the last visitor has gone.
const GRACE: TimeSpan = TimeSpan::from_secs(5);
/// The file name of the operators' key in the demo's folder.
const KEY: &str = "operators.key";
/// The validity of the token in the console's link: longer than a demo.
const TOKEN: Duration = Duration::from_secs(3600);
/// The default address of bywash's admin listener.
const USUAL: &str = "127.0.0.1:7070";

/// Returns the address of the admin listener of a side. The side with bywash's decisions gets the
/// default address if it is free. In all other cases, any free port of loopback is used.
fn admin(kind: ProxyKind) -> String {
    let is_free = kind == ProxyKind::Bywash && TcpListener::bind(USUAL).is_ok();
    if is_free { USUAL.into() } else { "127.0.0.1:0".into() }
}

/// Returns the offered load that the scenario's crowd reaches.
pub(super) fn rho(scenario: &Scenario) -> f64 {
    scenario.rho.first().copied().unwrap_or(1.0)
}

/// Returns the gateway's configuration, as an operator would write it.
fn config(scenario: &Scenario, shop: &Shop, admin: &str, key: &Path, state: &Path) -> String {
    let patience = scenario.client.patience.median();
    let mut text = format!(
        "version = 1\nmode = \"enforce\"\nidentify.session = \"cookie:sid\"\nstate.directory = \"{}\"\n\
         [listen]\nhttp = \"127.0.0.1:0\"\nadmin = \"{admin}\"\noperators_key = \"{}\"\n\
         [upstream]\nserver = \"http://{}\"\nlimit = {}\n\
         [scheduler]\npolicy = \"session-first\"\npatience = \"{patience}\"\n\
         [log]\naccess = \"off\"\n",
        state.display(),
        key.display(),
        shop.address(),
        scenario.workers,
    );
    text.push_str(&classes::toml(scenario));
    text
}

fn read(text: &str) -> Result<Config, Failure> {
    let read = Config::parse(text, "the demo's configuration");
    read.map(|(config, _)| config).map_err(Failure::running)
}

/// Joins the rows of both sides into one result.
pub(super) fn join(scenario: &Scenario, seed: u64, plain: &Outcome, bywash: &Outcome) -> RunResult {
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

#[cfg(test)]
mod tests {
    use bywash_config::AdminAddress;
    use bywash_control::Overrides;
    use serde_json::Value;

    use super::super::{interactive, scenario};
    use super::*;

    #[test]
    fn what_the_consoles_link_decides_at_the_demos_shop_is_written_down() {
        let (folder, scenario) = (Folder::new().unwrap(), scenario(interactive::CRAWLER).unwrap());
        let side = Side::open(ProxyKind::Bywash, &scenario, &folder).unwrap();
        let link = side.console(&folder).unwrap();
        let (address, token) = link.split_once("/#/login/").unwrap();
        let address = address.strip_prefix("http://").unwrap().parse().unwrap();
        let (admin, token) = (AdminAddress::Tcp(address), Some(token.to_owned()));
        let decision = serde_json::json!({ "on": true, "why": "so" });
        admin_client::post_with::<Value>(&admin, token, "/v1/bypass", &decision).unwrap();
        let kept = bywash_handover::load(&folder.file(folder::STATE), "overrides", 1 << 20);
        let kept = String::from_utf8(kept.unwrap().expect("it is there")).unwrap();
        assert!(Overrides::read(&kept).unwrap().bypasses());
    }
}
