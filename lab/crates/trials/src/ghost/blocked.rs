//! Clients that leave while the proxy itself is blocked. The proxy uploads to an upstream that does
//! not read, or connects to an upstream that does not accept.
//!
//! In neither case can the upstream see that the proxy has given up. Therefore the trial asks the
//! kernel when the proxy closed its socket ([`SockDiag`]).

use super::client::{self, Leave};
use super::tally::Tally;
use super::{BOUND, MOMENT, REACTION, TestBed, wait_status};
use crate::sockdiag::SockDiag;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use bywash_harness::http;
use bywash_harness::peer::PeerKind;
use bywash_harness::procfs;
use bywash_harness::proxy::{Plan, Proxy};
use bywash_harness::sys;

/// Size of the upload in bytes. It is more than all buffers between client and upstream can hold.
const UPLOAD: usize = 64 << 20;

/// Runs one trial of an upload that blocks, and whose client then resets the connection.
pub fn uploading(
    test_bed: &mut TestBed<'_>,
    diag: &mut SockDiag,
    body: &[u8],
    tally: &mut Tally,
) -> io::Result<()> {
    let trial = test_bed.begin();
    let path = format!("/stall/{trial}");
    let victim = test_bed.proxy.connect()?;
    sys::set_send_buffer(&victim, 64 << 10)?;
    let head = http::post(&path, &format!("Content-Length: {}\r\n", body.len()));
    client::send(&victim, head.as_bytes())?;
    let arrived = test_bed.origin.wait_arrival(&path, BOUND);
    let connection = arrived.ok_or_else(|| io::Error::other("the upload did not arrive"))?;
    tally.unqueued += usize::from(client::send(&victim, body)? == body.len());
    thread::sleep(MOMENT);

    let (left, _) = client::leave(victim, Leave::Rst)?;
    let pair = (connection.peer, test_bed.origin.address());
    tally.reaction(left, diag.wait_released(pair, REACTION)?);
    test_bed.origin.close(connection);
    tally.lost += usize::from(!test_bed.probe(trial)?);
    tally.trials += 1;
    Ok(())
}

/// Returns the body of the upload for [`uploading`].
pub fn upload_body() -> Vec<u8> {
    vec![b'x'; UPLOAD]
}

/// A port on which a connect neither succeeds nor fails. Its accept queue is full, so the kernel
/// drops every further SYN.
#[derive(Debug)]
pub struct HungPort {
    address: SocketAddrV4,
    _listener: TcpListener,
    _fillers: Vec<TcpStream>,
}

impl HungPort {
    /// Starts a listener, and fills its accept queue until a connect hangs.
    pub fn open() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        sys::set_backlog(&listener, 0)?;
        let address = listener.local_addr()?;
        let mut fillers = Vec::new();
        while let Ok(filler) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
            fillers.push(filler);
            if fillers.len() > 16 {
                return Err(io::Error::other("cannot fill a listener's queue"));
            }
        }
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, address.port());
        Ok(Self { address, _listener: listener, _fillers: fillers })
    }

    /// Returns the number of the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

/// Runs trials of a client that leaves while the proxy connects to an upstream that hangs. Returns
/// two tallies of the time until the proxy reacted. The first ends when the proxy closed its
/// socket. The second, for bywash only, ends when the status showed no running request.
pub fn connecting(
    plan: &Plan<'_>,
    hung: &HungPort,
    diag: &mut SockDiag,
    trials: usize,
) -> io::Result<Vec<Tally>> {
    let mut released = Tally::new("connecting", "GET, FIN: socket closed");
    let mut idle = Tally::new("connecting", "GET, FIN: status shows 0 running");
    let mut proxy = plan.start()?;
    for _ in 0..trials {
        let Some((left, socket)) = leave_while_connecting(&proxy, hung)? else {
            released.lost += 1;
            released.trials += 1;
            proxy = plan.start()?;
            continue;
        };
        let at = diag.wait_released((socket, hung.address), REACTION)?;
        released.reaction(left, at);
        released.trials += 1;
        if proxy.kind() == PeerKind::Bywash {
            idle.reaction(left, wait_status(&proxy, "running", 0)?);
            idle.trials += 1;
        }
        if at.is_none() {
            proxy = plan.start()?; // the old one still connects, in its only slot
        }
    }
    Ok([released, idle].into_iter().filter(|tally| tally.trials > 0).collect())
}

/// Lets a client leave during the proxy's connect. Returns the time at which the client left, and
/// the address of the proxy's socket. Returns `None` if the proxy did not begin to connect.
fn leave_while_connecting(
    proxy: &Proxy,
    hung: &HungPort,
) -> io::Result<Option<(Instant, SocketAddrV4)>> {
    let client = proxy.connect()?;
    client::send(&client, http::get("/").as_bytes())?;
    let start = Instant::now();
    while start.elapsed() < REACTION {
        if let Some(&socket) = procfs::connecting_to(hung.port())?.first() {
            thread::sleep(MOMENT);
            return Ok(Some((client::leave(client, Leave::Fin)?.0, socket)));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connect_to_a_hung_port_stays_pending() {
        let hung = HungPort::open().unwrap();
        let again = TcpStream::connect_timeout(&hung.address.into(), Duration::from_millis(50));
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
