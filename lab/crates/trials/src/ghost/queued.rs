//! Clients that leave while their request is queued. Another request holds the only slot. The
//! request of a client, the victim, waits, and the victim leaves. The victim's request must never
//! reach the upstream.
//!
//! The victim sends a FIN by shutting down its sending side. It then reads the socket to its end
//! for at most `NOTICE`, which measures how long the proxy takes to close the connection. Only then
//! is the socket closed, and in a trial of a half-close, only at the end of the trial. The network
//! sees the same packets as with `close`, but the proxy's reaction can be measured. After an RST no
//! reaction can be measured.

use super::client::{self, Leave, Patience};
use super::departure::{Departure, Paths};
use super::tally::Tally;
use super::{MOMENT, TestBed};
use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// Time limit for the proxy to close a connection whose client has left.
const NOTICE: Duration = Duration::from_millis(200);
/// Time to wait for the victim's request at the upstream after the slot has become free.
const WATCH: Duration = Duration::from_millis(60);

/// Runs one trial of `departure` and adds the result to `tally`.
pub fn trial(
    test_bed: &mut TestBed<'_>,
    departure: &Departure,
    tally: &mut Tally,
) -> io::Result<()> {
    let trial = test_bed.begin();
    let prefix = format!("/victim/{trial}/");
    let paths = Paths { first: format!("{prefix}1"), second: format!("{prefix}2") };
    let script = (departure.script)(&paths);

    let blocker = test_bed.occupy(trial)?;
    let victim = test_bed.proxy.connect()?;
    client::send(&victim, &script.first)?;
    tally.unqueued += usize::from(!test_bed.wait_queued()?);
    if !script.later.is_empty() {
        client::send(&victim, &script.later)?;
        thread::sleep(MOMENT);
    }
    let open = leave(victim, departure.leave, tally)?;
    thread::sleep(MOMENT);
    test_bed.release(&blocker)?;

    tally.ghosts += usize::from(test_bed.origin.wait_request(&prefix, WATCH));
    drop(open);
    tally.lost += usize::from(!test_bed.probe(trial)?);
    tally.trials += 1;
    Ok(())
}

/// Lets the client `victim` leave in the way `how`, and records how soon the proxy reacts. Returns
/// the client's stream if it stays open.
fn leave(victim: TcpStream, how: Leave, tally: &mut Tally) -> io::Result<Option<TcpStream>> {
    let on_wire = if how == Leave::Fin { Leave::HalfClose } else { how };
    let (left, open) = client::leave(victim, on_wire)?;
    if let (Leave::Fin | Leave::HalfClose, Some(open)) = (how, &open) {
        match client::receive(open, b"", NOTICE)? {
            Patience::Ended(at) => tally.noticed(at - left),
            Patience::Satisfied | Patience::Exhausted => tally.missed += 1,
        }
    }
    Ok(open.filter(|_| how != Leave::Fin))
}
