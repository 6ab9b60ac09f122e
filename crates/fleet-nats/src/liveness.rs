//! Proves that the process of a gateway has ended.
//!
//! Each gateway listens on an address for as long as its process lives, and never accepts a
//! connection. The kernel answers for it, also while the process is stopped by a signal. If the
//! kernel refuses a connection, no process listens there, so the process has ended. No answer
//! proves nothing.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use bywash_fleet::MemberId;
use bywash_units::Time;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The maximum time for an answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Listens on an address until the process ends. Several runs of the same gateway may listen on it
/// at once.
///
/// # Errors
/// Returns an error if another program listens there, or if the address is not one of this
/// machine's.
pub(crate) fn listen(address: SocketAddr) -> io::Result<()> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    // The kernel closes the socket when the process ends, and not before.
    std::mem::forget(socket.listen(1)?);
    Ok(())
}

/// A question whether a process has ended, with its answer.
pub(crate) struct Answer {
    pub(crate) member: MemberId,
    /// The time before the question.
    pub(crate) asked: Time,
    pub(crate) is_down: bool,
}

/// Asks for gateways whether they have ended, one question at a time for each.
pub(crate) struct Questions {
    open: BTreeSet<MemberId>,
    answers: mpsc::Sender<Answer>,
    /// The receiver of the answers.
    pub(crate) answered: mpsc::Receiver<Answer>,
}

impl Questions {
    pub(crate) fn new(gateways: usize) -> Self {
        let (answers, answered) = mpsc::channel(gateways.max(1));
        Self { open: BTreeSet::new(), answers, answered }
    }

    /// Asks whether the gateway that listens on `address` has ended, unless a question is open.
    pub(crate) fn ask(&mut self, now: Time, member: MemberId, address: SocketAddr) {
        if !self.open.insert(member) {
            return;
        }
        let answers = self.answers.clone();
        tokio::spawn(async move {
            let tried = timeout(PATIENCE, TcpStream::connect(address)).await;
            let refused = |error: &io::Error| error.kind() == ErrorKind::ConnectionRefused;
            let is_down = matches!(&tried, Ok(Err(error)) if refused(error));
            // An error means that the gateway has left the fleet.
            let _ = answers.send(Answer { member, asked: now, is_down }).await;
        });
    }

    /// Notes that the question for a gateway is answered.
    pub(crate) fn close(&mut self, member: MemberId) {
        self.open.remove(&member);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answer(address: SocketAddr) -> bool {
        let mut questions = Questions::new(1);
        questions.ask(Time::ZERO, MemberId(1), address);
        questions.answered.recv().await.expect("it has a sender").is_down
    }

    #[test]
    fn a_closed_port_proves_the_end_and_a_full_queue_does_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = free.local_addr().unwrap();
            drop(free);
            assert!(answer(address).await);
            listen(address).unwrap();
            listen(address).unwrap();
            // The queues of both listeners are full after a few.
            for _ in 0..6 {
                assert!(!answer(address).await);
            }
        });
    }
}
