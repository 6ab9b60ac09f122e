//! One thread of the data plane: a current-thread runtime that accepts and serves connections.

use std::cell::RefCell;
use std::net::TcpListener as StdListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::client::{self, Clients};
use crate::memory::Memory;
use crate::settings::Settings;
use crate::shared::{Door, Life, Shared};
use crate::upstream::Pool;

/// What the requests of one thread share.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) clients: Clients,
    /// What will be in force from the next look on.
    changes: RefCell<watch::Receiver<Arc<Settings>>>,
    settings: RefCell<Rc<Settings>>,
    pool: RefCell<Rc<Pool>>,
}

/// What a worker is given when it starts.
pub(crate) struct Start {
    pub(crate) shared: Arc<Shared>,
    pub(crate) listeners: Vec<(StdListener, Door)>,
    pub(crate) life: watch::Receiver<Life>,
    pub(crate) settings: watch::Receiver<Arc<Settings>>,
    /// Counts up as long as the worker is alive.
    pub(crate) heartbeat: Arc<AtomicU64>,
}

/// How often idle things are looked at: the resolution of the limits on heads and idle time.
const TICK: Duration = Duration::from_millis(250);

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

impl Worker {
    fn new(
        shared: Arc<Shared>,
        mut changes: watch::Receiver<Arc<Settings>>,
    ) -> std::io::Result<Self> {
        let settings = Rc::new(Settings::clone(&changes.borrow_and_update()));
        let pool = RefCell::new(Rc::new(new_pool(&settings, &shared.memory)));
        let (changes, settings) = (RefCell::new(changes), RefCell::new(settings));
        Ok(Self { shared, clients: Clients::new()?, changes, settings, pool })
    }

    /// What is in force. Whoever needs it for longer keeps it: it may change in between.
    pub(crate) fn settings(&self) -> Rc<Settings> {
        let mut changes = self.changes.borrow_mut();
        if changes.has_changed().unwrap_or(false) {
            let settings = Arc::clone(&changes.borrow_and_update());
            self.change(&settings);
        }
        Rc::clone(&self.settings.borrow())
    }

    /// Connections to the servers that are in force.
    pub(crate) fn pool(&self) -> Rc<Pool> {
        Rc::clone(&self.pool.borrow())
    }

    fn change(&self, settings: &Settings) {
        let most = settings.config.upstream.limit as usize;
        let same = Arc::ptr_eq(self.pool.borrow().upstreams(), &settings.upstreams);
        if same {
            self.pool.borrow().keeps(most);
        } else {
            self.pool.replace(Rc::new(new_pool(settings, &self.shared.memory))).retire();
        }
        *self.settings.borrow_mut() = Rc::new(settings.clone());
    }
}

fn new_pool(settings: &Settings, memory: &Arc<Memory>) -> Pool {
    let most = settings.config.upstream.limit as usize;
    Pool::new(Arc::clone(&settings.upstreams), most, Arc::clone(memory))
}

/// Runs one worker until it is told to stop *and* its last connection has ended or is cut off.
/// Says when it is `ready`; an error before that is why it is not.
pub(crate) fn run(start: Start, ready: SyncSender<()>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, serve(start, ready))
}

async fn serve(start: Start, ready: SyncSender<()>) -> std::io::Result<()> {
    let Start { shared, listeners, mut life, settings, heartbeat } = start;
    let serving = Serving::new(&shared);
    let worker = Rc::new(Worker::new(shared, settings)?);
    tokio::task::spawn_local(watch_departures(Rc::clone(&worker)));
    tokio::task::spawn_local(tick(Rc::clone(&worker), heartbeat));
    let from_std = |(listener, door)| Ok((TcpListener::from_std(listener)?, door));
    let listeners: Vec<_> = listeners.into_iter().map(from_std).collect::<std::io::Result<_>>()?;
    // Whoever waits for this is still there: it has started this thread.
    let _ = ready.send(());
    let _ = life.wait_for(|life| *life >= Life::Runs).await;
    let doors: Vec<_> = listeners
        .into_iter()
        .map(|(listener, door)| {
            tokio::task::spawn_local(accept(Rc::clone(&worker), listener, door))
        })
        .collect();
    let _ = life.wait_for(|life| *life >= Life::Drains).await;
    doors.iter().for_each(tokio::task::JoinHandle::abort);
    worker.clients.stop();
    drain(&worker, life).await;
    drop(serving);
    Ok(())
}

/// Takes connections; dropping the listener is the end of it.
async fn accept(worker: Rc<Worker>, listener: TcpListener, door: Door) {
    loop {
        if let Ok((stream, peer)) = listener.accept().await {
            client::serve(&worker, stream, peer, door);
        } else {
            worker.shared.metrics.accept_failed();
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
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
            // The watch itself has failed: departures behind unread bytes go unseen from now on.
            worker.shared.metrics.watch_failed();
            return;
        }
    }
}

async fn tick(worker: Rc<Worker>, heartbeat: Arc<AtomicU64>) {
    let mut interval = tokio::time::interval(TICK);
    // After a pause of the whole machine, time has not passed for those who could not use it.
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for quarter in 1_u64.. {
        interval.tick().await;
        heartbeat.fetch_add(1, Ordering::Relaxed);
        let (memory, mut limits) = (&worker.shared.memory, worker.settings().config.limits);
        limits.header_timeout = memory.time(limits.header_timeout);
        limits.idle_timeout = memory.time(limits.idle_timeout);
        worker.clients.tick(&limits);
        if quarter.is_multiple_of(4) {
            worker.pool().tick();
        }
    }
}
