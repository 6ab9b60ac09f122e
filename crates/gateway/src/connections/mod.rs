//! Client connections: how many may be open, whose they are, and which one is evicted.
//!
//! **The rule.** A connection belongs to its client's address (for IPv6: the /64). When
//! `client_limits.connections` are open, a new connection takes the place of an idle one:
//!
//! 1. Among the addresses with an idle *unproven* connection, the one with the most connections is
//!    chosen, and of that address the unproven connection that has been idle for longest. An
//!    unproven connection is one whose last request was of a session with standing `new`, or that
//!    has sent no request.
//! 2. If no unproven connection is idle, a *proven* one is chosen in the same way. This happens
//!    only while there are more proven connections than the reserve
//!    (`client_limits.proven_reserve`, a share of `client_limits.connections`).
//! 3. If there is no such connection either, the new connection is refused.
//!
//! The same rule applies, whatever the number of connections, while the memory budget is nearly
//! used up ([`Level::Refuse`](crate::process::memory)): each new connection takes the place of
//! another or is refused. In that case a connection that has sent no whole head counts as idle
//! after [`LITTLE_GRACE`], because the heads may be what uses the memory. The first connection of
//! an address that finds no other to replace is let in until the whole budget is used.
//!
//! Two bounds keep one address from using this rule against the others:
//!
//! - A new connection never takes the place of an address that has fewer connections than its own
//!   (the new one included). The first [`FEW`] connections of an address are excepted, because a
//!   browser opens six. While memory is short, only the first one is.
//! - One address holds no more than `client_limits.connections` less the reserve. Beyond that its
//!   new connections take the place of its own idle ones, or are refused.
//!
//! The connections of a trusted hop (`listen.trusted_proxies`) are shared by many users. Each
//! counts as if it came from a separate address, and as proven. A connection whose PROXY header has
//! not arrived also counts as if it came from a separate address, but not as proven.
//!
//! **Idle** is a connection between two requests. An HTTP/2 connection must also have sent nothing
//! for [`GRACE`], as the end of its last answer may wait in the library for a slow reader. A
//! connection that has not sent the head of its first request counts as idle after [`GRACE`]. So
//! does one whose next head does not come to its end. A connection with a request in progress, and
//! a tunnel, are never idle.
//!
//! **Costs.** The state of a connection is one atomic word that only its own worker writes. A
//! request takes no lock here and changes no shared counter, unless its standing differs from that
//! of the request before it. Opening and closing a connection takes the index's lock once each.
//! Only when the gateway is full does the index scan the words of all connections. A scan covers at
//! most [`MOST_SEEN`] of them, and the next one starts no sooner than [`PER_SEEN`] times that
//! number later. The result is used until the next scan; a candidate whose word has changed since
//! is skipped.
//!
//! **Eviction.** Connections live on their worker's thread. So the index puts the chosen one into
//! the worker's [`Inbox`]; the worker checks again that it is idle and ends it. The new connection
//! does not wait for that. Until then up to [`SPARE`] connections may be open beyond the limit.

mod index;

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bywash_config::ClientLimits;
use bywash_units::TimeSpan;
use tokio::sync::Notify;

use self::index::Index;
pub(crate) use self::index::{NoRoom, Owner};
use crate::process::memory::Memory;

/// How long a connection that has sent no whole head, or an HTTP/2 connection that has sent
/// nothing, does not count as idle, in quarters of a second. A TLS handshake over a bad line takes
/// a second or two, and a reader at 20 kB/s makes a full socket writable again in under two.
const GRACE: u32 = 12;

/// The value of [`GRACE`] for connections without a whole head while memory is short.
const LITTLE_GRACE: u32 = 4;

/// The number of connections of one address that may take the place of any other address's.
const FEW: usize = 16;

/// The number of connections that may be open beyond the limit while evicted ones close.
pub(crate) const SPARE: usize = 128;

/// The number of connections that one scan covers. The next scan starts after them.
const MOST_SEEN: usize = 16_384;

/// How long the index waits before it scans again, for each connection of the last scan.
const PER_SEEN: TimeSpan = TimeSpan::from_nanos(2_500);

/// The state of a connection that determines its time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Between requests.
    Idle,
    /// Opened, with no bytes received yet. Every connection begins here.
    Open,
    /// The head of a request, or the PROXY header or TLS handshake before it, is arriving.
    Head,
    /// A request is being processed.
    Busy,
    /// The connection carries another protocol. The tunnel itself sees the ends of both sides, in
    /// their order.
    Tunnel,
}

impl Phase {
    /// All phases, in the order of their discriminants.
    pub(crate) const ALL: [Self; 5] =
        [Self::Idle, Self::Open, Self::Head, Self::Busy, Self::Tunnel];
}

/// Why a connection was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evicted {
    /// The connection was between requests.
    Idle,
    /// The connection had sent no whole head for [`GRACE`].
    Silent,
    /// The connection was between requests, and its last one was of a proven session.
    Proven,
}

impl Evicted {
    pub(crate) const ALL: [Self; 3] = [Self::Idle, Self::Silent, Self::Proven];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Silent => "silent",
            Self::Proven => "idle_proven",
        }
    }
}

/// The state of a connection, which fits into one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// The time at which the phase began, in quarters of a second of its worker's clock.
    pub(crate) since: u32,
    /// Whether its last request was of a session whose standing was better than `new`.
    pub(crate) proven: bool,
    pub(crate) http2: bool,
}

impl State {
    /// The state word of a connection that has ended.
    const CLOSED: u64 = u64::MAX;

    const fn word(self) -> u64 {
        let flags = (self.phase as u64) | (self.proven as u64) << 4 | (self.http2 as u64) << 5;
        (self.since as u64) << 8 | flags
    }

    fn of(word: u64) -> Option<Self> {
        let phase = *Phase::ALL.get((word & 0xf) as usize)?;
        let (proven, http2) = (word >> 4 & 1 == 1, word >> 5 & 1 == 1);
        Some(Self { phase, since: (word >> 8) as u32, proven, http2 })
    }

    /// Returns how long the connection has been idle, if another may take its place. `grace`
    /// applies to a connection that has sent no whole head, in quarters of a second.
    fn idle(self, now: u32, grace: u32) -> Option<u32> {
        let lasted = now.wrapping_sub(self.since);
        let least = match self.phase {
            Phase::Idle if self.http2 => GRACE,
            Phase::Idle => 0,
            Phase::Open | Phase::Head => grace,
            Phase::Busy | Phase::Tunnel => return None,
        };
        (lasted >= least).then_some(lasted)
    }

    const fn cause(self) -> Evicted {
        match self.phase {
            Phase::Idle if self.proven => Evicted::Proven,
            Phase::Idle => Evicted::Idle,
            Phase::Open | Phase::Head | Phase::Busy | Phase::Tunnel => Evicted::Silent,
        }
    }
}

/// One open connection, as all threads see it. Only its worker writes its state.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    state: AtomicU64,
    /// The worker's key for the connection.
    token: AtomicU64,
    /// The position in the index, protected by the index's lock.
    position: AtomicUsize,
    inbox: Arc<Inbox>,
}

impl OpenConnection {
    pub(crate) fn new(inbox: &Arc<Inbox>, proven: bool) -> Arc<Self> {
        let state = State { phase: Phase::Open, since: inbox.now(), proven, http2: false };
        Arc::new(Self {
            state: AtomicU64::new(state.word()),
            token: AtomicU64::new(u64::MAX),
            position: AtomicUsize::new(0),
            inbox: Arc::clone(inbox),
        })
    }

    fn word(&self) -> u64 {
        self.state.load(Ordering::Relaxed)
    }

    pub(crate) fn state(&self) -> State {
        State::of(self.word()).expect("its worker asks while it is open")
    }

    pub(crate) fn set(&self, state: State) {
        self.state.store(state.word(), Ordering::Relaxed);
    }

    pub(crate) fn set_token(&self, token: u64) {
        self.token.store(token, Ordering::Relaxed);
    }
}

/// Evictions for one worker: the connections that it is to close.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    evictions: Mutex<Vec<Eviction>>,
    notify: Notify,
    /// The worker's coarse clock, in quarters of a second.
    quarters: AtomicU32,
}

/// A connection chosen for eviction. It is evicted only if its word is still the same.
#[derive(Debug)]
pub(crate) struct Eviction {
    held: Arc<OpenConnection>,
    word: u64,
}

impl Inbox {
    fn now(&self) -> u32 {
        self.quarters.load(Ordering::Relaxed)
    }

    /// Sets the worker's clock.
    pub(crate) fn ticks(&self, quarters: u32) {
        self.quarters.store(quarters, Ordering::Relaxed);
    }

    fn send(eviction: Eviction) {
        let inbox = Arc::clone(&eviction.held.inbox);
        inbox.lock().push(eviction);
        inbox.notify.notify_one();
    }

    /// Waits for connections that are to be evicted.
    pub(crate) async fn next(&self) -> Vec<Eviction> {
        loop {
            let evictions = std::mem::take(&mut *self.lock());
            if !evictions.is_empty() {
                return evictions;
            }
            self.notify.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Eviction>> {
        self.evictions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Eviction {
    /// Returns why the connection ends, if its state is still the one that it was chosen for.
    pub(crate) fn cause(&self) -> Option<Evicted> {
        let state = State::of(self.word)?;
        (self.held.word() == self.word).then(|| state.cause())
    }

    pub(crate) fn token(&self) -> u64 {
        self.held.token.load(Ordering::Relaxed)
    }
}

/// Bounds on the number of connections, for one new connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    most: usize,
    /// The most connections of one address.
    per_address: usize,
    /// The number of proven connections that no unproven connection can replace.
    reserve: usize,
    /// Whether each new connection takes the place of another.
    makes_room: bool,
    /// Whether the first connection of an address is let in although it finds no other to replace.
    spares_first: bool,
}

impl Bounds {
    /// How long a connection that has sent no whole head does not count as idle, in quarters of a
    /// second.
    const fn grace(&self) -> u32 {
        if self.makes_room { LITTLE_GRACE } else { GRACE }
    }

    /// The number of connections of one address that may take the place of any other address's.
    const fn few(&self) -> usize {
        if self.makes_room { 1 } else { FEW }
    }

    /// Returns the bounds from the settings. `memory` is the budget that the new connection has to
    /// fit into; `None` if it was counted already.
    pub(crate) fn of(limits: &ClientLimits, memory: Option<&Memory>) -> Self {
        let most = limits.connections;
        let reserve = most * usize::from(limits.proven_reserve) / 100;
        let share = most - reserve;
        let per_address = match limits.connections_per_address {
            0 => share,
            fixed => fixed.min(share),
        };
        let makes_room = memory.is_some_and(Memory::replaces_connections);
        let spares_first = memory.is_some_and(Memory::has_rest);
        Self { most, per_address, reserve, makes_room, spares_first }
    }
}

/// The client connections of a gateway.
#[derive(Debug)]
pub(crate) struct Connections {
    index: Mutex<Index>,
    /// A copy of the index's number, readable without the lock.
    open: AtomicUsize,
    proven: AtomicUsize,
    started: Instant,
}

impl Connections {
    pub(crate) fn new() -> Self {
        Self {
            index: Mutex::default(),
            open: AtomicUsize::new(0),
            proven: AtomicUsize::new(0),
            started: Instant::now(),
        }
    }

    /// The number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Counts a change of standing between a connection's last request and the one before it.
    pub(crate) fn proof_changed(&self, proven: bool) {
        if proven {
            self.proven.fetch_add(1, Ordering::Relaxed);
        } else {
            self.proven.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Cancels the eviction of a connection that has a request again.
    pub(crate) fn stays(&self, eviction: &Eviction) {
        self.lock().stays(&eviction.held);
    }

    pub(crate) fn enter(
        &self,
        held: &Arc<OpenConnection>,
        owner: Owner,
        bounds: Bounds,
    ) -> Result<(), NoRoom> {
        let proven = self.proven.load(Ordering::Relaxed);
        let mut index = self.lock();
        let evictions =
            index.enter(held, owner, bounds, proven, || self.started.elapsed().into())?;
        self.open.store(index.open(), Ordering::Relaxed);
        drop(index);
        evictions.into_iter().for_each(Inbox::send);
        Ok(())
    }

    pub(crate) fn change_owner(
        &self,
        held: &Arc<OpenConnection>,
        owner: Owner,
        bounds: Bounds,
    ) -> Result<(), NoRoom> {
        let proven = self.proven.load(Ordering::Relaxed);
        let mut index = self.lock();
        let evictions =
            index.change_owner(held, owner, bounds, proven, || self.started.elapsed().into())?;
        drop(index);
        evictions.into_iter().for_each(Inbox::send);
        Ok(())
    }

    pub(crate) fn leave(&self, held: &OpenConnection) {
        if held.state().proven {
            self.proof_changed(false);
        }
        held.state.store(State::CLOSED, Ordering::Relaxed);
        let mut index = self.lock();
        index.leave(held);
        self.open.store(index.open(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
