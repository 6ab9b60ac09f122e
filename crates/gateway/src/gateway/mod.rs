//! The composition root: starts a gateway from a configuration, and puts a new configuration in
//! force.

mod classes;
mod counts;
mod files;
#[cfg(feature = "fleet")]
mod fleet;
pub(crate) mod learned;
mod listen;
mod probes;
mod threads;
mod worker;

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bywash_config::{AdminAddress, Config, Fleet};
use bywash_control::{CONFIG_FILE, Note, Subject, What};
use bywash_engine::{Class, Engine, Meter, Reading};
use bywash_fleet::Holding;
use bywash_handover::{Listener, Name, Sockets};
use bywash_terminal::stderr::say;
use bywash_units::TimeSpan;
use tokio::sync::watch;

pub use self::files::Files;
use self::learned::{Decided, For, Learned};
use self::threads::Server;
use crate::decisions::{self, elephants, overrides};
use crate::driver::Driver;
use crate::error::GatewayError;
use crate::process::lifecycle::Lifecycle;
use crate::process::panics::Thread;
use crate::process::secret::Secret;
use crate::process::wall_clock;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::telemetry::access_log;
use crate::telemetry::access_log::AccessLog;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::request_log::RequestLog;

/// A running gateway. Dropping it cuts off all requests; [`Gateway::stop`] lets them finish.
pub struct Gateway {
    shared: Arc<Shared>,
    listeners: Vec<(Name, Listener)>,
    lifecycle: watch::Sender<Lifecycle>,
    /// The lifecycle of the operators' listener. That listener accepts connections until the
    /// gateway ends, unless another process takes over.
    operators: watch::Sender<Lifecycle>,
    /// The threads of the workers.
    workers: Vec<Server>,
    /// The other threads that are joined at the end.
    helpers: Vec<Server>,
    /// One counter per worker, which the worker increases while its event loop runs.
    heartbeats: Vec<Arc<AtomicU64>>,
    /// A lock that serializes reloads.
    reloads: Mutex<()>,
}

/// Checks whether the workers are alive, by their heartbeats.
///
/// The operators' thread is not checked. Requests are served without it, and a restart of the
/// process would end them.
#[derive(Debug)]
pub struct Liveness {
    beats: Vec<Arc<AtomicU64>>,
    /// The heartbeat count of the slowest worker at the last check.
    last: u64,
}

impl Liveness {
    /// Returns whether the slowest worker's heartbeat count has risen since the last call. Does not
    /// block.
    pub fn is_alive(&mut self) -> bool {
        let slowest = self.beats.iter().map(|beat| beat.load(Ordering::Relaxed)).min();
        let slowest = slowest.unwrap_or(0);
        std::mem::replace(&mut self.last, slowest) < slowest
    }
}

/// The state that a gateway may get from the process before it or from its supervisor.
#[derive(Debug, Default)]
pub struct Inheritance {
    /// The sockets that already listen.
    pub sockets: Sockets,
    /// The bytes that [`Gateway::learned`] returned in the process before; `None` if there are
    /// none.
    pub learned: Option<Vec<u8>>,
}

/// The maximum time in which the workers cut off the connections that are left after the grace.
const CUT_OFF: TimeSpan = TimeSpan::from_secs(1);

/// Starts a gateway that accepts clients at once. Returns an error if the gateway cannot be
/// prepared.
pub fn start(config: Config, inheritance: Inheritance) -> Result<Gateway, GatewayError> {
    let gateway = prepare(config, inheritance)?;
    gateway.open();
    Ok(gateway)
}

/// Starts a gateway that does not accept connections before [`Gateway::open`]. Every error that can
/// occur at a start occurs here: a socket, a file or a thread that cannot be opened or started.
pub fn prepare(config: Config, inheritance: Inheritance) -> Result<Gateway, GatewayError> {
    let Inheritance { mut sockets, learned } = inheritance;
    if config.fleet.is_some() && cfg!(not(feature = "fleet")) {
        return Err(GatewayError::NoFleet);
    }
    let handed = learned;
    let learned = handed.as_deref().and_then(read_learned);
    #[cfg(feature = "fleet")]
    if let Some(fleet) = &config.fleet {
        fleet::show_life(fleet)?;
    }
    let listeners = listen::all(&config.listen, &mut sockets)?;
    let metrics = Metrics::new();
    let log = AccessLog::open(&config.access_log, metrics.panics(Thread::AccessLog))?;
    let request_log = RequestLog::new(log);
    let driver = Driver::new(engine(&config));
    let settings = Settings::new(config, &metrics, driver.now(), None)?;
    if settings.config.fleet.is_some() {
        // Other gateways may have the slots of an earlier run of this one.
        driver.hold(Holding { slots: 1, until: None, then: 1 });
    }
    let secret = learned.as_ref().map_or_else(Secret::draw, Learned::secret);
    let shared = Arc::new(Shared::new(settings, driver, metrics, request_log, secret));
    let settings = shared.settings();
    if let Some(learned) = learned {
        learned.restore(&shared, &settings);
    }
    if let Some(handed) = &handed {
        restore_decided(handed, &shared, &settings);
    }
    let (lifecycle, seen) = watch::channel(Lifecycle::Prepared);
    let (operators, _) = watch::channel(Lifecycle::Prepared);
    let changes = shared.changes();
    let mut gateway = Gateway {
        shared,
        listeners,
        lifecycle,
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

/// Reads what the process before had learned. If the bytes cannot be read, logs a line and returns
/// `None`.
fn read_learned(bytes: &[u8]) -> Option<Learned> {
    let learned = Learned::read(bytes);
    if learned.is_none() {
        say("starting without the learned state: it cannot be read; perhaps another version has \
             written it");
    }
    learned
}

/// Takes over the decisions that operators made in the process before, even if the learned state
/// has another format. If they cannot be read and there is no state directory, that is recorded:
/// the gateway then opens bypassed.
fn restore_decided(bytes: &[u8], shared: &Shared, settings: &Settings) {
    match Decided::read(bytes) {
        Ok(decided) => decided.restore(shared),
        // With a state directory the decisions are read from the disk instead.
        Err(why) if settings.config.state.is_none() => {
            shared.overrides().lose(why.to_string());
        }
        Err(_) => {}
    }
}

fn engine(config: &Config) -> Engine {
    let classes = engine_classes(config);
    let scheduler = config.scheduler.scheduler(&classes);
    Engine::new(classes, scheduler, config.engine.clone())
}

fn engine_classes(config: &Config) -> Vec<Class> {
    config.classes.iter().map(|class| class.class.clone()).collect()
}

/// A handle by which a thread hands the engine measurements of the machine.
pub struct Senses {
    driver: Arc<Driver>,
}

impl Senses {
    /// Returns the kind of measurement that the scheduler needs, and the time to average it over.
    /// Returns `None` if the scheduler needs none.
    pub fn meter(&self) -> Option<(Meter, TimeSpan)> {
        self.driver.meter()
    }

    /// Hands the engine one reading of the machine.
    pub fn read(&self, reading: Reading) {
        self.driver.read(reading);
    }
}

impl Gateway {
    /// Puts saved decisions in force, and begins to accept clients and operators.
    pub fn open(&self) {
        let shared = &self.shared;
        decisions::open(shared);
        self.lifecycle.send_replace(Lifecycle::Runs);
        self.operators.send_replace(Lifecycle::Runs);
    }

    /// Returns the address of the listener for clients without TLS.
    pub fn http(&self) -> SocketAddr {
        self.address(Name::Http).unwrap_or_else(|| self.shared.settings().config.listen.http)
    }

    /// Returns the address of the listener for clients that use TLS; `None` if there is none.
    pub fn https(&self) -> Option<SocketAddr> {
        self.address(Name::Https)
    }

    /// Returns the address of the listener for operators.
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

    /// Returns the sockets whose address is not the configured one: the configuration key, the
    /// present address, and the configured address of each. These sockets were inherited, and stay
    /// as they are until a start without inherited sockets.
    pub fn misplaced(&self) -> Vec<(&'static str, AdminAddress, AdminAddress)> {
        listen::misplaced(&self.shared.settings().config.listen, &self.listeners)
    }

    /// Returns the listening sockets with their names, for a process that takes over.
    pub fn sockets(&self) -> Vec<(Name, BorrowedFd<'_>)> {
        self.listeners.iter().map(|(name, listener)| (*name, listener.as_fd())).collect()
    }

    /// Returns the learned state and the operators' decisions as bytes, for the process that takes
    /// over.
    pub fn learned(&self) -> Vec<u8> {
        learned::write(&self.shared, &self.shared.settings(), For::Successor)
    }

    /// Returns a function for the thread that saves the learned state to disk: each call returns
    /// the present state as bytes. Decisions are not included, because they are saved as they are
    /// made.
    pub fn learner(&self) -> impl Fn() -> Vec<u8> + Send + use<> {
        let shared = Arc::clone(&self.shared);
        move || learned::write(&shared, &shared.settings(), For::Disk)
    }

    /// Reports decisions to `reporter` from now on, and no longer on standard error. So a program
    /// that links the library can word them itself. The next decision waits for `reporter`, so it
    /// must not call this gateway.
    pub fn tell_decisions(&self, reporter: impl Fn(&Note) + Send + 'static) {
        self.shared.audit.report_to(reporter);
    }

    /// Turns start-up bypass on or off. While it is on, the gateway takes no decisions and every
    /// request goes straight to the upstream.
    pub fn bypass(&self, on: bool) {
        overrides::start_bypassed(&self.shared, on);
    }

    /// Returns whether start-up bypass is on. It lasts until an operator ends it; a temporary
    /// bypass that an operator has set does not count.
    pub fn starts_bypassed(&self) -> bool {
        self.shared.starts_bypassed.load(Ordering::Relaxed)
    }

    /// Freezes operators' decisions (`true`) before a successor reads them, or allows them again
    /// (`false`) because the successor did not take over.
    pub fn give_decisions_away(&self, are_given_away: bool) {
        decisions::hand_over(&self.shared, are_given_away);
    }

    /// Returns the configured grace period for requests that still run when the gateway stops
    /// (`stop.grace`).
    pub fn grace(&self) -> TimeSpan {
        self.shared.settings().config.stop.grace
    }

    /// Returns a handle for the thread that takes measurements of the machine.
    pub fn senses(&self) -> Senses {
        Senses { driver: Arc::clone(&self.shared.driver) }
    }

    /// Returns a handle for the thread that feeds the watchdog.
    pub fn liveness(&self) -> Liveness {
        Liveness { beats: self.heartbeats.clone(), last: 0 }
    }

    /// Puts another configuration in force. Requests that already run or wait go on; new requests
    /// are handled under the new configuration.
    ///
    /// # Errors
    /// Returns an error if the configuration cannot be put in force. Then nothing has changed.
    pub fn reload(&self, config: Config) -> Result<(), GatewayError> {
        let exchanged = self.exchange(config);
        self.shared.reloaded(exchanged.as_ref().err().map(ToString::to_string));
        exchanged
    }

    /// Records that a reload failed because the configuration file cannot be read or is wrong.
    /// Operators see `why` in the status.
    pub fn reload_failed(&self, why: impl Into<String>) {
        self.shared.reloaded(Some(why.into()));
    }

    fn exchange(&self, config: Config) -> Result<(), GatewayError> {
        // Files are read without holding the lock of decisions, so that decisions do not wait for a
        // disk. The decisions in force are applied to the new settings at the end.
        let _reload = self.reloads.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.shared.settings();
        fixed(&before.config, &config)?;
        let config = classes::continuing(config, &before.config)?;
        let log = access_log::open(&config.access_log)?;
        let now = self.shared.driver.now();
        // Certificates are exchanged here. This is the last operation of the reload that can fail.
        let settings = Settings::new(config, &self.shared.metrics, now, Some(&before))?;
        self.shared.request_log.log().go_on(log);
        let (config, was) = (&settings.config, &before.config.scheduler);
        let classes = engine_classes(config);
        let scheduler =
            |had: &[Class]| config.scheduler.changed_scheduler(&engine_classes(config), was, had);
        self.shared.driver.reconfigure(classes, scheduler, config.engine.clone());
        self.shared.audit.note(&self.shared.state_writer, vec![reloaded()], None);
        overrides::configured(&self.shared, &settings);
        elephants::configured(&self.shared);
        Ok(())
    }

    /// Stops the gateway. It first reports itself as not ready, and goes on to serve for the
    /// configured delay (`stop.delay`). Then it takes no more connections, and running and waiting
    /// requests may end for at most `grace`. After that the remaining connections are cut off.
    /// Returns the number of connections that were cut off.
    pub fn stop(self, grace: TimeSpan) -> usize {
        let delay = self.shared.settings().config.stop.delay;
        self.leave(delay, grace)
    }

    /// Stops the gateway without the delay, because another process already serves on the same
    /// sockets. Operators must reach that process, so they are no longer accepted here. Returns the
    /// number of connections that were cut off after `grace`.
    pub fn give_way(mut self, grace: TimeSpan) -> usize {
        self.operators.send_replace(Lifecycle::Drains);
        self.listeners.clear();
        self.leave(TimeSpan::ZERO, grace)
    }

    fn leave(mut self, delay: TimeSpan, grace: TimeSpan) -> usize {
        self.shared.is_leaving.store(true, Ordering::Relaxed);
        std::thread::sleep(delay.to_std());
        self.shared.is_draining.store(true, Ordering::Relaxed);
        self.lifecycle.send_replace(Lifecycle::Drains);
        // From here on the kernel refuses connections to a socket that no other process has open.
        self.listeners.retain(|(name, _)| *name == Name::Admin);
        self.wait_for_workers(grace);
        let left = self.shared.connections.open();
        self.lifecycle.send_replace(Lifecycle::Ends);
        self.wait_for_workers(CUT_OFF);
        left
    }

    fn wait_for_workers(&self, limit: TimeSpan) {
        let end = Instant::now() + limit.to_std();
        while Instant::now() < end && !self.workers.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.lifecycle.send_replace(Lifecycle::Ends);
        self.operators.send_replace(Lifecycle::Ends);
        for helper in self.helpers.drain(..) {
            let _ = helper.join();
        }
        self.shared.state_writer.end();
        if let Some(tracer) = &self.shared.settings().tracer {
            tracer.flush();
        }
    }
}

/// Checks that the configuration keys that only a restart can change have not changed. Returns an
/// error that names the first changed key.
fn fixed(before: &Config, after: &Config) -> Result<(), GatewayError> {
    let directory = |config: &Config| config.state.as_ref().map(|state| state.directory.clone());
    let save_every = |config: &Config| config.state.as_ref().map(|state| state.save_every);
    let state = [
        ("state.directory", directory(before) == directory(after)),
        ("state.save_every", save_every(before) == save_every(after)),
    ];
    let fleet = [("fleet", same_fleet(before.fleet.as_ref(), after.fleet.as_ref()))];
    let (before, after) = (&before.listen, &after.listen);
    let listen = [
        ("listen.http", before.http == after.http),
        ("listen.https", before.https == after.https),
        ("listen.admin", before.admin == after.admin),
        ("listen.workers", before.workers == after.workers),
    ];
    let changed = listen.iter().chain(&state).chain(&fleet).find(|(_, same)| !same);
    changed.map_or(Ok(()), |(key, _)| Err(GatewayError::Fixed(key)))
}

/// Returns whether two configurations describe the same place in the same fleet.
fn same_fleet(before: Option<&Fleet>, after: Option<&Fleet>) -> bool {
    let place = |fleet: &Fleet| {
        let Fleet { name, gateways, liveness, servers, subject, credentials, ca_file, .. } =
            fleet.clone();
        (name, gateways, liveness, servers, subject, credentials, ca_file)
    };
    before.map(place) == after.map(place)
}

fn reloaded() -> Note {
    Note {
        at: wall_clock::now(),
        subject: Subject::File,
        what: What::Reloaded,
        by: CONFIG_FILE.into(),
        why: "the configuration file was reloaded and is in force".into(),
        limits: None,
        until: None,
        unwritten: None,
        fleet: None,
    }
}

#[cfg(test)]
mod tests;
