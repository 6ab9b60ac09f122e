//! One peer in front of one shop: opened, played against, closed.
//!
//! A shop is new for every run and so is the peer's process: what one run leaves behind (a queue of
//! the departed, a learned limit) would be the next one's handicap.

use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use bywash_load::{Options, Progress};
use bywash_peer::{Kind, Running, Scratch, free_port};
use bywash_scenario::{Closes, Scenario, Tally};
use bywash_shop::{Order, Shop};
use bywash_units::Span;

use super::peer::{Peer, Place};
use crate::failure::Failure;
use crate::lab::live::not_begun;
use crate::lab::shop;

/// How long visitors may go on after the last arrival.
pub(super) const DRAIN: Span = Span::from_secs(5);

/// What is the same for every run.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) scenario: Scenario,
    pub(super) closes: Closes,
    /// Requests at the shop at once.
    pub(super) limit: u32,
    /// Clients at once.
    pub(super) connections: u64,
    /// The Envoy program.
    pub(super) envoy: PathBuf,
}

/// What became of the visitors of one run.
pub(super) struct Played {
    pub(super) tally: Tally,
    /// Orders in the shop's database; under lasting overload, until arrivals ended.
    pub(super) rows: u64,
    /// Why it must not be used, if so.
    pub(super) invalid: Option<String>,
}

impl Setting {
    /// The program that a peer is.
    pub(super) fn program(&self, peer: Peer) -> Result<PathBuf, Failure> {
        Ok(match peer.kind() {
            Kind::Bywash => std::env::current_exe().map_err(Failure::running)?,
            Kind::Haproxy => "haproxy".into(),
            Kind::Nginx => "nginx".into(),
            Kind::Envoy => self.envoy.clone(),
        })
    }

    /// Has the peer's program check the configuration that it is to get.
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
        let place = Place {
            port,
            admin: admin.map_err(Failure::running)?,
            upstream,
            limit: self.limit,
            connections: self.connections,
            folder: scratch.path(),
        };
        let file = peer.configure(&self.scenario, place);
        let wrong = |why| Failure::configuration(format!("bywash: {}: {why}", self.scenario.name));
        Ok((file.map_err(wrong)?, port))
    }

    /// One run: the visitors of `seed` at `rho`.
    pub(super) fn play(
        &self,
        peer: Peer,
        rho: f64,
        seed: u64,
        watch: &mut dyn FnMut(&Progress),
    ) -> Result<Played, Failure> {
        let scratch = scratch(peer)?;
        let database = scratch.join("shop.db");
        let shop = shop::open(&database, &self.scenario)?;
        let (mut program, port) = self.start(peer, &scratch, &shop)?;
        let options = Options {
            drain: DRAIN,
            closes: self.closes,
            tag: Some("peers".into()),
            ..Options::new(format!("http://127.0.0.1:{port}"), rho, seed)
        };
        let begun = SystemTime::now();
        let run = bywash_load::run(&self.scenario, &options, watch);
        let run = run.map_err(|error| not_begun(&error))?;
        if !program.runs() {
            return Err(Failure::running(program.complaint("has ended in mid-run")));
        }
        program.end();
        let mut tally = run.tally;
        tally.worked(shop::busy(&shop));
        shop.stop();
        let orders = bywash_shop::orders(&database).map_err(Failure::running)?;
        let missing = shop::without_a_row(&run.confirmed, &orders);
        let lost = (missing > 0).then(|| format!("{missing} confirmed orders are in no database"));
        let rows = self.in_time(&orders, rho, begun);
        Ok(Played { tally, rows, invalid: run.invalid.or(lost) })
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

    /// Orders that count: where overload lasts to the end, those placed while visitors came, as for
    /// every other figure. Who has made people wait must not sell to them when nobody else comes.
    fn in_time(&self, orders: &[Order], rho: f64, begun: SystemTime) -> u64 {
        let duration = self.scenario.duration(rho);
        let end = bywash_units::Time::ZERO + duration - Span::from_millis(1);
        if self.scenario.profile.rho_at(rho, end) < 1.0 {
            return orders.len() as u64;
        }
        let begun = begun.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
        let last = begun + (duration.as_secs_f64() * 1e3) as i64;
        orders.iter().filter(|order| order.at_ms <= last).count() as u64
    }
}

fn scratch(peer: Peer) -> Result<Scratch, Failure> {
    Scratch::new(peer.name()).map_err(Failure::running)
}
