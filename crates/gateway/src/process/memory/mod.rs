//! The budget for all memory that clients can make the gateway hold, and the measures taken when it
//! is nearly used up.
//!
//! Every buffer that a client can fill is counted in one total. A [`MemoryReservation`] counts the
//! bytes of one buffer, connection or request, and subtracts them when it is dropped. A buffer is
//! counted by its capacity, whenever that changes. The HTTP/2 and TLS libraries do not report the
//! size of their state. The constants below stand for it; `survival memory` measures them.
//!
//! As the use approaches the budget, measures are taken in three levels, like those of Envoy's
//! overload manager. The first level shrinks the buffers that each client may fill. The second
//! gives clients less time for their next request. The third refuses bodies, and closes idle
//! connections to make room for new ones. A level ends when the use has fallen [`BACK`] percent of
//! the budget below the mark at which the level begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use bywash_config::{Config, Scheme};
use bywash_terminal::stderr;
use bywash_units::TimeSpan;

/// The bytes counted for one open connection without a request: its task and its entry in the list
/// of watched connections. The kernel's structures for the connection are included, because the
/// control group is charged for them as well.
pub(crate) const CONNECTION: usize = 10 * KIB;
/// The bytes counted for one request from its head to the end of its answer: its futures and header
/// fields, without its bodies.
pub(crate) const REQUEST: usize = 8 * KIB;
/// The bytes counted for one TLS session, including its handshake.
pub(crate) const TLS: usize = 20 * KIB;
/// The maximum number of bytes that rustls buffers while its client does not read.
pub(crate) const TLS_UNSENT: usize = 64 * KIB;
/// The bytes counted for one HTTP/2 connection: the library's frame buffers and its two HPACK
/// tables.
pub(crate) const HTTP2: usize = 36 * KIB;

/// The largest body, in bytes, that is never refused for lack of memory. A login or an order is
/// smaller.
const SMALL_BODY: u64 = 16 * 1024;
/// The maximum number of bytes read ahead of one waiting request's body, from [`Level::Shrink`] on.
const LITTLE_AHEAD: usize = 16 * KIB;
/// The size in bytes of the kernel's buffer for the data of one client, from [`Level::Shrink`] on.
const LITTLE_SOCKET: usize = 32 * KIB;
/// The maximum time for the head of a request, and for the pause before the next request, from
/// [`Level::Close`] on.
const LITTLE_TIME: TimeSpan = TimeSpan::from_secs(3);

/// The time after which a client whose body was refused may retry. In that time, timeouts of other
/// clients free memory.
pub(crate) const RETRY_AFTER: TimeSpan = TimeSpan::from_secs(10);

/// A level ends when the use has fallen this many percent of the budget below the mark at which the
/// level begins.
const BACK: usize = 5;

/// The level of memory pressure: how near the use is to the budget. Each level includes the
/// measures of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// No measures are taken.
    Calm,
    /// Windows and buffers for new data are smaller.
    Shrink,
    /// Idle connections are closed after a shorter time. HTTP/2 connections end after their present
    /// requests.
    Close,
    /// Large bodies are refused. A new connection replaces an idle one, or is refused.
    Refuse,
}

impl Level {
    pub(crate) const ALL: [Self; 4] = [Self::Calm, Self::Shrink, Self::Close, Self::Refuse];

    /// Returns the level's name in the log, the metrics and the status.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Shrink => "shrink",
            Self::Close => "close",
            Self::Refuse => "refuse",
        }
    }

    /// Returns the percentage of the budget at which the level begins.
    const fn begins(self) -> usize {
        match self {
            Self::Calm => 0,
            Self::Shrink => 60,
            Self::Close => 75,
            Self::Refuse => 90,
        }
    }

    const fn explanation(self) -> &'static str {
        match self {
            Self::Calm => "no restrictions",
            Self::Shrink => "windows and buffers are smaller",
            Self::Close => "connections of clients that send no request in time are closed sooner",
            Self::Refuse => "large bodies are refused, and new connections replace idle ones",
        }
    }

    fn of(number: u8) -> Self {
        Self::ALL[usize::from(number).min(Self::ALL.len() - 1)]
    }

    /// Returns the level at a use of `used` bytes of `budget`, if the level was `self` before.
    fn next(self, used: usize, budget: usize) -> Self {
        let holds = |level: &&Self| {
            let mark =
                if **level <= self { level.begins().saturating_sub(BACK) } else { level.begins() };
            used >= budget / 100 * mark
        };
        Self::ALL.iter().rev().find(holds).copied().unwrap_or(Self::Calm)
    }
}

/// The memory that all clients of one gateway hold together, in bytes.
#[derive(Debug)]
pub(crate) struct Memory {
    used: AtomicUsize,
    /// The bytes of the kernel's socket buffers, if the control group is charged for them. Read
    /// once a second.
    kernel: AtomicUsize,
    /// The bytes of waiting requests' bodies that were read ahead. `used` includes them.
    read_ahead: AtomicUsize,
    budget: AtomicUsize,
    level: AtomicU8,
    /// The highest level since the last log line.
    peak: AtomicU8,
    /// The level in the last log line.
    reported: AtomicU8,
}

impl Memory {
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            used: AtomicUsize::new(0),
            kernel: AtomicUsize::new(0),
            read_ahead: AtomicUsize::new(0),
            budget: AtomicUsize::new(budget),
            level: AtomicU8::new(0),
            peak: AtomicU8::new(0),
            reported: AtomicU8::new(0),
        }
    }

    /// Adds `bytes` to the total until the returned reservation is dropped.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> MemoryReservation {
        let mut held = MemoryReservation { memory: Arc::clone(self), bytes: 0 };
        held.set(bytes);
        held
    }

    /// Adds bytes to the total. The caller subtracts them again with [`Memory::sub`].
    pub(crate) fn add(&self, bytes: usize) {
        self.update_level(self.used.fetch_add(bytes, Ordering::Relaxed) + bytes);
    }

    /// Subtracts bytes that [`Memory::add`] has added.
    pub(crate) fn sub(&self, bytes: usize) {
        self.update_level(self.used.fetch_sub(bytes, Ordering::Relaxed) - bytes);
    }

    /// Adds bytes of bodies that are read ahead, to their own count and to the total.
    pub(crate) fn add_read_ahead(&self, bytes: usize) {
        self.read_ahead.fetch_add(bytes, Ordering::Relaxed);
        self.add(bytes);
    }

    /// Subtracts bytes that [`Memory::add_read_ahead`] has added.
    pub(crate) fn sub_read_ahead(&self, bytes: usize) {
        self.read_ahead.fetch_sub(bytes, Ordering::Relaxed);
        self.sub(bytes);
    }

    /// Returns the number of bytes of bodies that were read ahead and not sent yet, over all
    /// requests.
    pub(crate) fn read_ahead_by_all(&self) -> usize {
        self.read_ahead.load(Ordering::Relaxed)
    }

    /// Sets the level for a use of `counted` bytes plus those of the kernel. If two threads call
    /// this at once, the older number may win. The next change of the total, or the next second,
    /// corrects the level.
    fn update_level(&self, counted: usize) {
        let used = counted + self.kernel.load(Ordering::Relaxed);
        let now = self.level();
        let next = now.next(used, self.budget());
        if next != now {
            self.level.store(next as u8, Ordering::Relaxed);
            self.peak.fetch_max(next as u8, Ordering::Relaxed);
        }
    }

    /// Returns the number of bytes that all clients hold, including the kernel's buffers.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed) + self.kernel.load(Ordering::Relaxed)
    }

    pub(crate) fn budget(&self) -> usize {
        self.budget.load(Ordering::Relaxed)
    }

    pub(crate) fn level(&self) -> Level {
        Level::of(self.level.load(Ordering::Relaxed))
    }

    /// Replaces the budget, in bytes, and sets the level accordingly.
    pub(crate) fn set_budget(&self, budget: usize) {
        self.budget.store(budget, Ordering::Relaxed);
        self.update_level(self.used.load(Ordering::Relaxed));
    }

    /// Sets the number of bytes that the kernel holds for the process's sockets. Logs the level if
    /// the level has changed, or was higher since the last call. Called once a second.
    pub(crate) fn tick(&self, kernel: usize) {
        self.kernel.store(kernel, Ordering::Relaxed);
        self.update_level(self.used.load(Ordering::Relaxed));
        let level = self.level();
        let peak = Level::of(self.peak.swap(level as u8, Ordering::Relaxed)).max(level);
        let reported = Level::of(self.reported.swap(level as u8, Ordering::Relaxed));
        if peak == reported && level == reported {
            return;
        }
        let mebibytes = |bytes: usize| bytes as u64 / MIB;
        let (used, budget) = (mebibytes(self.used()), mebibytes(self.budget()));
        let (name, does) = (level.name(), level.explanation());
        let was = if peak > level {
            format!(", it was {} meanwhile", peak.name())
        } else {
            String::new()
        };
        stderr::say(format_args!(
            "memory of clients: level {name}{was} ({used} of {budget} MiB): {does}"
        ));
    }

    /// Returns whether a body of `length` bytes is refused. `length` is `None` if the head of the
    /// request does not give it. The body is then treated as a large one.
    pub(crate) fn refuses_body(&self, length: Option<u64>) -> bool {
        self.level() == Level::Refuse && length.is_none_or(|length| length > SMALL_BODY)
    }

    /// Returns whether a new connection is accepted only in place of an idle one.
    pub(crate) fn replaces_connections(&self) -> bool {
        self.level() == Level::Refuse
    }

    /// Returns whether fewer bytes are used than the budget allows.
    pub(crate) fn has_rest(&self) -> bool {
        self.used() < self.budget()
    }

    /// Returns whether HTTP/2 connections end after their present requests, and idle connections
    /// after a shorter time.
    pub(crate) fn closes(&self) -> bool {
        self.level() >= Level::Close
    }

    /// Returns the number of bytes that may be read ahead of one waiting request's body. `most` is
    /// the number that the configuration allows.
    pub(crate) fn read_ahead(&self, most: usize) -> usize {
        self.size_under_pressure(most, LITTLE_AHEAD)
    }

    /// Returns the size in bytes of the kernel's buffer for the data that a new connection's client
    /// sends. Returns `None` if the kernel's default applies.
    pub(crate) fn socket_buffer(&self) -> Option<usize> {
        (self.level() >= Level::Shrink).then_some(LITTLE_SOCKET)
    }

    /// Returns `calm`, or from [`Level::Shrink`] on the smaller of `calm` and `little`.
    pub(crate) fn size_under_pressure(&self, calm: usize, little: usize) -> usize {
        if self.level() >= Level::Shrink { calm.min(little) } else { calm }
    }

    /// Returns the time limit for a client. `calm` is the limit that the configuration sets, which
    /// is shortened from [`Level::Close`] on.
    pub(crate) fn time(&self, calm: TimeSpan) -> TimeSpan {
        if self.closes() { calm.min(LITTLE_TIME) } else { calm }
    }
}

/// The bytes of the budget that one buffer, connection or request takes. Dropping this value gives
/// them back.
#[derive(Debug)]
pub(crate) struct MemoryReservation {
    memory: Arc<Memory>,
    bytes: usize,
}

impl MemoryReservation {
    /// Sets the number of bytes that this reservation takes from now on.
    pub(crate) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        match bytes.cmp(&before) {
            std::cmp::Ordering::Greater => self.memory.add(bytes - before),
            std::cmp::Ordering::Less => self.memory.sub(before - bytes),
            std::cmp::Ordering::Equal => {}
        }
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) const fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.set(0);
    }
}

const KIB: usize = 1024;
const MIB: u64 = 1 << 20;

/// The memory that a gateway may give its clients, and the figures from which it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The number of bytes that all clients together may make the gateway hold.
    pub bytes: u64,
    /// The bytes that the gateway needs without any client: its program, and its tables when they
    /// are full.
    pub tables: u64,
    /// The bytes of freed memory that the allocator may keep, in addition to `bytes`.
    pub slack: u64,
    /// The bytes of the budget that one idle connection takes.
    pub connection: u64,
}

impl Budget {
    /// Returns the number of idle connections that fit before the gateway shortens keep-alive
    /// times.
    pub const fn connections(&self) -> u64 {
        self.bytes / 100 * Level::Close.begins() as u64 / self.connection
    }

    /// Returns the maximum number of bytes that the process may use: clients, tables and the
    /// allocator's slack together.
    pub const fn whole(&self) -> u64 {
        self.bytes.saturating_add(self.tables).saturating_add(self.slack)
    }
}

/// The bytes that the program, its threads and its runtimes use before the first client connects.
const PROGRAM: u64 = 24 * MIB;
/// The number of requests that the request log stores.
pub(crate) const REQUEST_LOG_SIZE: usize = 10_000;
/// The maximum number of bytes of one entry of the request log, with its method and target.
const ENTRY: u64 = 1024;
/// The bytes that the table of sessions needs for one session.
const SESSION: u64 = 256;
/// The maximum number of bytes of one answer from an HTTP/2 server that are buffered until the
/// client reads them.
const UPSTREAM_WINDOW: u64 = 256 * 1024;
/// The divisor of the machine's memory that gives the available memory if no control group limits
/// it.
const OF_MACHINE: u64 = 2;
/// The maximum of the available memory in bytes if no control group limits it.
const MOST_OF_MACHINE: u64 = 4096 * MIB;
/// The minimum budget in bytes, however large the tables are.
const LEAST: u64 = 16 * MIB;

/// Returns the budget of a gateway with this configuration. `limit` is the memory limit of its
/// control group, and `machine` the memory of the machine, both in bytes. If neither is known, the
/// machine is assumed to have 1 GiB.
///
/// The budget is three fifths of the memory that the tables leave, unless the configuration sets
/// it. The rest is for the allocator, which keeps pages of freed bodies, and for the second buffer
/// that a growing body has for a moment.
pub fn budget(config: &Config, limit: Option<u64>, machine: Option<u64>) -> Budget {
    let tables = tables(config);
    let machine = (machine.unwrap_or(1024 * MIB) / OF_MACHINE).min(MOST_OF_MACHINE);
    let have = limit.unwrap_or(machine);
    let bytes = config
        .client_limits
        .memory
        .unwrap_or_else(|| (have.saturating_sub(tables) / 5 * 3).max(LEAST));
    Budget { bytes, tables, slack: bytes / 3 * 2, connection: CONNECTION as u64 }
}

/// Returns the budget for this process, in bytes.
pub(crate) fn of_this_process(config: &Config) -> usize {
    let limit = bywash_sense::Grant::own().memory;
    let machine = bywash_sense::machine_memory();
    usize::try_from(budget(config, limit, machine).bytes).unwrap_or(usize::MAX)
}

fn tables(config: &Config) -> u64 {
    let is_http2 = config.upstream.servers.iter().any(|server| server.scheme != Scheme::Http);
    let slots = if is_http2 { u64::from(config.upstream.limit) } else { 0 };
    PROGRAM
        + 2 * REQUEST_LOG_SIZE as u64 * ENTRY
        + u64::from(config.engine.sessions) * SESSION
        + slots * UPSTREAM_WINDOW
}

#[cfg(test)]
mod tests;
