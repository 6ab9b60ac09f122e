//! The composition root: from a configuration to a running gateway.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bywash_config::Config;
use bywash_engine::{Engine, Reading};
use bywash_units::{Span, Time};
use tokio::sync::watch;

use crate::access_log::AccessLog;
use crate::driver::Driver;
use crate::metrics::Metrics;
use crate::shared::{Life, Shared};
use crate::{admin, worker};

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// An address could not be listened on.
    #[error("cannot listen on {address} ({what}): {source}")]
    Listen {
        /// `listen.http` or `listen.admin`.
        what: &'static str,
        /// Which address.
        address: SocketAddr,
        /// Why; in use, most likely.
        source: io::Error,
    },
    /// The access log could not be opened.
    #[error("cannot open the access log {}: {source}", .path.display())]
    Log {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system gave no thread, or a thread not what it needs (file descriptors, most likely).
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// A running gateway. Dropping it stops it at once; [`Gateway::stop`] lets requests finish.
pub struct Gateway {
    shared: Arc<Shared>,
    http: SocketAddr,
    admin: SocketAddr,
    life: watch::Sender<Life>,
    workers: Vec<Server>,
    helpers: Vec<Server>,
}

/// How long the workers may take to cut off what is left.
const CUT_OFF: Span = Span::from_secs(1);

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Starts a gateway. Everything that can fail fails here, before the first connection is taken.
pub fn start(config: Config) -> Result<Gateway, GatewayError> {
    let http = listen("listen.http", config.listen.http)?;
    let admin = listen("listen.admin", config.listen.admin)?;
    let (http_address, admin_address) = (address_of(&http), address_of(&admin));
    let log = AccessLog::open(&config.access_log)?;
    let classes: Vec<_> = config.classes.iter().map(|class| class.class.clone()).collect();
    let engine = Engine::new(classes.clone(), config.order.order(&classes), config.engine.clone());
    let metrics = Metrics::new(&config);
    let shared = Arc::new(Shared::new(config, Driver::new(engine), metrics, log));
    let (life, seen) = watch::channel(Life::Runs);
    let mut gateway = Gateway {
        shared,
        http: http_address,
        admin: admin_address,
        life,
        workers: Vec::new(),
        helpers: Vec::new(),
    };
    for number in 0..gateway.shared.worker_count() {
        let listener = http.try_clone().map_err(GatewayError::Thread)?;
        gateway.start_worker(number, listener, seen.clone())?;
    }
    gateway.start_helpers(admin, seen)?;
    Ok(gateway)
}

fn listen(what: &'static str, address: SocketAddr) -> Result<TcpListener, GatewayError> {
    use socket2::{Domain, Protocol, Socket, Type};
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A restart must not wait for the last process's connections to be forgotten. This does
        // not let two processes share the port.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    };
    open().map_err(|source| GatewayError::Listen { what, address, source })
}

fn address_of(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().expect("a bound socket has an address")
}

impl Gateway {
    /// Where clients come in.
    pub const fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where operators come in.
    pub const fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// On: no decisions, every request goes straight to the upstream.
    pub fn bypass(&self, on: bool) {
        self.shared.bypass.store(on, Ordering::Relaxed);
    }

    /// How often the policy wants a CPU reading, if it wants one.
    pub fn cpu_interval(&self) -> Option<Span> {
        self.shared.driver.cpu_interval()
    }

    /// Hands the engine a reading of the machine, from any thread.
    pub fn reader(&self) -> impl Fn(Reading) + Send + use<> {
        let driver = Arc::clone(&self.shared.driver);
        move |reading| driver.read(reading)
    }

    /// Takes no more connections, lets running and waiting requests end for at most `grace`, then
    /// cuts off what is left. Says how many connections that were.
    pub fn stop(self, grace: Span) -> usize {
        self.shared.draining.store(true, Ordering::Relaxed);
        self.life.send_replace(Life::Drains);
        self.wait_for_workers(grace);
        let left = self.shared.connections.load(Ordering::Relaxed);
        self.life.send_replace(Life::Ends);
        self.wait_for_workers(CUT_OFF);
        left
    }

    fn wait_for_workers(&self, limit: Span) {
        let end = Instant::now() + limit.to_std();
        while Instant::now() < end && !self.workers.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn start_worker(
        &mut self,
        number: usize,
        listener: TcpListener,
        life: watch::Receiver<Life>,
    ) -> Result<(), GatewayError> {
        let shared = Arc::clone(&self.shared);
        let run = |ready| move || worker::run(shared, listener, life, ready);
        self.workers.push(start_server(format!("worker-{number}"), run)?);
        Ok(())
    }

    fn start_helpers(
        &mut self,
        admin: TcpListener,
        life: watch::Receiver<Life>,
    ) -> Result<(), GatewayError> {
        let (shared, until) = (Arc::clone(&self.shared), life.clone());
        let run = |ready| move || admin::run(shared, admin, until, ready);
        self.helpers.push(start_server("admin".into(), run)?);
        if let Some(longest) = self.shared.config.engine.max_wait {
            let shared = Arc::clone(&self.shared);
            let run = move || {
                keep_time(&shared.driver, longest, &life);
                Ok(())
            };
            self.helpers.push(spawn("timekeeper".into(), run)?);
        }
        Ok(())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.life.send_replace(Life::Ends);
        for helper in self.helpers.drain(..) {
            let _ = helper.join();
        }
    }
}

type Server = JoinHandle<io::Result<()>>;

fn spawn(
    name: String,
    run: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Result<Server, GatewayError> {
    std::thread::Builder::new().name(name).spawn(run).map_err(GatewayError::Thread)
}

/// Starts a thread that serves, and waits until it does; if it ends before, says why.
fn start_server<R>(
    name: String,
    run: impl FnOnce(SyncSender<()>) -> R,
) -> Result<Server, GatewayError>
where
    R: FnOnce() -> io::Result<()> + Send + 'static,
{
    let (ready, is_ready) = sync_channel(1);
    let server = spawn(name, run(ready))?;
    if is_ready.recv().is_ok() {
        return Ok(server);
    }
    let panicked = || Err(io::Error::other("it has panicked"));
    let ended = server.join().unwrap_or_else(|_| panicked());
    Err(GatewayError::Thread(ended.err().unwrap_or_else(|| io::Error::other("it has ended"))))
}

/// Calls the engine when a request has waited as long as it may.
///
/// Nothing has to wake this thread: a request that arrives while it sleeps expires `longest`
/// later at the earliest. It sleeps in steps, so as to end soon when the gateway does.
fn keep_time(driver: &Driver, longest: Span, life: &watch::Receiver<Life>) {
    const STEP: Span = Span::from_millis(50);
    while *life.borrow() != Life::Ends {
        let now = driver.now();
        let due = driver.on_timer().map_or(longest, |at: Time| at.since(now));
        std::thread::sleep(due.clamp_to(Span::from_millis(1), STEP).to_std());
    }
}
