//! A running shop: its threads, from start to stop.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use socket2::{Domain, Socket, Type};
use tokio::sync::watch;

use crate::house::House;
use crate::store::Store;
use crate::web;
use crate::work::Worker;
use crate::{Options, ShopError, Stats};

/// Connections the kernel may hold for us before we accept them. Larger than any queue of ours, so
/// that a crowd is refused by an answer of the shop and not by lost packets.
const KERNEL_BACKLOG: i32 = 4096;

/// A shop that serves until it is stopped or dropped.
#[derive(Debug)]
pub struct Shop {
    address: SocketAddr,
    house: Arc<House>,
    /// Dropping it closes the front door.
    open: Option<watch::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Shop {
    /// Opens the database, listens, and starts one thread per worker and one for HTTP.
    pub fn start(options: Options) -> Result<Self, ShopError> {
        options.check()?;
        let (listener, address) = listen(options.listen)?;
        let (stores, orders) = Store::open_all(&options.database, options.workers)?;
        let (open, closing) = watch::channel(());
        let house = Arc::new(House::new(options, orders));
        // From here on a failure drops the shop, which stops the threads started so far.
        let mut shop = Self { address, house, open: Some(open), threads: Vec::new() };
        for store in stores {
            let house = Arc::clone(&shop.house);
            shop.spawn("shop-worker", || Worker::new(house, store).run())?;
        }
        shop.open_door(listener, closing)?;
        Ok(shop)
    }

    /// Where it listens, with the port it got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        self.house.stats()
    }

    /// Stops and joins every thread, within a few seconds: waiting requests are refused, running
    /// ones have one second to end. Dropping the shop does the same.
    pub fn stop(self) {
        drop(self);
    }

    /// Starts the HTTP thread. It makes its event loop itself: one made here and not used could not
    /// be dropped by a caller that runs in an event loop of its own.
    fn open_door(
        &mut self,
        listener: TcpListener,
        closing: watch::Receiver<()>,
    ) -> Result<(), ShopError> {
        let house = Arc::clone(&self.house);
        let (ready, started) = mpsc::sync_channel(1);
        self.spawn("shop-http", move || {
            web::run(listener, house, closing, &ready);
        })?;
        let word = started.recv().unwrap_or_else(|lost| Err(io::Error::other(lost)));
        word.map_err(ShopError::system("an event loop"))
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), ShopError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
        self.threads.push(thread.map_err(ShopError::system("a thread"))?);
        Ok(())
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.house.close();
        self.open = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so on stderr; there is nothing left to stop in it.
            let _ = thread.join();
        }
    }
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ShopError> {
    let bound = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        // A shop that has just stopped leaves the port in a state that would refuse the next one.
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(KERNEL_BACKLOG)?;
        let listener = TcpListener::from(socket);
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound().map_err(|cause| ShopError::Listen { address, cause })
}
