//! Between the daemon and a real database: an answer that gets lost on the way, and a server of another name.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use bywash_config::DatabasePlace;

/// What it does to what it passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    /// Of a certain message to the database, see [`Relay::lose_answer`], the answer does not come back, nor the
    /// connection.
    LosesAnswer,
    /// It comes late.
    DelaysAnswer,
    /// Whoever answers as MariaDB is MySQL.
    SaysMySql,
}

/// Longer than a release waits for, also on a busy machine, and not as long as the daemon waits for its database.
const DELAY: Duration = Duration::from_secs(2);

pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    countdown: Arc<AtomicUsize>,
}

impl Relay {
    /// Ends with the process.
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

    /// The answer to the message of this number from now on is the one that is lost, or late.
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

/// Passes on what `change` leaves of it, until there is no more.
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

/// In as many bytes.
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

/// For the settings.
pub(crate) fn place(address: SocketAddr) -> DatabasePlace {
    DatabasePlace::Tcp { host: address.ip().to_string(), port: address.port() }
}
