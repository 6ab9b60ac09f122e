//! Tests whether a proxy notices that a client has left, for every way and phase of leaving.
//!
//! One process acts as the clients and the upstream, so that the start and the end of every
//! interval are measured on the same clock. A *ghost* is a request that reaches the upstream
//! although its client left while the request was queued. There is one module per observation.
//! [`queued`] observes whether the request arrives, and [`running`] when the upstream connection is
//! closed. [`blocked`] observes when the proxy closes an upstream connection whose upstream cannot
//! see it, because an upload is blocked or a connect is pending.

pub mod blocked;
pub mod client;
pub mod departure;
pub mod origin;
pub mod queued;
pub mod running;
pub mod tally;

use client::Patience;
use origin::{Connection, Origin};
use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use bywash_harness::http;
use bywash_harness::peer::PeerKind;
use bywash_harness::proxy::{Plan, Proxy};

/// Time that a proxy gets to handle the bytes that it has received.
const MOMENT: Duration = Duration::from_millis(5);
/// Time after which a request to a peer counts as queued, because peers do not report their queue.
const QUEUEING: Duration = Duration::from_millis(20);
/// Time limit for any event that must happen.
const BOUND: Duration = Duration::from_secs(2);
/// Time limit for a reaction to a departure. A later reaction counts as missed.
const REACTION: Duration = Duration::from_millis(500);
/// Time limit for a new request after a departure. If the request takes longer, the slot of the
/// departed client was not freed.
const PROMPT: Duration = Duration::from_millis(500);

/// A proxy with one slot, and the upstream behind it.
#[derive(Debug)]
pub struct TestBed<'a> {
    proxy: Proxy,
    origin: &'a mut Origin,
    trial: usize,
}

/// A request that holds the only slot until it is answered.
#[derive(Debug)]
struct Blocker {
    client: TcpStream,
    upstream: Connection,
}

impl<'a> TestBed<'a> {
    /// Starts the proxy of `plan` in front of `origin`.
    pub fn start(plan: &Plan<'_>, origin: &'a mut Origin) -> io::Result<Self> {
        Ok(Self { proxy: plan.start()?, origin, trial: 0 })
    }

    /// Begins a trial: forgets earlier events, and returns the trial's number. The number makes the
    /// paths of the trial unique.
    fn begin(&mut self) -> usize {
        self.origin.forget();
        self.trial += 1;
        self.trial
    }

    fn occupy(&mut self, trial: usize) -> io::Result<Blocker> {
        let path = format!("/hold/{trial}/blocker");
        let client = self.proxy.connect()?;
        client::send(&client, http::get(&path).as_bytes())?;
        let upstream = self.origin.wait_arrival(&path, BOUND);
        let upstream = upstream.ok_or_else(|| io::Error::other("the slot did not become free"))?;
        Ok(Blocker { client, upstream })
    }

    fn release(&mut self, blocker: &Blocker) -> io::Result<()> {
        self.origin.answer(&blocker.upstream)?;
        match client::receive(&blocker.client, b"200 OK", BOUND)? {
            Patience::Satisfied => Ok(()),
            Patience::Ended(_) | Patience::Exhausted => {
                Err(io::Error::other("the request that held the slot got no answer"))
            }
        }
    }

    /// Waits until a request is queued. Returns false if it is not queued in time. A peer does not
    /// report its queue, so for a peer this waits for [`QUEUEING`] and returns true.
    fn wait_queued(&self) -> io::Result<bool> {
        match self.proxy.kind() {
            PeerKind::Bywash => wait_status(&self.proxy, "waiting", 1).map(|at| at.is_some()),
            PeerKind::Haproxy | PeerKind::Nginx | PeerKind::Envoy => {
                thread::sleep(QUEUEING);
                Ok(true)
            }
        }
    }

    /// Sends a new request, and returns whether it reaches the upstream in time. If it does, the
    /// slot was freed.
    fn probe(&mut self, trial: usize) -> io::Result<bool> {
        let path = format!("/probe/{trial}");
        let client = self.proxy.connect()?;
        client::send(&client, http::get(&path).as_bytes())?;
        if self.origin.wait_arrival(&path, PROMPT).is_none() {
            return Ok(false);
        }
        Ok(matches!(client::receive(&client, b"200 OK", PROMPT)?, Patience::Satisfied))
    }
}

/// Waits until `field` of bywash's status has the value `value`, and returns the time at which it
/// had; `None` if it does not within [`REACTION`].
fn wait_status(proxy: &Proxy, field: &str, value: u64) -> io::Result<Option<Instant>> {
    let start = Instant::now();
    while start.elapsed() < REACTION {
        if proxy.status(field)? == value {
            return Ok(Some(Instant::now()));
        }
        thread::sleep(Duration::from_micros(200));
    }
    Ok(None)
}
