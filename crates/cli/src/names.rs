//! Warns about server names that do not resolve. The gateway starts nevertheless, and resolves the
//! names again later. A name may be wrong, or it may be unknown only on the machine where `bywash
//! check` runs.

use std::net::ToSocketAddrs;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bywash_config::{Config, Endpoint};

/// The maximum time to resolve all names together.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns a sentence for each server whose name does not resolve within [`PATIENCE`].
pub(crate) fn unresolved(config: &Config) -> Vec<String> {
    let (sender, found) = mpsc::channel();
    let mut left: Vec<(usize, String)> = Vec::new();
    for (number, server) in config.upstream.servers.iter().enumerate() {
        let Endpoint::Tcp { host, port } = &server.endpoint else { continue };
        let (sender, host, port) = (sender.clone(), host.clone(), *port);
        left.push((number, format!("the name of the server {server} does not resolve")));
        // A name server that does not respond blocks this thread and no others.
        std::thread::spawn(move || {
            let looked_up = (host.as_str(), port).to_socket_addrs();
            let _ = sender.send((number, looked_up.map(|mut all| all.next().is_some())));
        });
    }
    let end = Instant::now() + PATIENCE;
    let mut unresolved = Vec::new();
    while !left.is_empty() {
        let limit = end.saturating_duration_since(Instant::now());
        let Ok((number, result)) = found.recv_timeout(limit) else { break };
        let index = left.iter().position(|(other, _)| *other == number).expect("each sends once");
        let (_, sentence) = left.swap_remove(index);
        match result {
            Ok(true) => {}
            Ok(false) => unresolved.push(format!("{sentence}: it has no address")),
            Err(error) => unresolved.push(format!("{sentence}: {error}")),
        }
    }
    unresolved
        .extend(left.into_iter().map(|(_, sentence)| format!("{sentence} within {PATIENCE:?}")));
    unresolved.sort_unstable();
    unresolved
}
