//! Carries a connection that has switched to another protocol: passes bytes both ways without
//! interpreting them.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use super::Conn;
use crate::io::wire::Wire;
use crate::request::reply::Tunnel;

impl Conn {
    /// Passes bytes both ways until one side has ended and its last bytes are passed on. Returns an
    /// error if one side fails.
    pub(super) async fn tunnel(&self, mut tunnel: Tunnel) -> io::Result<()> {
        let (mut up, mut down) = (Flow::Open, Flow::Open);
        poll_fn(|cx| {
            let mut wire = self.wire.borrow_mut();
            let sent = carry(&mut wire, &mut tunnel.wire, &mut up, cx)?;
            let received = carry(&mut tunnel.wire, &mut wire, &mut down, cx)?;
            tunnel.moved(sent, received);
            // When one direction has ended, the tunnel ends (as in nginx). The last bytes of that
            // direction have been passed on.
            if up == Flow::Closed || down == Flow::Closed {
                return Poll::Ready(Ok(()));
            }
            Poll::Pending
        })
        .await
    }
}

/// The state of one direction of a tunnel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    /// The sender has ended its output, and the last bytes are being passed on.
    Ending,
    Closed,
}

/// Moves as many bytes as possible from one side to the other without waiting. Returns their
/// number.
fn carry(
    from: &mut Wire,
    to: &mut Wire,
    flow: &mut Flow,
    cx: &mut Context<'_>,
) -> io::Result<usize> {
    let mut moved = 0;
    loop {
        if !from.input.is_empty() && to.has_room() {
            moved += from.input.len();
            to.push(from.input.split().freeze(), false);
        }
        if to.poll_flush(cx)?.is_pending() {
            return Ok(moved);
        }
        if !from.input.is_empty() {
            continue;
        }
        match *flow {
            Flow::Open => match from.poll_fill(cx)? {
                Poll::Ready(0) => *flow = Flow::Ending,
                Poll::Ready(_) => {}
                Poll::Pending => return Ok(moved),
            },
            Flow::Ending => {
                if to.poll_shutdown(cx)?.is_ready() {
                    *flow = Flow::Closed;
                }
                return Ok(moved);
            }
            Flow::Closed => return Ok(moved),
        }
    }
}
