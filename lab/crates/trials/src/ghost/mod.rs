//! Does a proxy notice that a client has left, in every way and phase in which one can leave?
//!
//! One process is the clients and the upstream, so that every interval has both its ends on one
//! clock. A *ghost* is a request that reaches the upstream although its client left while it was
//! queued. Three files, one per observable: [`queued`] (does the request arrive?), [`running`]
//! (when is the upstream connection closed?) and [`blocked`] (when does the proxy let go of a
//! connection that can show its upstream nothing: upload blocked, connect pending?).

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
use bywash_harness::peer::Kind;
use bywash_harness::proxy::{Plan, Proxy};

/// Long enough for a proxy to have dealt with what was sent before.
const MOMENT: Duration = Duration::from_millis(5);
/// A peer without a status to ask is taken to have queued a request after this time.
const QUEUEING: Duration = Duration::from_millis(20);
/// Anything that must happen has to happen within this time.
const BOUND: Duration = Duration::from_secs(2);
/// A reaction to a departure that takes longer counts as none.
const REACTION: Duration = Duration::from_millis(500);
/// A fresh request must get through this soon, or the slot was lost.
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

    /// Begins a trial with nothing remembered; its number makes its paths unique.
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

    /// True once a request is known, or for a peer taken, to be in the queue.
    fn wait_queued(&self) -> io::Result<bool> {
        match self.proxy.kind() {
            Kind::Bywash => wait_status(&self.proxy, "waiting", 1).map(|at| at.is_some()),
            Kind::Haproxy | Kind::Nginx | Kind::Envoy => {
                thread::sleep(QUEUEING);
                Ok(true)
            }
        }
    }

    /// True if a fresh request gets through: the slot has come back.
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

/// When `field` of the product's status was first seen to be `value`, if soon enough.
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
