//! Leaving while queued: the only slot is taken, the victim waits, leaves, and must never arrive.
//!
//! A FIN is sent by closing the sending half; the socket is then read to its end for at most
//! [`NOTICE`], which times how long the proxy takes to give the connection up, and only then
//! closed for good (a half-closed one stays open until the trial is over). On the wire that is
//! what `close` sends, and the reaction can be seen. After an RST there is nothing left to see.

use super::client::{self, Leave, Patience};
use super::departure::{Departure, Paths};
use super::tally::Tally;
use super::{MOMENT, TestBed};
use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// A proxy that keeps a connection longer after its client has left has not noticed.
const NOTICE: Duration = Duration::from_millis(200);
/// How long after the slot has become free a ghost is waited for.
const WATCH: Duration = Duration::from_millis(60);

/// One trial of `departure`, added to `tally`.
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

    tally.ghosts += usize::from(test_bed.origin.sees(&prefix, WATCH));
    drop(open);
    tally.lost += usize::from(!test_bed.probe(trial)?);
    tally.trials += 1;
    Ok(())
}

/// Leaves and notes how soon the proxy reacts; gives the stream back if it stays open.
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
