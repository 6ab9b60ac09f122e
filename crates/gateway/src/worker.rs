//! One thread of the data plane: a current-thread runtime that accepts and serves connections.

use std::net::TcpListener as StdListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::client::{self, Clients};
use crate::shared::{Life, Shared};
use crate::upstream::Pool;

/// What the requests of one thread share.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) clients: Clients,
    pub(crate) pool: Pool,
}

/// How often idle things are looked at: the resolution of the limits on heads and idle time.
const TICK: Duration = Duration::from_secs(1);

/// After a failed accept (no file descriptors left, most likely): long enough not to spin, short
/// enough not to be noticed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Counts a worker for as long as it serves, however it ends.
struct Serving(Arc<Shared>);

impl Serving {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.workers.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(shared))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.workers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs one worker until it is told to stop *and* its last connection has ended or is cut off.
/// Says when it is `ready`; an error before that is why it is not.
pub(crate) fn run(
    shared: Arc<Shared>,
    listener: StdListener,
    life: watch::Receiver<Life>,
    ready: SyncSender<()>,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = LocalSet::new();
    let serve = async move {
        let clients = Clients::new()?;
        let pool = Pool::new(&shared.config.upstream);
        let serving = Serving::new(&shared);
        let worker = Rc::new(Worker { shared, clients, pool });
        let listener = TcpListener::from_std(listener)?;
        // Whoever waits for this is still there: it has started this thread.
        let _ = ready.send(());
        tokio::task::spawn_local(watch_departures(Rc::clone(&worker)));
        tokio::task::spawn_local(tick(Rc::clone(&worker)));
        accept(&worker, listener, life.clone()).await;
        worker.clients.stop();
        drain(&worker, life).await;
        drop(serving);
        Ok(())
    };
    local.block_on(&runtime, serve)
}

/// Takes connections until told to stop; closing the listener is the end of it.
async fn accept(worker: &Rc<Worker>, listener: TcpListener, mut life: watch::Receiver<Life>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = life.wait_for(|life| *life >= Life::Drains) => return,
        };
        let Ok((stream, peer)) = accepted else {
            worker.shared.metrics.accept_failed();
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        client::serve(worker, stream, peer);
    }
}

/// Waits for the last connection, unless the gateway ends before. Returning drops what is left.
async fn drain(worker: &Worker, mut life: watch::Receiver<Life>) {
    let empty = async {
        while worker.clients.open() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = empty => {}
        _ = life.wait_for(|life| *life == Life::Ends) => {}
    }
}

async fn watch_departures(worker: Rc<Worker>) {
    loop {
        if worker.clients.departures().await.is_err() {
            // The watch itself has failed: without it departures behind unread bytes go unseen,
            // hyper still sees the others.
            worker.shared.metrics.watch_failed();
            return;
        }
    }
}

async fn tick(worker: Rc<Worker>) {
    let mut interval = tokio::time::interval(TICK);
    loop {
        interval.tick().await;
        worker.clients.tick(&worker.shared.config.limits);
        worker.pool.tick();
    }
}
