//! Clients that leave while their request runs. The proxy must close the upstream connection at
//! once, and free the slot.
//!
//! The upstream either holds its answer back or has sent the beginning of it. The measured time
//! begins just before the client closes its connection. It ends when the upstream's `read` returns
//! the end or the reset of the upstream connection.

use super::client::{self, Leave, Patience};
use super::departure::{Departure, Paths};
use super::origin::{Origin, STREAMED};
use super::tally::Tally;
use super::{BOUND, MOMENT, REACTION, TestBed};
use std::io;
use std::net::TcpStream;
use std::thread;

use bywash_harness::http;

/// The part of its response that the upstream has sent when the client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upstream {
    /// The upstream has received the request and has sent nothing.
    Silent,
    /// The upstream has sent the head and part of the body of its response.
    Streaming,
}

/// Runs one trial of `departure` and adds the result to `tally`.
pub fn trial(
    test_bed: &mut TestBed<'_>,
    upstream: Upstream,
    departure: &Departure,
    tally: &mut Tally,
) -> io::Result<()> {
    let trial = test_bed.begin();
    let doing = if upstream == Upstream::Silent { "hold" } else { "stream" };
    let paths = Paths { first: format!("/{doing}/{trial}"), second: format!("/victim/{trial}/2") };
    let script = (departure.script)(&paths);

    let victim = test_bed.proxy.connect()?;
    client::send(&victim, &script.first)?;
    let arrived = test_bed.origin.wait_arrival(&paths.first, BOUND);
    let connection = arrived.ok_or_else(|| io::Error::other("the request did not arrive"))?;
    client::send(&victim, &script.later)?;
    if upstream == Upstream::Streaming {
        wait_streamed(&victim)?;
    }
    thread::sleep(MOMENT);

    let (left, open) = client::leave(victim, departure.leave)?;
    let ended = test_bed.origin.wait_end(connection, REACTION);
    tally.reaction(left, ended);
    if ended.is_none() {
        test_bed.origin.close(connection);
    }
    tally.lost += usize::from(!test_bed.probe(trial)?);
    // The new request has passed through the only slot, so the pipelined request would already have
    // arrived before it.
    tally.ghosts += usize::from(test_bed.origin.wait_request(&paths.second, MOMENT));
    drop(open);
    tally.trials += 1;
    Ok(())
}

/// Runs the trials without a proxy, and returns their tally. Its times are the delay that the
/// harness and the machine's scheduler add.
pub fn floor(origin: &mut Origin, trials: usize) -> io::Result<Tally> {
    let mut tally = Tally::new("no proxy", "GET, FIN");
    for trial in 0..trials {
        origin.forget();
        let path = format!("/hold/{trial}");
        let client = TcpStream::connect(origin.address())?;
        client::send(&client, http::get(&path).as_bytes())?;
        let arrived = origin.wait_arrival(&path, BOUND);
        let connection =
            arrived.ok_or_else(|| io::Error::other("the request did not reach the upstream"))?;
        thread::sleep(MOMENT);
        let (left, _) = client::leave(client, Leave::Fin)?;
        tally.reaction(left, origin.wait_end(connection, REACTION));
        tally.trials += 1;
    }
    Ok(tally)
}

fn wait_streamed(victim: &TcpStream) -> io::Result<()> {
    match client::receive(victim, STREAMED, BOUND)? {
        Patience::Satisfied => Ok(()),
        Patience::Ended(_) | Patience::Exhausted => {
            Err(io::Error::other("the beginning of the response did not arrive"))
        }
    }
}
