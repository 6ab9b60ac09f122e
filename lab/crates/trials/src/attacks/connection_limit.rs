//! An attack on the connection limit: idle connections use up all connections that a program
//! accepts, while new clients arrive.

use super::attacker::{Script, Scripted};
use super::honest::VISITORS;
use super::pool::{Attack, Open, Pool};
use super::pressure::{OPENING, PATIENCE};
use super::target::Target;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bywash_harness::open_loop::{self, Load, Phase, Reuse};
use bywash_harness::peer::PeerKind;

/// Maximum number of client connections that each program accepts.
pub(super) const CONNECTION_LIMIT: u32 = 1000;
const RATE: f64 = 100.0;
/// Time in which 200 new clients arrive, evenly spaced.
const COMING: Duration = Duration::from_secs(2);

/// Opens as many connections to `target` as it accepts, from `addresses` addresses. Returns the
/// fraction of 200 new clients that were served.
pub(super) fn measure(target: &Target, addresses: usize) -> io::Result<Vec<f64>> {
    let (script, port) = (Arc::new(Script::idle()), target.ports().http);
    let open: Open =
        Arc::new(move |_, source| Ok(Box::new(Scripted::open(source, port, &script)?)));
    // nginx counts both sides of a proxied request, so it accepts twice as many idle connections.
    let sides = if target.kind() == PeerKind::Nginx { 2 } else { 1 };
    let attack = Attack {
        connections: CONNECTION_LIMIT as usize * sides,
        addresses,
        period: Duration::from_secs(1),
        opening: OPENING,
        open,
    };
    let pool = Pool::start(&attack);
    // Wait until all connections are open and have been answered once.
    thread::sleep(OPENING * 2);
    let phases = vec![Phase::new(RATE, COMING)];
    let load = Load { port, phases, patience: PATIENCE, reuse: Reuse::Never, sources: VISITORS };
    let answers = load.start().finish()?;
    eprintln!("  {} idle connections; newcomers {}", pool.open()?, open_loop::show_ends(&answers));
    Ok(vec![open_loop::goodput(&answers).unwrap_or(0.0)])
}
