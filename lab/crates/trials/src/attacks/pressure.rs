//! Attacks on the slots: measures how much useful work visitors get during slow uploads, slow
//! reads, and one connection that holds all slots.
//!
//! Visitors are simulated by two open loops that together use half of the application's capacity:
//! 100 requests/s from 500 addresses, and 100 requests/s from an office of 500 connections behind
//! one address. The results before the attack and during it are compared in the same run.

use super::attacker::{SLOW, Script, Scripted};
use super::honest::{self, Edge, VISITORS};
use super::pool::{Attack, Open, Pool};
use super::streams::{Slow, Streams};
use super::texts::Ports;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bywash_harness::open_loop::{self, Answer, Load, Phase, Reuse};
use bywash_harness::tls;

/// Service time of a request in the application. With it, 16 workers handle 400 requests per
/// second.
pub(super) const SERVICE: Duration = Duration::from_millis(40);
const RATE: f64 = 100.0;
/// Time after which an answer is useless to a visitor.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// Time at the start of the run that is not counted.
const UNCOUNTED: Duration = Duration::from_secs(1);
/// Time from the start of the run until the attack begins.
const ALONE: Duration = Duration::from_secs(3);
/// Minimum fraction of visitors' requests served before the attack. With fewer, the machine is too
/// busy to measure.
const CALM: f64 = 0.9;
/// Time to open all connections of an attack, at a rate of at most 5,000 per second.
pub(super) const OPENING: Duration = Duration::from_secs(2);

/// A kind of slow HTTP/1.1 client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    /// Sends a body slowly.
    Upload,
    /// Sends 300 KB of a body at once and the rest slowly.
    UploadRest,
    /// Reads an answer slowly.
    Read,
}

/// An attack on the slots.
#[derive(Debug, Clone, Copy)]
pub(super) enum Slots {
    /// No attack, as the control.
    Nobody,
    /// Slow HTTP/1.1 connections.
    Http1 {
        /// The behaviour of each connection.
        client: Client,
        /// Whether the connections use TLS.
        tls: bool,
        /// Number of concurrent hostile connections.
        connections: usize,
        /// Number of source addresses that the connections come from.
        addresses: usize,
    },
    /// One slow HTTP/2 connection with many streams.
    Http2 {
        /// The action of each stream in a period.
        slow: Slow,
        /// Number of concurrent streams.
        streams: usize,
        /// Interval at which the streams act.
        period: Duration,
    },
}

impl Slots {
    /// Returns the hostile connections to the program at `ports`; `None` for [`Self::Nobody`].
    fn attack(self, ports: Ports) -> io::Result<Option<Attack>> {
        let second = Duration::from_secs(1);
        Ok(match self {
            Self::Nobody => None,
            Self::Http1 { client, tls, connections, addresses } => {
                let script = match client {
                    Client::Upload => Script::slow_upload(),
                    Client::UploadRest => Script::slow_rest_of_upload(),
                    Client::Read => Script::slow_read(),
                };
                let open = open_http1(Arc::new(script), ports, tls)?;
                Some(Attack { connections, addresses, period: second, opening: OPENING, open })
            }
            Self::Http2 { slow, streams, period } => {
                let open: Open = Arc::new(move |_, source| {
                    Ok(Box::new(Streams::open(source, ports.h2c, slow, streams)?))
                });
                let (connections, addresses) = (1, 1);
                Some(Attack { connections, addresses, period, opening: second, open })
            }
        })
    }

    /// Returns an attack with one HTTP/2 connection of 100 streams, each of which sends 700 B/s.
    pub(super) fn uploading_streams() -> Self {
        Self::Http2 { slow: Slow::Upload(SLOW), streams: 100, period: Duration::from_secs(1) }
    }

    /// Returns an attack with one HTTP/2 connection of 60 streams, whose flow-control windows each
    /// open by 700 B/s.
    pub(super) fn reading_streams() -> Self {
        Self::Http2 { slow: Slow::Read(SLOW), streams: 60, period: Duration::from_secs(1) }
    }

    /// Returns an attack with one HTTP/2 connection of 24 streams, each of which sends 60 bytes
    /// every 0.1 s.
    pub(super) fn one_connection() -> Self {
        Self::Http2 { slow: Slow::Upload(60), streams: 24, period: Duration::from_millis(100) }
    }
}

fn open_http1(script: Arc<Script>, ports: Ports, tls: bool) -> io::Result<Open> {
    if !tls {
        return Ok(Arc::new(move |_, source| {
            Ok(Box::new(Scripted::open(source, ports.http, &script)?))
        }));
    }
    let client = tls::Client::new()?;
    Ok(Arc::new(move |_, source| {
        Ok(Box::new(Scripted::open_tls(source, ports.https, &script, &client)?))
    }))
}

/// Attacks the program at `ports` for `length`, and returns four figures of the time under attack:
///
/// 1. the useful work of visitors, divided by their useful work before the attack;
/// 2. 1 if an honest upload was served, otherwise 0;
/// 3. 1 if an honest slow reader was served, otherwise 0;
/// 4. the fraction of the requests of an office (many clients behind one address) that were served.
pub(super) fn measure(ports: Ports, slots: Slots, length: Duration) -> io::Result<Vec<f64>> {
    let (port, whole) = (ports.http, ALONE + OPENING + length);
    let visitors = visitors(port, whole).start();
    let office = honest::office(port, RATE, whole, PATIENCE).start();
    visitors.wait_until(ALONE);
    let pool = slots.attack(ports)?.map(|attack| Pool::start(&attack));
    visitors.wait_until(ALONE + OPENING);
    let edge = Edge::start(port, length);
    visitors.wait_until(whole);
    let open = pool.as_ref().map_or(Ok(0), Pool::open)?;
    let [upload, read] = edge.finish();
    let (visitors, office) = (visitors.finish()?, office.finish()?);
    drop(pool);
    let attacked = (ALONE + OPENING)..whole;
    let during = |answers: &[Answer]| open_loop::within(answers, attacked.start, attacked.end);
    eprintln!(
        "  {open} hostile connections open at the end; visitors {}; their load {} ms late",
        open_loop::show_ends(&during(&visitors)),
        open_loop::show_late_ms(&during(&visitors)),
    );
    let alone = open_loop::goodput(&open_loop::within(&visitors, UNCOUNTED, ALONE));
    let alone = alone.filter(|&alone| alone >= CALM).ok_or_else(|| {
        io::Error::other(
            "visitors were not served well before the attack, so there is nothing to compare with",
        )
    })?;
    let share = |answers: &[Answer]| open_loop::goodput(&during(answers)).unwrap_or(0.0);
    let useful = share(&visitors) / alone;
    let served = |is_served: bool| if is_served { 1.0 } else { 0.0 };
    Ok(vec![useful, served(upload), served(read), share(&office)])
}

/// Returns the load of visitors from 500 addresses, half of whose requests use new connections.
pub(super) fn visitors(port: u16, length: Duration) -> Load {
    let phases = vec![Phase::new(RATE, length)];
    Load { port, phases, patience: PATIENCE, reuse: Reuse::Half, sources: VISITORS }
}

#[cfg(test)]
mod tests {
    use super::super::origin::Origin;
    use super::super::texts::SLOTS;
    use super::*;

    /// Each upload holds one worker of the application if there is no proxy.
    #[test]
    fn visitors_lose_their_work_to_uploads_that_hold_every_worker() {
        let origin = Origin::start(Duration::from_millis(5), 200).unwrap();
        let port = origin.port();
        let ports = Ports { http: port, h2c: port, https: port, admin: port };
        let client = Client::Upload;
        let attack = Slots::Http1 { client, tls: false, connections: SLOTS, addresses: 2 };
        let shares = measure(ports, attack, Duration::from_secs(2)).unwrap();
        assert!(shares[0] < 0.5 && shares[1..] == [0.0, 0.0, shares[3]], "{shares:?}");
    }
}
