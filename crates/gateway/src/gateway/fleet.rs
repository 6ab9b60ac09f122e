//! The thread that takes part in a fleet of gateways.

use std::io;
use std::sync::Arc;

use bywash_config::Fleet;
use bywash_control::Note;
use bywash_engine::Offered;
use bywash_fleet::Holding;
use bywash_fleet_nats::{Gateway, Start};
use bywash_units::Time;
use tokio::sync::watch;

use crate::error::GatewayError;
use crate::process::lifecycle::Lifecycle;
use crate::process::{boot_clock, wall_clock};
use crate::shared::Shared;
use crate::{admin, decisions};

/// Listens on the address that shows to the fleet that this process lives.
pub(super) fn show_life(fleet: &Fleet) -> Result<(), GatewayError> {
    bywash_fleet_nats::show_life(fleet).map_err(|source| GatewayError::Listen {
        what: "fleet.liveness",
        address: fleet.own_liveness().map(|address| address.to_string()).unwrap_or_default(),
        source,
    })
}

/// The part of the gateway that its fleet needs.
struct Member(Arc<Shared>);

impl Gateway for Member {
    fn now(&self) -> Time {
        boot_clock::now()
    }

    fn limit(&self) -> u32 {
        self.0.settings().config.engine.limit.start()
    }

    fn offered(&self) -> Offered {
        self.0.driver.offered()
    }

    fn running(&self) -> u32 {
        self.0.driver.running()
    }

    fn hold(&self, holding: Holding) {
        self.0.driver.hold(holding);
    }

    fn clock(&self) -> u64 {
        wall_clock::unix_ms()
    }

    fn settings(&self) -> String {
        self.0.settings().for_fleet()
    }

    fn decisions(&self) -> String {
        self.0.audit.notes().fleet.summary(wall_clock::now())
    }

    fn known_decisions(&self) -> Vec<Note> {
        self.0.audit.notes().fleet.known(wall_clock::now())
    }

    fn take_unsent_decisions(&self) -> Vec<Note> {
        self.0.audit.notes().fleet.take_unsent()
    }

    fn document(&self, path: &str) -> Option<String> {
        admin::fleet::text(&self.0, path)
    }

    fn follow(&self, decision: Note) {
        decisions::fleet::follow(&self.0, decision);
    }
}

/// Takes part in `fleet` until the gateway drains.
///
/// A gateway that drains keeps its own share for the requests that still wait, or less if it has
/// lent slots. It reports no more, so that a new program with its name can report.
pub(super) fn run(
    shared: &Arc<Shared>,
    fleet: Fleet,
    mut lifecycle: watch::Receiver<Lifecycle>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let gateway = Member(Arc::clone(shared));
    let start = Start { fleet, gateway, board: shared.fleet.clone() };
    // Before that, an earlier process may still decide, and its decisions are not read yet. An error
    // means that the gateway has ended.
    let runs = lifecycle.wait_for(|lifecycle| *lifecycle >= Lifecycle::Runs);
    let _ = runtime.block_on(runs);
    let end = async move {
        let _ = lifecycle.wait_for(|lifecycle| *lifecycle >= Lifecycle::Drains).await;
    };
    let done = runtime.block_on(bywash_fleet_nats::run(start, end));
    // A name look-up without an answer must not delay the end of the gateway.
    runtime.shutdown_background();
    let slots = shared.driver.status().limit.min(shared.fleet.status().share).max(1);
    shared.driver.hold(Holding { slots, until: None, then: slots });
    done
}
