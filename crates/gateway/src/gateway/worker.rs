//! One thread of the data plane: a current-thread runtime that accepts and serves connections.
//!
//! **A panic.** A panic in the task of a connection ends that connection. If a worker's accept
//! loop, tick or watch of disconnects ends, the worker cannot serve. Then it counts as not serving
//! (`/readyz` is 503), and its connections are cut off. It starts again on the same listening
//! sockets with a new runtime and new tasks. It starts at most once in [`LEAST_LIFE`], so a worker
//! that fails at every start costs little. Meanwhile clients reach the other workers, which accept
//! from the same sockets.

use std::io;
use std::net::TcpListener as StdListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use bywash_terminal::stderr::say;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::client::{self, Clients, ListenerKind};
use crate::context::{LocalFuture, Worker};
use crate::process::lifecycle::Lifecycle;
#[cfg(test)]
use crate::process::panics::Trap;
use crate::process::runtime;
use crate::settings::Settings;
use crate::shared::Shared;

/// The parts that a worker needs to start, and to start again after a failure.
pub(crate) struct Start {
    pub(crate) shared: Arc<Shared>,
    pub(crate) listeners: Vec<(StdListener, ListenerKind)>,
    pub(crate) lifecycle: watch::Receiver<Lifecycle>,
    pub(crate) settings: watch::Receiver<Arc<Settings>>,
    /// A counter that the worker increases with every tick while its event loop runs.
    pub(crate) heartbeat: Arc<AtomicU64>,
}

/// The interval at which connections are checked for their time limits, and the resolution of the
/// limits on heads and idle time.
const TICK: Duration = Duration::from_millis(250);

/// The pause after a failed accept, which mostly means that no file descriptors are left. It is
/// long enough not to spin, and short enough not to be noticed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The minimum time from one start of a worker to the next.
const LEAST_LIFE: Duration = Duration::from_secs(1);

/// Counts a worker as serving for as long as this value lives.
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

/// The way in which the run of a started worker has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Stopped,
    /// A task without which the worker cannot serve has ended or panicked.
    Failed,
}

/// Runs one worker until the gateway stops it *and* its last connection has ended or is cut off.
/// Starts the worker again when it fails. Signals `ready` when the worker has started. If the first
/// start fails, returns its error.
pub(crate) fn run(mut start: Start, ready: &SyncSender<()>) -> io::Result<()> {
    for number in 0_u64.. {
        let began = Instant::now();
        let ended = catch_unwind(AssertUnwindSafe(|| run_once(&mut start, ready)));
        match ended.unwrap_or(Ok(Ended::Failed)) {
            Ok(Ended::Stopped) => break,
            Err(error) if number == 0 => return Err(error),
            Ok(Ended::Failed) | Err(_) if *start.lifecycle.borrow() >= Lifecycle::Drains => break,
            Ok(Ended::Failed) => log_restart("one of its tasks has ended or panicked"),
            Err(error) => log_restart(error),
        }
        start.shared.metrics.worker_restarted();
        #[cfg(test)]
        drop(start.shared.traps.restart.lock());
        std::thread::sleep(LEAST_LIFE.saturating_sub(began.elapsed()));
    }
    Ok(())
}

fn log_restart(why: impl std::fmt::Display) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a worker");
    say(format!(
        "{name} has failed: {why}. This is a fault in bywash. The connections of the worker are \
         cut off, and it restarts"
    ));
}

fn run_once(start: &mut Start, ready: &SyncSender<()>) -> io::Result<Ended> {
    runtime::local()?.block_on(serve(start, ready))
}

async fn serve(start: &mut Start, ready: &SyncSender<()>) -> io::Result<Ended> {
    let (shared, mut lifecycle) = (&start.shared, start.lifecycle.clone());
    let (departed, to_poll) = unbounded_channel();
    let worker = Rc::new(Worker::new(Arc::clone(shared), start.settings.clone(), departed));
    let clients = Rc::new(Clients::new()?);
    let from_std = |(listener, kind): &(StdListener, ListenerKind)| {
        Ok((TcpListener::from_std(listener.try_clone()?)?, *kind))
    };
    let listeners: Vec<_> = start.listeners.iter().map(from_std).collect::<io::Result<_>>()?;
    let mut tasks = JoinSet::new();
    tasks.spawn_local(watch_departures(Rc::clone(&worker), Rc::clone(&clients)));
    tasks.spawn_local(poll_departed(to_poll));
    tasks.spawn_local(evict(Rc::clone(&worker), Rc::clone(&clients)));
    tasks.spawn_local(tick(Rc::clone(&worker), Rc::clone(&clients), Arc::clone(&start.heartbeat)));
    let _serving = Serving::new(shared);
    // After a restart no thread waits for this signal any more.
    let _ = ready.send(());
    let _ = lifecycle.wait_for(|lifecycle| *lifecycle >= Lifecycle::Runs).await;
    let mut accepting = JoinSet::new();
    for (listener, kind) in listeners {
        accepting.spawn_local(accept(Rc::clone(&worker), Rc::clone(&clients), listener, kind));
    }
    tokio::select! {
        _ = lifecycle.wait_for(|lifecycle| *lifecycle >= Lifecycle::Drains) => {}
        _ = tasks.join_next() => return Ok(Ended::Failed),
        Some(_) = accepting.join_next() => return Ok(Ended::Failed),
    }
    // Close the listeners. The kernel refuses connections to a socket that no process has open.
    start.listeners.clear();
    drop(accepting);
    clients.stop();
    drain(&clients, lifecycle).await;
    Ok(Ended::Stopped)
}

/// Accepts connections for ever and serves each in a task of its own. Dropping the future closes
/// its copy of the listener.
async fn accept(
    worker: Rc<Worker>,
    clients: Rc<Clients>,
    listener: TcpListener,
    kind: ListenerKind,
) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                #[cfg(test)]
                worker.shared.traps.pass(Trap::Accept);
                client::serve(&worker, &clients, stream, peer, kind);
                // Let evicted connections close before more are accepted.
                if worker.shared.connections.open()
                    > worker.settings().config.client_limits.connections
                {
                    tokio::task::yield_now().await;
                }
            }
            Err(error) => {
                worker.shared.accept_failed(&error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Waits until the last connection has ended, or until the gateway ends. The caller then drops the
/// connections that are left.
async fn drain(clients: &Clients, mut lifecycle: watch::Receiver<Lifecycle>) {
    let empty = async {
        while clients.open() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = empty => {}
        _ = lifecycle.wait_for(|lifecycle| *lifecycle == Lifecycle::Ends) => {}
    }
}

async fn watch_departures(worker: Rc<Worker>, clients: Rc<Clients>) {
    loop {
        if clients.departures().await.is_err() {
            // The watch itself has failed, so disconnects behind unread bytes would go unseen.
            // Returning restarts the worker.
            worker.shared.metrics.watch_failed();
            return;
        }
    }
}

/// Runs the requests whose clients have left to their end, each in a task of its own.
async fn poll_departed(mut departed: UnboundedReceiver<LocalFuture>) {
    while let Some(request) = departed.recv().await {
        tokio::task::spawn_local(request);
    }
}

/// Ends the connections that were chosen for eviction, and keeps those that are not idle any more.
async fn evict(worker: Rc<Worker>, clients: Rc<Clients>) {
    loop {
        for eviction in clients.inbox().next().await {
            match clients.evict(&eviction) {
                Some(cause) => worker.shared.metrics.evicted(cause),
                None => worker.shared.connections.cancel_eviction(&eviction),
            }
        }
    }
}

async fn tick(worker: Rc<Worker>, clients: Rc<Clients>, heartbeat: Arc<AtomicU64>) {
    let mut interval = tokio::time::interval(TICK);
    // After a pause of the whole machine, missed ticks are not made up, because clients could not
    // use that time.
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for quarter in 1_u64.. {
        interval.tick().await;
        #[cfg(test)]
        for trap in [Trap::Hang, Trap::Tick] {
            worker.shared.traps.pass(trap);
        }
        heartbeat.fetch_add(1, Ordering::Relaxed);
        let (memory, mut limits) = (&worker.shared.memory, worker.settings().config.client_limits);
        limits.header_timeout = memory.time(limits.header_timeout);
        limits.idle_timeout = memory.time(limits.idle_timeout);
        clients.tick(&limits);
        if quarter.is_multiple_of(4) {
            worker.pool().tick();
        }
    }
}
