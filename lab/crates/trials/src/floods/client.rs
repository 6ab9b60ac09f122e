//! One connection of HTTP/2 by raw frames, and what stops it.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bywash_harness::h2::{self, Frame, Frames, GoAway, frame, kind};
use bywash_harness::proxy::Proxy;
use bywash_harness::sys;

/// No progress for so long, and the other side has stopped reading.
pub(super) const STALLED: Duration = Duration::from_secs(3);
/// For the reason to come in behind the end of the connection.
const REASON: Duration = Duration::from_millis(500);
/// A receive buffer as small as the kernel lets it be.
const SMALL: i32 = 4096;
/// The PING whose answer shows that all before it has been read.
const MARK: &[u8; 8] = b"all read";

/// How a flood ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The other side said why and closed.
    GoneAway(GoAway),
    /// The other side closed.
    Closed,
    /// The other side stopped reading, or answering.
    Stalled,
    /// Nobody stopped it: all was read.
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

/// A client.
pub(super) struct Client {
    stream: TcpStream,
    frames: Frames,
    room: Vec<u8>,
}

impl Client {
    /// One that has said hello.
    pub(super) fn connect(proxy: &Proxy) -> io::Result<Self> {
        let mut stream = proxy.connect()?;
        stream.write_all(&[h2::PREFACE, &frame(kind::SETTINGS, 0, 0, b"")].concat())?;
        stream.set_write_timeout(Some(STALLED))?;
        Ok(Self { stream, frames: Frames::default(), room: vec![0; 65536] })
    }

    /// Takes in as little as the kernel allows.
    pub(super) fn take_little(&self) -> io::Result<()> {
        sys::set_receive_buffer(&self.stream, SMALL)
    }

    /// `None` once everything that was sent has been read and the connection is still open.
    pub(super) fn check_all_read(&mut self) -> io::Result<Option<Stop>> {
        if let Some(stop) = self.send(&frame(kind::PING, 0, 0, MARK))? {
            return Ok(Some(stop));
        }
        self.read_until(STALLED, |frame| frame.kind == kind::PING && frame.payload == MARK)
    }

    /// What has stopped it, if it cannot be sent.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<Option<Stop>> {
        match self.stream.write_all(bytes) {
            Ok(()) => Ok(None),
            Err(e) if is_timeout(&e) => Ok(Some(Stop::Stalled)),
            // Why is in what has come before.
            Err(e) if is_end(&e) => {
                let read = self.read_until(REASON, |_| false)?;
                Ok(read.filter(|stop| *stop != Stop::Stalled).or(Some(Stop::Closed)))
            }
            Err(e) => Err(e),
        }
    }

    /// Reads until `wanted` has come; what has stopped it if it does not come in time, which a
    /// GOAWAY does even if the connection stays open for a while.
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

fn is_timeout(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn is_end(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
