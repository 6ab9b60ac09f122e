//! Demanding honest clients, which must be served during an attack: a large upload, a slow reader,
//! and an office behind one address.

use std::io::{self, ErrorKind, Read, Write};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bywash_harness::client_socket;
use bywash_harness::http;
use bywash_harness::open_loop::{Load, Phase, Reuse};
use bywash_harness::sys;

/// Indices of the source addresses of honest visitors. They are above those of all hostile clients.
pub(super) const VISITORS: std::ops::Range<usize> = 20_000..20_500;
const OFFICE: usize = 30_000;
const UPLOADER: usize = 30_001;
pub(super) const READER: usize = 30_002;

/// Size of the upload, in bytes.
const UPLOAD: usize = 8_000_000;
/// Rate at which the slow reader reads, in bytes per second.
pub(super) const READ_RATE: usize = 20_000;
/// Number of connections of the office, one for each of its people.
const PEOPLE: usize = 500;
/// Fraction of the attack's duration that an upload or an answer takes at the client's rate.
const PART: f64 = 0.6;
/// Number of steps per second in which the upload and the slow reader proceed.
const STEPS: u32 = 20;

/// Returns the load of an office: `rate` requests per second in total, on 500 connections that
/// share one address.
pub(super) fn office(port: u16, rate: f64, length: Duration, patience: Duration) -> Load {
    let phases = vec![Phase::new(rate, length)];
    Load { port, phases, patience, reuse: Reuse::Turns(PEOPLE), sources: OFFICE..OFFICE + 1 }
}

/// A large upload and a slow read of an answer, both in progress.
pub(super) struct Edge {
    upload: JoinHandle<io::Result<()>>,
    read: JoinHandle<io::Result<()>>,
}

impl Edge {
    /// Starts the upload and the read. Each has to be served within `bound`.
    pub(super) fn start(port: u16, bound: Duration) -> Self {
        let upload = thread::spawn(move || upload(port, bound));
        let read = thread::spawn(move || read(port, bound));
        Self { upload, read }
    }

    /// Waits until the upload and the read end, and returns whether each was served.
    pub(super) fn finish(self) -> [bool; 2] {
        [self.upload, self.read].map(|client| client.join().is_ok_and(|served| served.is_ok()))
    }
}

/// Uploads 8 MB. The upload is faster than that of a mobile phone, so that it fits into `bound`.
/// Fails unless the answer is 200.
fn upload(port: u16, bound: Duration) -> io::Result<()> {
    let deadline = Instant::now() + bound;
    let mut stream = client_socket::connect_over_line(client_socket::address(UPLOADER), port)?;
    stream.set_write_timeout(Some(bound))?;
    stream.write_all(http::post("/upload", &format!("Content-Length: {UPLOAD}\r\n")).as_bytes())?;
    let steps = (bound.as_secs_f64() * PART * f64::from(STEPS)).ceil();
    let step_bytes = vec![b'x'; (UPLOAD as f64 / steps).ceil() as usize];
    let (mut left, start) = (UPLOAD, Instant::now());
    for step in 1.. {
        let count = left.min(step_bytes.len());
        stream.write_all(&step_bytes[..count])?;
        left -= count;
        if left == 0 {
            break;
        }
        pause(start, step);
    }
    stream.set_read_timeout(Some(left_until(deadline)?))?;
    http::expect_200(&mut stream).map(drop)
}

/// Reads an answer at 20 kB/s. In a network with a slow line, the line has the same rate
/// (`line.rs`). Fails if the answer is not complete within `bound`.
fn read(port: u16, bound: Duration) -> io::Result<()> {
    let deadline = Instant::now() + bound;
    let size = (READ_RATE as f64 * bound.as_secs_f64() * PART) as usize;
    let mut stream = client_socket::connect_over_line(client_socket::address(READER), port)?;
    sys::set_receive_buffer(&stream, 8192)?;
    stream.write_all(http::get(&format!("/bytes/{size}")).as_bytes())?;
    let (mut answer, start) = (http::empty_answer(), Instant::now());
    let mut room = vec![0; READ_RATE / STEPS as usize];
    for step in 1.. {
        stream.set_read_timeout(Some(left_until(deadline)?))?;
        let count = stream.read(&mut room)?;
        if answer.feed(&room[..count])?.is_some_and(|head| head.status != 200) {
            return Err(ErrorKind::InvalidData.into());
        }
        if answer.has_ended() {
            let is_whole = answer.body.len() == size;
            return if is_whole { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) };
        }
        pause(start, step);
    }
    Ok(())
}

fn pause(start: Instant, step: u32) {
    let due = start + Duration::from_secs(1) / STEPS * step;
    thread::sleep(due.saturating_duration_since(Instant::now()));
}

/// Returns the time that remains until `deadline`. Fails if the deadline has passed.
fn left_until(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
