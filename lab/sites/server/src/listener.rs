//! The listening socket of an application and its thread, from opening to closing.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use socket2::{Domain, Socket, Type};
use tokio::sync::watch;

use crate::application::Application;
use crate::connection;

/// The number of connections that the kernel may hold before they are accepted. It is larger than
/// any queue of the applications. The application therefore rejects excess requests with a
/// response, and the kernel drops no packets.
const KERNEL_BACKLOG: i32 = 4096;

/// The reason why a listener cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is taken, forbidden, or not on this machine.
    #[error("cannot listen on {address}: {cause}")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The operating system provides no thread or event loop.
    #[error("the operating system does not provide {what}: {cause}")]
    System {
        /// The missing resource.
        what: &'static str,
        /// The operating system's error.
        cause: io::Error,
    },
}

/// A listening socket. It serves requests only after [`Listener::open`].
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    socket: Option<TcpListener>,
    /// The sender whose drop makes the thread close the listener; `None` before [`Listener::open`]
    /// and after [`Listener::close`].
    open: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Binds a listening socket to `address`. If the port is 0, the operating system chooses a free
    /// port.
    pub fn listen(address: SocketAddr) -> Result<Self, ListenError> {
        let (socket, address) =
            bind(address).map_err(|cause| ListenError::Bind { address, cause })?;
        Ok(Self { address, socket: Some(socket), open: None, thread: None })
    }

    /// Returns the address that the listener is bound to, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts the thread called `name`, which serves requests with `application`. A second call
    /// does nothing.
    ///
    /// The thread creates its event loop itself. An event loop created here and left unused could
    /// not be dropped by a caller that runs in its own event loop.
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

    /// Accepts no more connections and lets the open ones end. Dropping the listener waits until
    /// they have ended.
    pub fn close(&mut self) {
        self.open = None;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has reported it on standard error, and there is nothing left
            // to stop.
            let _ = thread.join();
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // A port whose application has just stopped would otherwise block this bind for some time.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(KERNEL_BACKLOG)?;
    let listener = TcpListener::from(socket);
    let address = listener.local_addr()?;
    Ok((listener, address))
}
