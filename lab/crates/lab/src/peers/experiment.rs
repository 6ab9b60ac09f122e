//! One run of `lab peers`: starts a shop and a peer in front of it, simulates the visitors, and
//! stops both.
//!
//! Every run has a new shop and a new process of the peer. Otherwise the remains of a run (a queue
//! of clients that have left, a learned limit) would handicap the next run. [`Peer::BywashLearned`]
//! begins every run with the same [`LearnedState`].

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use bywash_command::Failure;
use bywash_load::{Options, Progress, Run};
use bywash_peer::{PeerKind, Running, Scratch, free_port};
use bywash_scenario::{Closes, Scenario, Tally};
use bywash_shop::{Order, Shop};
use bywash_units::TimeSpan;

use super::peer::{self, PeerSettings};
use crate::args::Peer;
use crate::live::not_begun;
use crate::shop;

/// The maximum time for which visitors continue their sessions after the last arrival.
pub(super) const DRAIN: TimeSpan = TimeSpan::from_secs(5);

/// The offered load of the learning run, as a multiple of the shop's capacity. It stands for a day
/// without overload.
const QUIET: f64 = 0.7;
/// The seed of the learning run. The seeds of the other runs begin at 1, so none has the same
/// visitors.
const LEARNING_SEED: u64 = 0;
/// The maximum time for a gateway to end once no client is left.
const STOP_BOUND: Duration = Duration::from_secs(20);

/// A folder with the state that the gateway learned in a quiet run before all others.
pub(super) struct LearnedState(Scratch);

/// The settings that are the same for every run.
#[derive(Clone, Debug)]
pub(super) struct Experiment {
    pub(super) scenario: Scenario,
    pub(super) closes: Closes,
    /// The maximum number of concurrent requests at the shop.
    pub(super) limit: u32,
    /// The maximum number of concurrent client connections.
    pub(super) connections: u64,
    /// The path of the Envoy program.
    pub(super) envoy: PathBuf,
}

/// The result of one run.
pub(super) struct PeerRun {
    pub(super) tally: Tally,
    /// The number of orders in the shop's database. If overload lasts to the end, only orders until
    /// arrivals ended count.
    pub(super) rows: u64,
    /// The reason why the result must not be used; `None` if it may.
    pub(super) invalid: Option<String>,
}

impl Experiment {
    /// Returns the path of the peer's program. Fails if it is not installed.
    pub(super) fn program(&self, peer: Peer) -> Result<PathBuf, Failure> {
        Ok(match peer.kind() {
            PeerKind::Bywash => std::env::current_exe().map_err(Failure::running)?,
            PeerKind::Haproxy => "haproxy".into(),
            PeerKind::Nginx => "nginx".into(),
            PeerKind::Envoy => self.envoy.clone(),
        })
    }

    /// Lets the peer's program check the configuration that it will get in the runs.
    pub(super) fn check(&self, peer: Peer) -> Result<(), Failure> {
        let scratch = scratch(peer)?;
        let (file, _) = self.configure(peer, &scratch, free_port().map_err(Failure::running)?)?;
        let check = peer.kind().check(&self.program(peer)?, &file);
        check.map_err(|error| Failure::configuration(format!("bywash: {peer}: {error}")))
    }

    fn configure(
        &self,
        peer: Peer,
        scratch: &Scratch,
        upstream: u16,
    ) -> Result<(PathBuf, u16), Failure> {
        let [port, admin] = [free_port(), free_port()];
        let port = port.map_err(Failure::running)?;
        let settings = PeerSettings {
            port,
            admin: admin.map_err(Failure::running)?,
            upstream,
            limit: self.limit,
            connections: self.connections,
            folder: scratch.path(),
        };
        let file = peer.configure(&self.scenario, settings);
        let wrong = |why| Failure::configuration(format!("bywash: {}: {why}", self.scenario.name));
        Ok((file.map_err(wrong)?, port))
    }

    /// Runs `peer` once, with the visitors of `seed` at the offered load `rho`.
    pub(super) fn play(
        &self,
        peer: Peer,
        rho: f64,
        seed: u64,
        learned_state: Option<&LearnedState>,
        watch: &mut dyn FnMut(&Progress),
    ) -> Result<PeerRun, Failure> {
        let scratch = scratch(peer)?;
        if let (Peer::BywashLearned, Some(learned_state)) = (peer, learned_state) {
            learned_state.copy_to(&scratch).map_err(Failure::running)?;
        }
        let database = scratch.join("shop.db");
        let shop = shop::open(&database, &self.scenario)?;
        let (mut program, port) = self.start(peer, &scratch, &shop)?;
        let begun = SystemTime::now();
        let run = self.visitors(&mut program, port, rho, seed, watch)?;
        program.end();
        let mut tally = run.tally;
        tally.worked(shop::busy(&shop));
        shop.stop();
        let orders = bywash_shop::orders(&database).map_err(Failure::running)?;
        let missing = shop::count_missing(&run.confirmed, &orders);
        let lost = (missing > 0)
            .then(|| format!("{missing} confirmed orders are missing from the shop's database"));
        let rows = self.in_time(&orders, rho, begun);
        Ok(PeerRun { tally, rows, invalid: run.invalid.or(lost) })
    }

    /// Runs the visitors of a quiet day, and returns the state that bywash learns from them.
    pub(super) fn learn(&self, watch: &mut dyn FnMut(&Progress)) -> Result<LearnedState, Failure> {
        let peer = Peer::BywashLearned;
        let scratch = Scratch::new("lesson").map_err(Failure::running)?;
        let shop = shop::open(&scratch.join("shop.db"), &self.scenario)?;
        let (mut program, port) = self.start(peer, &scratch, &shop)?;
        self.visitors(&mut program, port, QUIET, LEARNING_SEED, watch)?;
        program.stop(STOP_BOUND).map_err(Failure::running)?;
        shop.stop();
        Ok(LearnedState(scratch))
    }

    /// Sends the visitors of `seed`, at the offered load `rho`, to the program that runs at `port`.
    fn visitors(
        &self,
        program: &mut Running,
        port: u16,
        rho: f64,
        seed: u64,
        watch: &mut dyn FnMut(&Progress),
    ) -> Result<Run, Failure> {
        let options = Options {
            drain: DRAIN,
            closes: self.closes,
            tag: Some("peers".into()),
            ..Options::new(format!("http://127.0.0.1:{port}"), rho, seed)
        };
        let run = bywash_load::run(&self.scenario, &options, watch);
        let run = run.map_err(|error| not_begun(&error))?;
        if !program.runs() {
            return Err(Failure::running(program.complaint("ended during the run")));
        }
        Ok(run)
    }

    fn start(&self, peer: Peer, scratch: &Scratch, shop: &Shop) -> Result<(Running, u16), Failure> {
        let (file, port) = self.configure(peer, scratch, shop.address().port())?;
        let mut command = Command::new(self.program(peer)?);
        command.args(peer.arguments(&file));
        let program = Running::start(peer.name(), command, &scratch.join("log"), None);
        let mut program = program.map_err(Failure::running)?;
        program.wait_port(port).map_err(Failure::running)?;
        Ok((program, port))
    }

    /// Returns the number of orders that count. If overload lasts to the end, only orders placed
    /// while visitors arrived count, as for every other figure. A peer that makes clients wait must
    /// not profit from orders that they place after arrivals have ended.
    fn in_time(&self, orders: &[Order], rho: f64, begun: SystemTime) -> u64 {
        let duration = self.scenario.duration(rho);
        let end = bywash_units::Time::ZERO + duration - TimeSpan::from_millis(1);
        if self.scenario.profile.rho_at(rho, end) < 1.0 {
            return orders.len() as u64;
        }
        let begun = begun.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
        let last = begun + (duration.as_secs_f64() * 1e3) as i64;
        orders.iter().filter(|order| order.at_ms <= last).count() as u64
    }
}

impl LearnedState {
    /// Copies the learned state into `scratch`, to the path at which the peer that runs there looks
    /// for it.
    fn copy_to(&self, scratch: &Scratch) -> io::Result<()> {
        let [from, to] = [&self.0, scratch].map(|folder| peer::state(folder.path()));
        fs::create_dir_all(&to)?;
        for file in fs::read_dir(from)? {
            let file = file?;
            fs::copy(file.path(), to.join(file.file_name()))?;
        }
        Ok(())
    }
}

fn scratch(peer: Peer) -> Result<Scratch, Failure> {
    Scratch::new(peer.name()).map_err(Failure::running)
}
