//! One side of a demo's comparison: a site, and a gateway in front of it.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use bywash_command::Failure;
use bywash_command::streams::say;
use bywash_command::{admin_client, operators};
use bywash_config::Config;
use bywash_gateway::{Gateway, Inheritance};
use bywash_load::{Options, Progress, Run};
use bywash_scenario::{RunResult, Scenario};
use bywash_units::TimeSpan;

use super::folder::{self, Folder};
use super::interactive;

/// The proxy in front of the site.
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
}

/// The site of a side.
pub(super) trait Site {
    fn address(&self) -> SocketAddr;
}

pub(super) struct Side<S> {
    pub(super) kind: ProxyKind,
    pub(super) site: S,
    gateway: Gateway,
    config: String,
}

/// The parts of the gateway's configuration that depend on the site, as TOML.
pub(super) struct SiteConfig {
    /// The keys of the table `identify`, each with the table's name.
    pub(super) identify: String,
    /// The tables of the classes.
    pub(super) classes: String,
}

impl<S: Site> Side<S> {
    /// Opens a gateway of `kind` in front of `site`, which serves the clients of `scenario`.
    pub(super) fn open(
        kind: ProxyKind,
        site: S,
        own: &SiteConfig,
        scenario: &Scenario,
        folder: &Folder,
    ) -> Result<Self, Failure> {
        let key = folder.file(KEY);
        operators::ensure(&key).map_err(Failure::running)?;
        let state = folder.folder(kind.state()).map_err(Failure::running)?;
        let listens = format!("admin = \"{}\"\noperators_key = \"{}\"", admin(kind), key.display());
        let config = config(scenario, site.address(), own, &listens, &state);
        let gateway = bywash_gateway::start(read(&config)?, Inheritance::default())
            .map_err(Failure::running)?;
        gateway.bypass(kind == ProxyKind::Plain);
        gateway.tell_decisions(|note| {
            if let Some(line) = interactive::describe(note) {
                say(format!("   {line}"));
            }
        });
        Ok(Self { kind, site, gateway, config })
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

    /// Plays the clients of `scenario` against this side.
    pub(super) fn play(
        &self,
        scenario: &Scenario,
        options: Options,
        watch: &mut dyn FnMut(&Progress),
    ) -> Result<Run, Failure> {
        let options = Options { label: self.kind.label().into(), ..options };
        bywash_load::run(scenario, &options, watch).map_err(Failure::running)
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

    /// Stops the gateway, and returns the site.
    pub(super) fn close(self) -> S {
        self.gateway.stop(GRACE);
        self.site
    }
}

/// The maximum time to wait for remaining requests after the last client has gone.
pub(super) const GRACE: TimeSpan = TimeSpan::from_secs(5);
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

/// Returns the highest offered load of the scenario.
pub(super) fn rho(scenario: &Scenario) -> f64 {
    scenario.rho.first().copied().unwrap_or(1.0)
}

/// Returns the gateway's configuration, as an operator would write it. `listens` has the keys of
/// the admin listener.
fn config(
    scenario: &Scenario,
    site: SocketAddr,
    own: &SiteConfig,
    listens: &str,
    state: &Path,
) -> String {
    let patience = scenario.client.patience.median();
    format!(
        "version = 1\nmode = \"enforce\"\n{}\nstate.directory = \"{}\"\n\
         [listen]\nhttp = \"127.0.0.1:0\"\n{listens}\n\
         [upstream]\nserver = \"http://{site}\"\nlimit = {}\n\
         [scheduler]\npolicy = \"session-first\"\npatience = \"{patience}\"\n\
         [log]\naccess = \"off\"\n{}",
        own.identify,
        state.display(),
        scenario.workers,
        own.classes,
    )
}

fn read(text: &str) -> Result<Config, Failure> {
    let read = Config::parse(text, "the demo's configuration");
    read.map(|(config, _)| config).map_err(Failure::running)
}

/// Prints the addresses of both sites, and how to watch the side behind bywash.
pub(super) fn print_addresses<S: Site>(
    [plain, bywash]: [&Side<S>; 2],
    folder: &Folder,
) -> Result<(), Failure> {
    say(format!(
        "     plain proxy  {}\n     bywash       {}\n\n   \
            Watch it in a browser:\n\n     {}\n\n   \
            or in another terminal:\n\n     {}\n",
        plain.address(),
        bywash.address(),
        bywash.console(folder)?,
        bywash.top(folder),
    ));
    Ok(())
}

/// Joins the rows of the run on each side into one result.
pub(super) fn join(scenario: &Scenario, seed: u64, runs: [(String, &Run); 2]) -> RunResult {
    let [mut result, second] = runs.map(|(label, run)| {
        let options = Options { label, ..Options::new(String::new(), rho(scenario), seed) };
        run.result(scenario, &options)
    });
    result.invalid = result.invalid.or(second.invalid);
    result.cells.extend(second.cells);
    result
}

/// Runs `other` on another thread and `own` on this one, at the same time. Returns the results of
/// both.
pub(super) fn at_once<A: Send, B>(
    other: impl FnOnce() -> Result<A, Failure> + Send,
    own: impl FnOnce() -> Result<B, Failure>,
) -> Result<(A, B), Failure> {
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        let own = own();
        let other = other.join().map_err(|_| Failure::running("a thread of load has panicked"))?;
        Ok((other?, own?))
    })
}

#[cfg(test)]
mod tests {
    use bywash_config::AdminAddress;
    use bywash_control::Overrides;
    use serde_json::Value;

    use super::super::{scenario, shop_side};
    use super::*;

    #[test]
    fn what_the_consoles_link_decides_at_the_demos_shop_is_written_down() {
        let (folder, scenario) = (Folder::new().unwrap(), scenario(interactive::CRAWLER).unwrap());
        let side = shop_side::open(ProxyKind::Bywash, &scenario, &folder).unwrap();
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
