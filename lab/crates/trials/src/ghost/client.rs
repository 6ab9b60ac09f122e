//! The client's side of a trial: functions that send as much as the kernel accepts, read with a
//! time limit, and leave.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use bywash_harness::client_socket::{is_end, is_timeout};
use bywash_harness::sys;

/// Time without progress after which a write counts as blocked by the other side.
const BLOCKED: Duration = Duration::from_millis(50);

/// The way in which a client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// The client stays. This is the control, which shows that a ghost would be detected.
    Stay,
    /// The client closes its socket, which sends FIN.
    Fin,
    /// The client resets the connection, which sends RST.
    Rst,
    /// The client closes only its sending side, which sends FIN. It can still read.
    HalfClose,
}

/// The outcome of waiting for bytes.
#[derive(Debug)]
pub enum Patience {
    /// The wanted bytes arrived.
    Satisfied,
    /// The other side closed or reset the connection at the given time.
    Ended(Instant),
    /// The time limit was reached before the bytes arrived or the connection ended.
    Exhausted,
}

/// Sends as many of `bytes` as the other side and the kernel's buffers accept. Returns the number
/// of accepted bytes.
pub fn send(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut stream = stream;
    stream.set_write_timeout(Some(BLOCKED))?;
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(count) => sent += count,
            Err(e) if is_timeout(&e) || is_end(&e) => break,
            Err(e) => return Err(e),
        }
    }
    Ok(sent)
}

/// Reads until the bytes `wanted` have arrived, the other side has closed, or `bound` is over. If
/// `wanted` is empty, received bytes do not end the wait.
pub fn receive(stream: &TcpStream, wanted: &[u8], bound: Duration) -> io::Result<Patience> {
    let mut stream = stream;
    let deadline = Instant::now() + bound;
    let (mut got, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Patience::Exhausted);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(Patience::Ended(Instant::now())),
            Ok(count) => got.extend_from_slice(&part[..count]),
            Err(e) if is_end(&e) => return Ok(Patience::Ended(Instant::now())),
            Err(e) if is_timeout(&e) => return Ok(Patience::Exhausted),
            Err(e) => return Err(e),
        }
        if !wanted.is_empty() && got.windows(wanted.len()).any(|window| window == wanted) {
            return Ok(Patience::Satisfied);
        }
    }
}

/// Leaves in the way `how`. Returns the time just before that, and the stream if it is still open.
pub fn leave(stream: TcpStream, how: Leave) -> io::Result<(Instant, Option<TcpStream>)> {
    if how == Leave::Rst {
        sys::reset_on_close(&stream)?;
    }
    let left = Instant::now();
    match how {
        Leave::Stay => Ok((left, Some(stream))),
        Leave::HalfClose => stream.shutdown(Shutdown::Write).map(|()| (left, Some(stream))),
        Leave::Fin | Leave::Rst => {
            drop(stream);
            Ok((left, None))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn first_read_after(how: Leave) -> io::Result<usize> {
        let (client, mut server) = pair();
        let kept = leave(client, how).unwrap();
        let read = server.read(&mut [0; 8]);
        drop(kept);
        read
    }

    #[test]
    fn each_way_to_leave_is_on_the_wire_what_its_name_says() {
        assert_eq!(first_read_after(Leave::Fin).unwrap(), 0);
        assert_eq!(first_read_after(Leave::HalfClose).unwrap(), 0);
        assert_eq!(first_read_after(Leave::Rst).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }

    #[test]
    fn a_write_nobody_reads_stops_at_what_the_kernel_takes() {
        let (client, server) = pair();
        sys::set_send_buffer(&client, 4096).unwrap();
        sys::set_receive_buffer(&server, 4096).unwrap();
        let sent = send(&client, &vec![0; 32 << 20]).unwrap();
        assert!(sent > 0 && sent < 32 << 20, "{sent}");
    }

    #[test]
    fn waiting_ends_with_what_was_wanted_or_with_the_connection() {
        let (client, mut server) = pair();
        server.write_all(b"abc").unwrap();
        let bound = Duration::from_secs(5);
        assert!(matches!(receive(&client, b"bc", bound).unwrap(), Patience::Satisfied));
        drop(server);
        assert!(matches!(receive(&client, b"", bound).unwrap(), Patience::Ended(_)));
    }
}
