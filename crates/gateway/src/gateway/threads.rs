//! Starts the threads of a gateway: workers, and helper threads.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use bywash_handover::{Listener, Name};
use bywash_units::{Time, TimeSpan};
use tokio::sync::watch;

use super::{Gateway, probes, worker};
use crate::admin;
use crate::client::ListenerKind;
use crate::decisions::watch as elephants_watch;
use crate::driver::Driver;
use crate::error::GatewayError;
use crate::process::lifecycle::Lifecycle;
use crate::process::panics;
use crate::process::panics::Thread;
use crate::settings::Settings;
use crate::shared::Shared;

pub(super) type Server = JoinHandle<io::Result<()>>;

impl Gateway {
    pub(super) fn start_worker(
        &mut self,
        number: usize,
        lifecycle: watch::Receiver<Lifecycle>,
        settings: watch::Receiver<Arc<Settings>>,
    ) -> Result<(), GatewayError> {
        let heartbeat = Arc::new(AtomicU64::new(0));
        self.heartbeats.push(Arc::clone(&heartbeat));
        let listeners = self.client_listeners().map_err(GatewayError::Thread)?;
        let shared = Arc::clone(&self.shared);
        let start = worker::Start { shared, listeners, lifecycle, settings, heartbeat };
        let run = |ready| move || worker::run(start, &ready);
        let name = Some(format!("worker-{number}"));
        self.workers.push(start_server(&self.shared, Thread::Worker, name, run)?);
        Ok(())
    }

    fn client_listeners(&self) -> io::Result<Vec<(TcpListener, ListenerKind)>> {
        let mut listeners = Vec::new();
        for (name, listener) in &self.listeners {
            let kind = match name {
                Name::Http => ListenerKind::Clear,
                Name::Https => ListenerKind::Tls,
                Name::Admin => continue,
            };
            if let Listener::Tcp(listener) = listener {
                listeners.push((listener.try_clone()?, kind));
            }
        }
        Ok(listeners)
    }

    pub(super) fn start_helpers(
        &mut self,
        lifecycle: &watch::Receiver<Lifecycle>,
        settings: watch::Receiver<Arc<Settings>>,
    ) -> Result<(), GatewayError> {
        let admin = self.listeners.iter().find(|(name, _)| *name == Name::Admin);
        let (_, admin) = admin.expect("there is always one");
        let listener = admin.as_fd().try_clone_to_owned();
        let listener = listener.map_err(GatewayError::Thread)?;
        let listener = match admin {
            Listener::Unix(_) => Listener::Unix(listener.into()),
            Listener::Tcp(_) => Listener::Tcp(listener.into()),
        };
        let (shared, until) = (Arc::clone(&self.shared), self.operators.subscribe());
        let run = |ready| move || admin::run(shared, listener, until, ready);
        self.helpers.push(start_server(&self.shared, Thread::Admin, None, run)?);
        let shared = Arc::clone(&self.shared);
        let run = move || {
            shared.state_writer.run();
            Ok(())
        };
        // Not joined, because this thread may wait for a disk that does not answer.
        drop(spawn(&self.shared, Thread::StateWriter, None, run)?);
        let (shared, until) = (Arc::clone(&self.shared), lifecycle.clone());
        let run = move || {
            keep_time(&shared.driver, &until);
            Ok(())
        };
        self.helpers.push(spawn(&self.shared, Thread::Timekeeper, None, run)?);
        let (shared, until, seen) = (Arc::clone(&self.shared), lifecycle.clone(), settings.clone());
        let run = move || {
            elephants_watch::run(&shared, seen, &until);
            Ok(())
        };
        self.helpers.push(spawn(&self.shared, Thread::Elephants, None, run)?);
        #[cfg(feature = "fleet")]
        if let Some(fleet) = self.shared.settings().config.fleet.clone() {
            let (shared, until) = (Arc::clone(&self.shared), lifecycle.clone());
            let run = move || super::fleet::run(&shared, fleet, until);
            self.helpers.push(spawn(&self.shared, Thread::Fleet, None, run)?);
        }
        let (shared, until) = (Arc::clone(&self.shared), lifecycle.clone());
        let run = move || probes::run(&shared, settings, until);
        self.helpers.push(spawn(&self.shared, Thread::Probes, None, run)?);
        Ok(())
    }
}

/// Starts a thread that runs `run`, and counts its panics. If `name` is `None`, the thread gets the
/// name of its kind.
fn spawn(
    shared: &Shared,
    thread: Thread,
    name: Option<String>,
    run: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Result<Server, GatewayError> {
    let panics = shared.metrics.panics(thread);
    let name = name.unwrap_or_else(|| thread.name().into());
    let run = move || {
        panics::count(panics);
        run()
    };
    std::thread::Builder::new().name(name).spawn(run).map_err(GatewayError::Thread)
}

/// Starts a thread that serves, and waits until it signals that it is ready. If the thread ends
/// earlier, returns the reason as an error.
fn start_server<R>(
    shared: &Shared,
    thread: Thread,
    name: Option<String>,
    run: impl FnOnce(SyncSender<()>) -> R,
) -> Result<Server, GatewayError>
where
    R: FnOnce() -> io::Result<()> + Send + 'static,
{
    let (ready, is_ready) = sync_channel(1);
    let server = spawn(shared, thread, name, run(ready))?;
    if is_ready.recv().is_ok() {
        return Ok(server);
    }
    let panicked = || Err(io::Error::other("the thread has panicked"));
    let ended = server.join().unwrap_or_else(|_| panicked());
    Err(GatewayError::Thread(
        ended.err().unwrap_or_else(|| io::Error::other("the thread has ended")),
    ))
}

/// Calls the engine whenever its timer is due, for example when a request has waited as long as it
/// may.
///
/// The thread sleeps in steps shorter than any wait worth counting, so nothing has to wake it. It
/// sees a new time limit soon, and ends soon after the gateway does.
fn keep_time(driver: &Driver, lifecycle: &watch::Receiver<Lifecycle>) {
    const STEP: TimeSpan = TimeSpan::from_millis(50);
    while *lifecycle.borrow() != Lifecycle::Ends {
        let now = driver.now();
        let due = driver.on_timer().map_or(STEP, |at: Time| at.since(now));
        std::thread::sleep(due.clamp_to(TimeSpan::from_millis(1), STEP).to_std());
    }
}
