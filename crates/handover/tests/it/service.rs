//! A service whose answer is one byte, the number of its generation. On demand it hands over to the
//! next generation.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow::Continue;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bywash_handover::{Name, Successor, hand_over};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::roles::role;

/// The demand, of one byte, that the service returns its generation.
pub(crate) const WHO: u8 = b'?';
/// The demand, of one byte, that the service hands over to the next generation.
pub(crate) const HAND_OVER: u8 = b'h';
/// The demand, of one byte, that the service ends.
pub(crate) const END: u8 = b'e';

/// A time limit that is longer than any operation of these tests takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The number of bytes of state. A socket buffer holds less, so that the transfer takes several
/// reads and writes.
pub(crate) const STATE: usize = 3 << 20;

fn state_of(generation: u8) -> Vec<u8> {
    vec![generation; STATE]
}

pub(crate) fn generation_of(state: &[u8]) -> u8 {
    let generation = state[0];
    assert!(state == state_of(generation), "the state has changed on its way");
    generation
}

/// Serves until it has handed over, or gets the demand to end. It ends after its successor, so that
/// no process of a test outlives the test.
pub(crate) fn serve(listener: TcpListener, generation: u8) {
    listener.set_nonblocking(true).unwrap();
    let (begun, successor) = (AtomicBool::new(false), OnceLock::new());
    thread::scope(|scope| {
        let end = Instant::now() + PATIENCE * 2;
        while successor.get().is_none() {
            assert!(Instant::now() < end, "the test has died");
            let Some(word) = next(&listener, generation) else { continue };
            if word == HAND_OVER && !begun.swap(true, Ordering::Relaxed) {
                scope.spawn(|| successor.set(next_generation(&listener, generation + 1)));
            }
            if word == END {
                break;
            }
        }
    });
    drop(listener);
    let Some(mut successor) = successor.into_inner() else { return };
    let status = loop {
        match successor.exited().unwrap() {
            None => thread::sleep(Duration::from_millis(5)),
            Some(status) => break status,
        }
    };
    assert!(status.success(), "generation {}: {status}", generation + 1);
}

fn next_generation(listener: &TcpListener, generation: u8) -> Successor {
    let folder = tempfile::tempdir().unwrap();
    let mut command = role("successor", &folder);
    let sockets = [(Name::Http, listener.as_fd())];
    let state = state_of(generation);
    let next = hand_over(&mut command, &sockets, &state, PATIENCE, || Continue(()));
    next.unwrap()
}

/// Serves the next connection and returns its demand. Returns `None` if no connection arrives soon.
fn next(listener: &TcpListener, generation: u8) -> Option<u8> {
    let mut ready = [PollFd::new(listener, PollFlags::IN)];
    let soon = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    poll(&mut ready, Some(&soon)).unwrap();
    let mut connection = match listener.accept() {
        Ok((connection, _)) => connection,
        Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
        Err(error) => panic!("accepting failed: {error}"),
    };
    let mut word = [0];
    connection.read_exact(&mut word).unwrap();
    connection.write_all(&[generation]).unwrap();
    Some(word[0])
}

/// Sends a demand. Returns the generation that answers.
pub(crate) fn ask(address: SocketAddr, word: u8) -> io::Result<u8> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.write_all(&[word])?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer)?;
    match answer[..] {
        [generation] => Ok(generation),
        _ => Err(io::Error::other(format!("the answer is {answer:?}"))),
    }
}

/// Sends requests one after the other while `act` runs. None may fail. Returns their number.
pub(crate) fn under_load(address: SocketAddr, act: impl FnOnce()) -> u32 {
    let (over, served) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    ask(address, WHO).expect("a client was not served");
                    served.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // The guard also works when `act` panics. Otherwise the clients would never end.
        let _over = Over(&over);
        act();
    });
    served.into_inner()
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
