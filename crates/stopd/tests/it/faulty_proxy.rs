//! A proxy between the daemon and a real database, for tests. It loses or delays a response, or
//! renames the server.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use bywash_config::DatabaseAddress;

/// The way in which the proxy changes the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    /// Drops the response to the message that [`FaultyProxy::lose_answer`] selects, and closes the
    /// connection.
    LosesAnswer,
    /// Delays the response to the message that [`FaultyProxy::lose_answer`] selects.
    DelaysAnswer,
    /// Presents MariaDB as MySQL.
    SaysMySql,
}

/// The delay of a response. It is longer than a release waits for a cancellation, even on a busy
/// machine. It is shorter than the daemon waits for a database.
const DELAY: Duration = Duration::from_secs(2);

pub(crate) struct FaultyProxy {
    pub(crate) address: SocketAddr,
    countdown: Arc<AtomicUsize>,
}

impl FaultyProxy {
    /// Starts a proxy in front of a database. The proxy ends with the process.
    pub(crate) fn before(database: SocketAddr, conduct: Conduct) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let countdown = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&countdown);
        thread::spawn(move || {
            for client in listener.incoming() {
                let server = TcpStream::connect(database).unwrap();
                connect(&client.unwrap(), &server, &count, conduct);
            }
        });
        Self { address, countdown }
    }

    /// Selects the message whose response is lost or delayed: message number `number`, counted from
    /// now on.
    pub(crate) fn lose_answer(&self, number: usize) {
        self.countdown.store(number, SeqCst);
    }
}

fn connect(client: &TcpStream, server: &TcpStream, countdown: &Arc<AtomicUsize>, conduct: Conduct) {
    let is_lost = Arc::new(AtomicBool::new(false));
    let (asks, asked) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (counts, loses) = (Arc::clone(countdown), Arc::clone(&is_lost));
    pass(asks, asked, move |_| {
        let left = counts.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        if left == Ok(1) {
            loses.store(true, SeqCst);
        }
    });
    pass(server.try_clone().unwrap(), client.try_clone().unwrap(), move |answer| {
        if conduct == Conduct::DelaysAnswer && is_lost.swap(false, SeqCst) {
            thread::sleep(DELAY);
        } else if is_lost.load(SeqCst) {
            answer.clear();
        } else if conduct == Conduct::SaysMySql {
            rename(answer);
        }
    });
}

/// Forwards the bytes of one direction, each part as changed by `change`, until the connection
/// ends.
fn pass(mut from: TcpStream, mut to: TcpStream, change: impl Fn(&mut Vec<u8>) + Send + 'static) {
    thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let mut part = bytes[..count].to_vec();
            change(&mut part);
            if part.is_empty() || to.write_all(&part).is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
}

/// Replaces the name of the server in its answer by one of the same length.
fn rename(answer: &mut [u8]) {
    let (name, other) = (b"MariaDB", b"MySQL  ");
    let places: Vec<usize> = answer
        .windows(name.len())
        .enumerate()
        .filter(|(_, at)| at == name)
        .map(|(n, _)| n)
        .collect();
    for place in places {
        answer[place..place + name.len()].copy_from_slice(other);
    }
}

/// Converts an address to the form of the daemon's settings.
pub(crate) fn place(address: SocketAddr) -> DatabaseAddress {
    DatabaseAddress::Tcp { host: address.ip().to_string(), port: address.port() }
}
