//! The composition root: from a configuration to a running gateway, and from there to the next.

mod threads;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bywash_config::{AdminAddress, Config};
use bywash_control::{Note, Subject, What};
use bywash_engine::{Class, Engine, Meter, Reading};
use bywash_handover::{Listener, Name, Sockets};
use bywash_units::Span;
use tokio::sync::watch;

use self::threads::Server;
use crate::access_log::AccessLog;
use crate::classes::{self, TooManyClasses};
use crate::driver::Driver;
use crate::journal::Journal;
use crate::learned::{self, Decided, For, Learned};
use crate::metrics::Metrics;
use crate::panics::Thread;
use crate::settings::Settings;
use crate::shared::{Life, Secret, Shared};
use crate::talk::say;
use crate::{access_log, listen, wall};

/// Why a gateway did not start, or did not take a new configuration.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// An address could not be listened on.
    #[error("cannot listen on {address} ({what}): {source}")]
    Listen {
        /// `listen.http`, `listen.https` or `listen.admin`.
        what: &'static str,
        /// Which address or path.
        address: String,
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
    /// Certificates cannot be used.
    #[error(transparent)]
    Tls(bywash_tls::TlsError),
    /// A key that only a start can change.
    #[error("{0} can be changed by a restart only; nothing was changed")]
    Fixed(&'static str),
    /// There have been too many classes.
    #[error(transparent)]
    Classes(#[from] TooManyClasses),
    /// The system gave no thread, or a thread not what it needs (file descriptors, most likely).
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// A running gateway. Dropping it stops it at once; [`Gateway::stop`] lets requests finish.
pub struct Gateway {
    shared: Arc<Shared>,
    listeners: Vec<(Name, Listener)>,
    life: watch::Sender<Life>,
    /// The same for operators, who are let in until the end, unless it is another process's turn.
    operators: watch::Sender<Life>,
    workers: Vec<Server>,
    helpers: Vec<Server>,
    heartbeats: Vec<Arc<AtomicU64>>,
    /// Reloads come one after the other.
    reloads: Mutex<()>,
}

/// The heartbeats of the workers. The operators' thread is not among them: requests are served without it, and a restart would
/// end them.
#[derive(Debug)]
pub struct Pulse {
    beats: Vec<Arc<AtomicU64>>,
    /// The slowest worker's count when it was last asked.
    last: u64,
}

impl Pulse {
    /// Returns whether every worker's event loop has turned since this was last asked. Waits for nothing.
    pub fn is_alive(&mut self) -> bool {
        let slowest = self.beats.iter().map(|beat| beat.load(Ordering::Relaxed)).min();
        let slowest = slowest.unwrap_or(0);
        std::mem::replace(&mut self.last, slowest) < slowest
    }
}

/// What a gateway may be given by a process before it or by its supervisor.
#[derive(Debug, Default)]
pub struct Inheritance {
    /// Sockets that listen already.
    pub sockets: Sockets,
    /// What [`Gateway::learned`] gave.
    pub learned: Option<Vec<u8>>,
}

/// How long the workers may take to cut off what is left.
const CUT_OFF: Span = Span::from_secs(1);

/// Starts a gateway that lets clients in at once.
pub fn start(config: Config, inheritance: Inheritance) -> Result<Gateway, GatewayError> {
    let gateway = prepare(config, inheritance)?;
    gateway.open();
    Ok(gateway)
}

/// Starts a gateway. Everything that can fail fails here, before the first connection is taken:
/// that is from [`Gateway::open`] on.
pub fn prepare(config: Config, inheritance: Inheritance) -> Result<Gateway, GatewayError> {
    let Inheritance { mut sockets, learned } = inheritance;
    let handed = learned;
    let learned = handed.as_deref().and_then(read_learned);
    let listeners = listen::all(&config.listen, &mut sockets)?;
    let metrics = Metrics::new();
    let log = AccessLog::open(&config.access_log, metrics.panics(Thread::AccessLog))?;
    let journal = Journal::new(log);
    let driver = Driver::new(engine(&config));
    let settings = Settings::new(config, &metrics, driver.now(), None)?;
    let secret = learned.as_ref().map_or_else(Secret::draw, Learned::secret);
    let shared = Arc::new(Shared::new(settings, driver, metrics, journal, secret));
    let settings = shared.settings();
    if let Some(learned) = learned {
        learned.restore(&shared, &settings);
    }
    if let Some(handed) = &handed {
        restore_decided(handed, &shared, &settings);
    }
    let (life, seen) = watch::channel(Life::Prepared);
    let (operators, _) = watch::channel(Life::Prepared);
    let changes = shared.changes();
    let mut gateway = Gateway {
        shared,
        listeners,
        life,
        operators,
        workers: Vec::new(),
        helpers: Vec::new(),
        heartbeats: Vec::new(),
        reloads: Mutex::new(()),
    };
    for number in 0..gateway.shared.worker_count() {
        gateway.start_worker(number, seen.clone(), changes.clone())?;
    }
    gateway.start_helpers(&seen, changes)?;
    Ok(gateway)
}

/// Returns what was learned before. Says so if it cannot be read.
fn read_learned(bytes: &[u8]) -> Option<Learned> {
    let learned = Learned::read(bytes);
    if learned.is_none() {
        say(
            "starting without what was learned before: it cannot be read; another version has written it, perhaps",
        );
    }
    learned
}

/// Takes over what operators had decided before, in whatever format the rest of it is.
fn restore_decided(bytes: &[u8], shared: &Shared, settings: &Settings) {
    match Decided::read(bytes) {
        Ok(decided) => decided.restore(shared),
        // Where there is a directory, decisions stand there as well.
        Err(why) if settings.config.state.is_none() => {
            shared.overriding.desk().lose(&why.to_string());
        }
        Err(_) => {}
    }
}

fn engine(config: &Config) -> Engine {
    let classes = engine_classes(config);
    let order = config.order.order(&classes);
    Engine::new(classes, order, config.engine.clone())
}

fn engine_classes(config: &Config) -> Vec<Class> {
    config.classes.iter().map(|class| class.class.clone()).collect()
}

/// What the policy is told of the machine.
pub struct Senses {
    driver: Arc<Driver>,
}

impl Senses {
    /// Which reading the policy in force wants, and over which time, if it wants one.
    pub fn meter(&self) -> Option<(Meter, Span)> {
        self.driver.meter()
    }

    /// Hands the engine a reading.
    pub fn read(&self, reading: Reading) {
        self.driver.read(reading);
    }
}

impl Gateway {
    /// Lets clients and operators in.
    pub fn open(&self) {
        let shared = &self.shared;
        let settings = shared.settings();
        let directory = settings.config.state.as_ref().map(|state| &*state.directory);
        shared.state_writer.open(directory);
        shared.audit.open(directory);
        shared.overriding.desk().open(shared);
        shared.elephants.open(shared);
        self.life.send_replace(Life::Runs);
        self.operators.send_replace(Life::Runs);
    }

    /// Where clients come in.
    pub fn http(&self) -> SocketAddr {
        self.address(Name::Http).unwrap_or_else(|| self.shared.settings().config.listen.http)
    }

    /// Where clients come in that speak TLS.
    pub fn https(&self) -> Option<SocketAddr> {
        self.address(Name::Https)
    }

    /// Where operators come in.
    pub fn admin(&self) -> AdminAddress {
        let place = self.place(Name::Admin);
        place.unwrap_or_else(|| self.shared.settings().config.listen.admin.clone())
    }

    fn address(&self, name: Name) -> Option<SocketAddr> {
        match self.place(name)? {
            AdminAddress::Tcp(address) => Some(address),
            AdminAddress::Unix(_) => None,
        }
    }

    fn place(&self, name: Name) -> Option<AdminAddress> {
        let (_, listener) = self.listeners.iter().find(|(other, _)| *other == name)?;
        listen::place(listener)
    }

    /// Sockets that are not where the configuration wants them: they were inherited, and stay as
    /// they are until a start without any. The key, where it is, where it should be.
    pub fn misplaced(&self) -> Vec<(&'static str, AdminAddress, AdminAddress)> {
        listen::misplaced(&self.shared.settings().config.listen, &self.listeners)
    }

    /// The listening sockets, for a process that takes over.
    pub fn sockets(&self) -> Vec<(Name, BorrowedFd<'_>)> {
        self.listeners.iter().map(|(name, listener)| (*name, listener.as_fd())).collect()
    }

    /// What is worth keeping when the process ends.
    pub fn learned(&self) -> Vec<u8> {
        learned::write(&self.shared, &self.shared.settings(), For::Successor)
    }

    /// A handle for a thread that keeps it, but for decisions, which are kept as they are made.
    pub fn learner(&self) -> impl Fn() -> Vec<u8> + Send + use<> {
        let shared = Arc::clone(&self.shared);
        move || learned::write(&shared, &shared.settings(), For::Disk)
    }

    /// What is decided is told to this from now on, and no more said on standard error: whoever links the library has words of
    /// its own. The next decision waits for it, so it must ask nothing of this gateway.
    pub fn tell_decisions(&self, teller: impl Fn(&Note) + Send + 'static) {
        self.shared.audit.tell(teller);
    }

    /// On: no decisions, every request goes straight to the upstream.
    pub fn bypass(&self, on: bool) {
        self.shared.overriding.desk().start_bypassed(&self.shared, on);
    }

    /// Whether it takes no decisions for as long as it runs: not for a while, as an operator has said.
    pub fn starts_bypassed(&self) -> bool {
        self.shared.overriding.desk().starts_bypassed()
    }

    /// True: a successor is about to read what operators have decided, and nothing is decided here any more. False: it did
    /// not take over.
    pub fn give_decisions_away(&self, are_given_away: bool) {
        self.shared.elephants.give_away(are_given_away);
        self.shared.overriding.give_away(are_given_away);
        // What is not written yet goes to the successor, and must not take the place of what that writes.
        self.shared.state_writer.pause(are_given_away);
    }

    /// How long running requests have at the end, as it is in force.
    pub fn grace(&self) -> Span {
        self.shared.settings().config.stop.grace
    }

    /// A handle for a thread that reads the machine.
    pub fn senses(&self) -> Senses {
        Senses { driver: Arc::clone(&self.shared.driver) }
    }

    /// Returns a handle for the thread that feeds the watchdog.
    pub fn pulse(&self) -> Pulse {
        Pulse { beats: self.heartbeats.clone(), last: 0 }
    }

    /// Puts another configuration in force. Requests that run and wait go on; new ones begin
    /// under it.
    ///
    /// # Errors
    /// When it cannot be: then nothing has changed.
    pub fn reload(&self, config: Config) -> Result<(), GatewayError> {
        let exchanged = self.exchange(config);
        self.shared.metrics.reloaded(exchanged.is_ok());
        exchanged
    }

    /// Counts a reload that failed before there was another configuration: its file cannot be read, or is wrong.
    pub fn reload_failed(&self) {
        self.shared.metrics.reloaded(false);
    }

    fn exchange(&self, config: Config) -> Result<(), GatewayError> {
        // Files are read without the lock of decisions: these do not wait for a disk, and are put in force again at the end.
        let _reload = self.reloads.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.shared.settings();
        fixed(&before.config, &config)?;
        let config = classes::continuing(config, &before.config)?;
        let log = access_log::open(&config.access_log)?;
        let now = self.shared.driver.now();
        // Certificates are exchanged here, last of all that can fail.
        let settings = Settings::new(config, &self.shared.metrics, now, Some(&before))?;
        self.shared.journal.log().go_on(log);
        let (config, was) = (&settings.config, &before.config.order);
        let classes = engine_classes(config);
        let order = |had: &[Class]| config.order.changed_order(&engine_classes(config), was, had);
        self.shared.driver.reconfigure(classes, order, config.engine.clone());
        self.shared.audit.note(&self.shared.state_writer, vec![reloaded()], None);
        self.shared.overriding.desk().configured(&self.shared, &settings);
        self.shared.elephants.configured(&self.shared);
        Ok(())
    }

    /// Says that it is not ready any more, goes on for the configured delay, takes no more
    /// connections, lets running and waiting requests end for at most `grace`, then cuts off what
    /// is left. Says how many connections that were.
    pub fn stop(self, grace: Span) -> usize {
        let delay = self.shared.settings().config.stop.delay;
        self.leave(delay, grace)
    }

    /// The same without the delay: somebody else serves on the same sockets already. That one is
    /// who operators mean, so they are let in here no more.
    pub fn give_way(mut self, grace: Span) -> usize {
        self.operators.send_replace(Life::Drains);
        self.listeners.clear();
        self.leave(Span::ZERO, grace)
    }

    fn leave(mut self, delay: Span, grace: Span) -> usize {
        self.shared.is_leaving.store(true, Ordering::Relaxed);
        std::thread::sleep(delay.to_std());
        self.shared.is_draining.store(true, Ordering::Relaxed);
        self.life.send_replace(Life::Drains);
        // A socket that nobody else has open refuses connections from here on.
        self.listeners.retain(|(name, _)| *name == Name::Admin);
        self.wait_for_workers(grace);
        let left = self.shared.connections.open();
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
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.life.send_replace(Life::Ends);
        self.operators.send_replace(Life::Ends);
        for helper in self.helpers.drain(..) {
            let _ = helper.join();
        }
        self.shared.state_writer.end();
        if let Some(tracer) = &self.shared.settings().tracer {
            tracer.flush();
        }
    }
}

/// What only a start can change must be as it was.
fn fixed(before: &Config, after: &Config) -> Result<(), GatewayError> {
    let directory = |config: &Config| config.state.as_ref().map(|state| state.directory.clone());
    let save_every = |config: &Config| config.state.as_ref().map(|state| state.save_every);
    let state = [
        ("state.directory", directory(before) == directory(after)),
        ("state.save_every", save_every(before) == save_every(after)),
    ];
    let (before, after) = (&before.listen, &after.listen);
    let listen = [
        ("listen.http", before.http == after.http),
        ("listen.https", before.https == after.https),
        ("listen.admin", before.admin == after.admin),
        ("listen.workers", before.workers == after.workers),
    ];
    let changed = listen.iter().chain(&state).find(|(_, same)| !same);
    changed.map_or(Ok(()), |(key, _)| Err(GatewayError::Fixed(key)))
}

fn reloaded() -> Note {
    Note {
        at: wall::now(),
        subject: Subject::File,
        what: What::Reloaded,
        by: "the file".into(),
        why: "it was read again, and is in force".into(),
        grants: None,
        until: None,
        unwritten: None,
    }
}

#[cfg(test)]
mod tests;
