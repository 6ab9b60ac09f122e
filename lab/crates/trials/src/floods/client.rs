//! An HTTP/2 client that sends raw frames, and finds out why a connection was stopped.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bywash_harness::client_socket::{is_end, is_timeout};
use bywash_harness::h2::{self, Frame, Frames, GoAway, frame, kind};
use bywash_harness::proxy::Proxy;
use bywash_harness::sys;

/// Time without progress after which the server counts as stalled, that is, as no longer reading.
pub(super) const STALLED: Duration = Duration::from_secs(3);
/// Time to wait for a GOAWAY after a write has failed.
const REASON: Duration = Duration::from_millis(500);
/// The smallest receive buffer that the kernel allows, in bytes.
const SMALL: i32 = 4096;
/// Payload of a PING. Its answer shows that the server has read everything sent before the PING.
const MARK: &[u8; 8] = b"all read";

/// The reason why a flood ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The server sent GOAWAY with an error code.
    GoneAway(GoAway),
    /// The server closed the connection without a GOAWAY.
    Closed,
    /// The server stopped reading or answering.
    Stalled,
    /// The flood was not stopped: the server read everything.
    Nothing,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GoneAway(reason) => write!(f, "GOAWAY {reason}"),
            Self::Closed => f.pad("closed"),
            Self::Stalled => f.pad("silence"),
            Self::Nothing => f.pad("nothing"),
        }
    }
}

/// An HTTP/2 client with one connection.
pub(super) struct Client {
    stream: TcpStream,
    frames: Frames,
    room: Vec<u8>,
}

impl Client {
    /// Connects to `proxy`, and sends the preface and SETTINGS.
    pub(super) fn connect(proxy: &Proxy) -> io::Result<Self> {
        let mut stream = proxy.connect()?;
        stream.write_all(&[h2::PREFACE, &frame(kind::SETTINGS, 0, 0, b"")].concat())?;
        stream.set_write_timeout(Some(STALLED))?;
        Ok(Self { stream, frames: Frames::default(), room: vec![0; 65536] })
    }

    /// Makes the receive buffer as small as the kernel allows.
    pub(super) fn take_little(&self) -> io::Result<()> {
        sys::set_receive_buffer(&self.stream, SMALL)
    }

    /// Sends a PING and waits for its answer. Returns `None` if the answer arrives, which means
    /// that the server has read everything and the connection is open. Otherwise returns the reason
    /// why the flood was stopped.
    pub(super) fn check_all_read(&mut self) -> io::Result<Option<Stop>> {
        if let Some(stop) = self.send(&frame(kind::PING, 0, 0, MARK))? {
            return Ok(Some(stop));
        }
        self.read_until(STALLED, |frame| frame.kind == kind::PING && frame.payload == MARK)
    }

    /// Sends `bytes`. Returns `None` if they were sent, or else the reason why the flood was
    /// stopped.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<Option<Stop>> {
        match self.stream.write_all(bytes) {
            Ok(()) => Ok(None),
            Err(e) if is_timeout(&e) => Ok(Some(Stop::Stalled)),
            // The server may have sent its reason before it closed the connection.
            Err(e) if is_end(&e) => {
                let read = self.read_until(REASON, |_| false)?;
                Ok(read.filter(|stop| *stop != Stop::Stalled).or(Some(Stop::Closed)))
            }
            Err(e) => Err(e),
        }
    }

    /// Reads until a frame arrives for which `wanted` returns true, and returns `None`. If no such
    /// frame arrives within `bound`, returns the reason why the flood was stopped. A GOAWAY is such
    /// a reason even if the connection stays open for a while.
    pub(super) fn read_until(
        &mut self,
        bound: Duration,
        wanted: impl Fn(&Frame) -> bool,
    ) -> io::Result<Option<Stop>> {
        let deadline = Instant::now() + bound;
        let mut reason = None;
        loop {
            for frame in self.frames.by_ref() {
                if wanted(&frame) && reason.is_none() {
                    return Ok(None);
                }
                reason = frame.go_away().or(reason);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Some(reason.map_or(Stop::Stalled, Stop::GoneAway)));
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(&mut self.room) {
                Ok(0) => return Ok(Some(reason.map_or(Stop::Closed, Stop::GoneAway))),
                Ok(count) => self.frames.extend(&self.room[..count]),
                Err(e) if is_end(&e) => {
                    return Ok(Some(reason.map_or(Stop::Closed, Stop::GoneAway)));
                }
                Err(e) if is_timeout(&e) => {}
                Err(e) => return Err(e),
            }
        }
    }
}
