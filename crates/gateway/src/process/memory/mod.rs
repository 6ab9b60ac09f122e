//! The budget for all memory that clients can make the gateway hold, and the measures near it.
//!
//! Every buffer that a client can fill is counted in one number: a [`MemoryReservation`] counts one
//! holder's bytes and gives them back when it is dropped. Buffers are counted when their capacity
//! changes. The HTTP/2 and TLS libraries do not report the size of their state. It is counted by
//! the constants below, which `survival memory` measures.
//!
//! Near the budget an overload manager acts in three levels, as Envoy's does. First it shrinks the
//! buffers that each client may fill. Then it gives clients less time for their next request. At
//! last it refuses bodies and lets new connections take the place of idle ones. A level ends
//! [`BACK`] percent of the budget below the mark at which it begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use bywash_config::{Config, Scheme};
use bywash_terminal::stderr;
use bywash_units::TimeSpan;

/// One open connection without a request: its task and its entry among the watched ones. The
/// kernel's structures for it are included, as they are charged to the control group as well.
pub(crate) const CONNECTION: usize = 10 * KIB;
/// One request from its head to the end of its answer, without its bodies: its futures and fields.
pub(crate) const REQUEST: usize = 8 * KIB;
/// One TLS session, its handshake included.
pub(crate) const TLS: usize = 20 * KIB;
/// The data that rustls keeps while its client does not read: the library's limit.
pub(crate) const TLS_UNSENT: usize = 64 * KIB;
/// One HTTP/2 connection: the library's buffers for frames and its two HPACK tables.
pub(crate) const HTTP2: usize = 36 * KIB;

/// The size up to which a body is never refused for lack of memory: a login, an order.
const SMALL_BODY: u64 = 16 * 1024;
/// The bytes that may be read ahead of a waiting request's body, near the budget.
const LITTLE_AHEAD: usize = 16 * KIB;
/// The bytes of a client's data that the kernel may hold, near the budget.
const LITTLE_SOCKET: usize = 32 * KIB;
/// The time for the head of a request, and for the next request, from [`Level::Close`] on.
const LITTLE_TIME: TimeSpan = TimeSpan::from_secs(3);

/// The time after which a client whose body was refused may retry. Meanwhile timeouts free the
/// memory of others.
pub(crate) const RETRY_AFTER: TimeSpan = TimeSpan::from_secs(10);

/// The percentage of the budget by which use must fall below a level's mark before the level ends.
const BACK: usize = 5;

/// How close use is to the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// No measures.
    Calm,
    /// Windows and buffers for new data are small.
    Shrink,
    /// Connections that wait for their clients end soon. HTTP/2 connections end after their present
    /// requests.
    Close,
    /// Large bodies are refused. A new connection takes the place of an idle one, or is refused.
    Refuse,
}

impl Level {
    pub(crate) const ALL: [Self; 4] = [Self::Calm, Self::Shrink, Self::Close, Self::Refuse];

    /// The level's name in the log, the metrics and the status.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Shrink => "shrink",
            Self::Close => "close",
            Self::Refuse => "refuse",
        }
    }

    /// The percentage of the budget at which the level begins.
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

    /// Returns the level for this use, after level `self`.
    fn next(self, used: usize, budget: usize) -> Self {
        let holds = |level: &&Self| {
            let mark =
                if **level <= self { level.begins().saturating_sub(BACK) } else { level.begins() };
            used >= budget / 100 * mark
        };
        Self::ALL.iter().rev().find(holds).copied().unwrap_or(Self::Calm)
    }
}

/// The memory that all clients of one gateway hold together.
#[derive(Debug)]
pub(crate) struct Memory {
    used: AtomicUsize,
    /// The kernel's buffers, if they are charged to the control group; read once a second.
    kernel: AtomicUsize,
    /// The bytes of waiting requests' bodies, which `used` includes.
    read_ahead: AtomicUsize,
    budget: AtomicUsize,
    level: AtomicU8,
    /// The highest level since the last line in the log.
    peak: AtomicU8,
    /// The level that the last line in the log named.
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

    /// Counts `bytes` for as long as the returned value lives.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> MemoryReservation {
        let mut held = MemoryReservation { memory: Arc::clone(self), bytes: 0 };
        held.set(bytes);
        held
    }

    /// Counts more bytes, for holders that give them back with [`Memory::sub`].
    pub(crate) fn add(&self, bytes: usize) {
        self.look(self.used.fetch_add(bytes, Ordering::Relaxed) + bytes);
    }

    /// Counts fewer bytes.
    pub(crate) fn sub(&self, bytes: usize) {
        self.look(self.used.fetch_sub(bytes, Ordering::Relaxed) - bytes);
    }

    /// Counts more bytes of bodies that are read ahead.
    pub(crate) fn add_read_ahead(&self, bytes: usize) {
        self.read_ahead.fetch_add(bytes, Ordering::Relaxed);
        self.add(bytes);
    }

    /// Counts fewer bytes of bodies that are read ahead.
    pub(crate) fn sub_read_ahead(&self, bytes: usize) {
        self.read_ahead.fetch_sub(bytes, Ordering::Relaxed);
        self.sub(bytes);
    }

    /// Returns the number of bytes, over all requests, of bodies that were read ahead and not sent
    /// yet.
    pub(crate) fn read_ahead_by_all(&self) -> usize {
        self.read_ahead.load(Ordering::Relaxed)
    }

    /// Sets the level for this use. When two threads do so at once, the later one may have the
    /// older number; the next change, or the next second, corrects it.
    fn look(&self, counted: usize) {
        let used = counted + self.kernel.load(Ordering::Relaxed);
        let now = self.level();
        let next = now.next(used, self.budget());
        if next != now {
            self.level.store(next as u8, Ordering::Relaxed);
            self.peak.fetch_max(next as u8, Ordering::Relaxed);
        }
    }

    /// The bytes that clients hold.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed) + self.kernel.load(Ordering::Relaxed)
    }

    pub(crate) fn budget(&self) -> usize {
        self.budget.load(Ordering::Relaxed)
    }

    pub(crate) fn level(&self) -> Level {
        Level::of(self.level.load(Ordering::Relaxed))
    }

    /// Puts another budget in force.
    pub(crate) fn set_budget(&self, budget: usize) {
        self.budget.store(budget, Ordering::Relaxed);
        self.look(self.used.load(Ordering::Relaxed));
    }

    /// Takes the bytes that the kernel holds for the process's sockets. Logs the level if it has
    /// changed, or was higher meanwhile. Called once a second.
    pub(crate) fn tick(&self, kernel: usize) {
        self.kernel.store(kernel, Ordering::Relaxed);
        self.look(self.used.load(Ordering::Relaxed));
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

    /// Returns whether a body is refused. `length` is in bytes; `None` if its head does not give
    /// it.
    pub(crate) fn refuses_body(&self, length: Option<u64>) -> bool {
        self.level() == Level::Refuse && length.is_none_or(|length| length > SMALL_BODY)
    }

    /// Returns whether a new connection must take the place of another.
    pub(crate) fn replaces_connections(&self) -> bool {
        self.level() == Level::Refuse
    }

    /// Returns whether part of the budget is left.
    pub(crate) fn has_rest(&self) -> bool {
        self.used() < self.budget()
    }

    /// Returns whether HTTP/2 connections end after their present requests, and others that wait
    /// for their clients end soon.
    pub(crate) fn closes(&self) -> bool {
        self.level() >= Level::Close
    }

    /// Returns how much of a waiting request's body may be read ahead, if the file allows `most`.
    pub(crate) fn read_ahead(&self, most: usize) -> usize {
        self.shrinks(most, LITTLE_AHEAD)
    }

    /// Returns the kernel's buffer size for data that a new connection sends, if it is to be
    /// limited.
    pub(crate) fn socket_buffer(&self) -> Option<usize> {
        (self.level() >= Level::Shrink).then_some(LITTLE_SOCKET)
    }

    /// Returns `calm`, or no more than `little` near the budget.
    pub(crate) fn shrinks(&self, calm: usize, little: usize) -> usize {
        if self.level() >= Level::Shrink { calm.min(little) } else { calm }
    }

    /// Returns how long a client may take, if the file allows `calm`.
    pub(crate) fn time(&self, calm: TimeSpan) -> TimeSpan {
        if self.closes() { calm.min(LITTLE_TIME) } else { calm }
    }
}

/// The bytes of one holder, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryReservation {
    memory: Arc<Memory>,
    bytes: usize,
}

impl MemoryReservation {
    /// Sets the number of bytes that the holder has now.
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

/// The memory that a gateway may give its clients, and the figures that it follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// All bytes that clients may make the gateway hold.
    pub bytes: u64,
    /// The bytes that the gateway holds independently of clients: its tables at their limits.
    pub tables: u64,
    /// The bytes that the allocator needs in addition: freed memory that it has not returned yet.
    pub slack: u64,
    /// The bytes of the budget that one silent connection takes.
    pub connection: u64,
}

impl Budget {
    /// The number of silent connections that fit before keep-alive times are shortened.
    pub const fn connections(&self) -> u64 {
        self.bytes / 100 * Level::Close.begins() as u64 / self.connection
    }

    /// The most memory that the process may use.
    pub const fn whole(&self) -> u64 {
        self.bytes.saturating_add(self.tables).saturating_add(self.slack)
    }
}

/// The program, its threads and its runtimes, before the first client.
const PROGRAM: u64 = 24 * MIB;
/// The number of requests that the request log keeps for later questions.
pub(crate) const REQUEST_LOG_SIZE: usize = 10_000;
/// One entry of the request log with its method and target, at most.
const ENTRY: u64 = 1024;
/// One remembered session.
const SESSION: u64 = 256;
/// The bytes that an answer from an HTTP/2 server may fill before its client reads it.
const UPSTREAM_WINDOW: u64 = 256 * 1024;
/// The budget without a control group's limit: the divisor of the machine's memory, and the most
/// bytes of it.
const OF_MACHINE: u64 = 2;
const MOST_OF_MACHINE: u64 = 4096 * MIB;
/// The least budget, however large the tables are.
const LEAST: u64 = 16 * MIB;

/// Returns the budget of a gateway with this configuration. `limit` is that of its control group,
/// `machine` the memory of the machine. If neither is known, the machine is assumed to have 1 GiB.
///
/// The budget takes three fifths of the memory that the tables leave. The rest is for the
/// allocator, which keeps pages of freed bodies, and for growing bodies, which have two buffers for
/// a moment.
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
