//! The listening socket and its thread, from opening to closing.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use socket2::{Domain, Socket, Type};
use tokio::sync::watch;

use crate::application::Application;
use crate::connection;

/// Connections the kernel may hold for us before we accept them. Larger than any queue of ours, so
/// that a crowd is refused by an answer of the application and not by lost packets.
const KERNEL_BACKLOG: i32 = 4096;

/// Why a listener cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is taken, forbidden or not of this machine.
    #[error("cannot listen on {address}: {cause}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the operating system says.
        cause: io::Error,
    },
    /// The operating system gives no thread or event loop.
    #[error("the operating system does not provide {what}: {cause}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it says.
        cause: io::Error,
    },
}

/// A socket that listens; nobody is served before [`Listener::open`].
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    socket: Option<TcpListener>,
    /// Dropping it closes the listener.
    open: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Takes the address. Port 0 takes a free one.
    pub fn listen(address: SocketAddr) -> Result<Self, ListenError> {
        let (socket, address) =
            bind(address).map_err(|cause| ListenError::Bind { address, cause })?;
        Ok(Self { address, socket: Some(socket), open: None, thread: None })
    }

    /// Where it listens, with the port it got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts the thread `name` that serves with `application`; once. It makes its event loop
    /// itself: one made here and not used could not be dropped by a caller that runs in an event
    /// loop of its own.
    pub fn open(
        &mut self,
        name: &str,
        application: Arc<impl Application>,
    ) -> Result<(), ListenError> {
        let Some(socket) = self.socket.take() else { return Ok(()) };
        let (open, closing) = watch::channel(());
        self.open = Some(open);
        let (ready, started) = mpsc::sync_channel(1);
        let body = move || connection::run(socket, application, closing, &ready);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
        self.thread =
            Some(thread.map_err(|cause| ListenError::System { what: "a thread", cause })?);
        let word = started.recv().unwrap_or_else(|lost| Err(io::Error::other(lost)));
        word.map_err(|cause| ListenError::System { what: "an event loop", cause })
    }

    /// Takes no more connections, and lets those there are end; dropping the listener waits for them.
    pub fn close(&mut self) {
        self.open = None;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on stderr; there is nothing left to stop in it.
            let _ = thread.join();
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // An application that has just stopped leaves the port in a state that would refuse the next.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(KERNEL_BACKLOG)?;
    let listener = TcpListener::from(socket);
    let address = listener.local_addr()?;
    Ok((listener, address))
}
