//! Client connections: how many may be open, for which address each counts, and which one is
//! evicted.
//!
//! **The rule.** A connection belongs to its client's address (for IPv6: the /64). When
//! `client_limits.connections` are open, a new connection replaces an idle one:
//!
//! 1. The first choice is an idle *unproven* connection: one whose last request was of a session
//!    with standing `new`, or that has sent no request. The address with the most open
//!    connections is chosen among the addresses that have such a connection. The unproven
//!    connection of that address that has been idle for longest is evicted.
//! 2. If no unproven connection is idle, an idle *proven* one is chosen in the same way. This
//!    happens only while there are more proven connections than the reserve
//!    (`client_limits.proven_reserve`, a share of `client_limits.connections`).
//! 3. If there is no such connection either, the new connection is refused.
//!
//! While the memory budget is nearly used up ([`Level::Refuse`](crate::process::memory)), the rule
//! applies whatever the number of connections: each new connection replaces another or is refused.
//! In that case a connection that has sent no whole head counts as idle after [`LITTLE_GRACE`],
//! because incomplete heads may be what uses the memory. Until the whole budget is used, the first
//! connection of an address is let in even if it can replace no other.
//!
//! Two bounds keep one address from using this rule against the others:
//!
//! - A new connection never replaces one of an address that has fewer connections than its own
//!   address (the new one included). The first [`FEW`] connections of an address are exempt,
//!   because a browser opens six. While memory is short, only the first one is exempt.
//! - One address holds no more than `client_limits.connections` less the reserve, or
//!   `client_limits.connections_per_address` if that is less. Beyond this number its new
//!   connections replace its own idle ones, or are refused.
//!
//! The connections of a trusted hop (`listen.trusted_proxies`) are shared by many users. Each
//! counts as if it came from a separate address, and as proven. A connection whose PROXY header has
//! not arrived also counts as if it came from a separate address, but not as proven.
//!
//! **Idle** is a connection between two requests. An HTTP/2 connection is idle only if, in
//! addition, nothing was sent to the client for [`GRACE`], because the end of the last answer may
//! wait in the library for a slow reader. A connection also counts as idle if the head that it is
//! sending, or has yet to send first, is not complete after [`GRACE`]. A connection with a request
//! in progress, and a tunnel, are never idle.
//!
//! **Costs.** The state of a connection is one atomic word that only its own worker writes. A
//! request takes no lock here. It changes a shared counter only if its standing differs from that
//! of the request before it. Opening and closing a connection takes the index's lock once each.
//! Only when the gateway is full does the index scan the words of all connections. A scan covers at
//! most [`MOST_SEEN`] connections. The pause until the next scan is at least [`PER_SEEN`] times the
//! number of connections scanned. The result is used until the next scan; a candidate whose word
//! has changed since is skipped.
//!
//! **Eviction.** Connections live on their worker's thread. So the index puts the connection to
//! evict into the worker's [`Inbox`]. The worker checks again that the connection is idle, and ends
//! it. The new connection does not wait for that. Until then up to [`SPARE`] connections may be
//! open beyond the limit.

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

/// The time for which two kinds of connections are protected from eviction, in quarters of a second
/// (3 s). For a connection that has sent no whole head, the time runs from its opening, or from the
/// first byte of a later head. For an idle HTTP/2 connection, it runs from the last bytes sent to
/// the client. A TLS handshake over a bad line takes a second or two, and a reader at 20 kB/s makes
/// a full socket writable again in under two.
const GRACE: u32 = 12;

/// The time that replaces [`GRACE`] for connections without a whole head while memory is short, in
/// quarters of a second (1 s).
const LITTLE_GRACE: u32 = 4;

/// The maximum number of connections of an address, the new one included, with which a new
/// connection may evict one of any address, even of an address with fewer connections.
const FEW: usize = 16;

/// The maximum number of connections open beyond `client_limits.connections`, while evicted ones
/// close.
pub(crate) const SPARE: usize = 128;

/// The maximum number of connections that one scan for idle connections covers. The next scan
/// continues behind them.
const MOST_SEEN: usize = 16_384;

/// The pause before the next scan for idle connections, per connection of the last scan. It bounds
/// the share of time that scans can take.
const PER_SEEN: TimeSpan = TimeSpan::from_nanos(2_500);

/// The phase of a client connection, which determines its time limit and whether it may be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The connection is between two requests.
    Idle,
    /// The connection is open, and no bytes have arrived yet. Every connection begins in this
    /// phase.
    Open,
    /// The head of a request is arriving, or the PROXY header or TLS handshake before it.
    Head,
    /// A request is being processed.
    Busy,
    /// The connection carries another protocol after an upgrade. A disconnect that the watch
    /// detects does not end it: the tunnel itself reads the ends of both sides, in their order.
    Tunnel,
}

impl Phase {
    /// All phases, in the order of their discriminants.
    pub(crate) const ALL: [Self; 5] =
        [Self::Idle, Self::Open, Self::Head, Self::Busy, Self::Tunnel];
}

/// The reason why a connection was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evicted {
    /// The connection was between requests, and not proven.
    Idle,
    /// The connection had not completed the head of a request within [`GRACE`], or within
    /// [`LITTLE_GRACE`] while memory was short.
    Silent,
    /// The connection was between requests, and its last request was of a proven session.
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

/// The state of a client connection. It is packed into one atomic word, so that other threads read
/// it without a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// The time at which the phase began, in quarters of a second on the worker's coarse clock. For
    /// an idle HTTP/2 connection, the time of the last bytes sent, if that is later.
    pub(crate) since: u32,
    /// Whether the connection's last request was of a session whose standing was better than `new`,
    /// or the connection comes from a trusted hop.
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

    /// Returns how long the connection has been idle, in quarters of a second; `None` if it may not
    /// be evicted. `now` is the worker's clock. `grace` is the time for which a connection without
    /// a whole head is protected. Both are in quarters of a second.
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

/// One open client connection, shared by all threads. Only the connection's worker writes its
/// state.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    state: AtomicU64,
    /// The key by which the worker finds the connection; `u64::MAX` until the worker has set it.
    token: AtomicU64,
    /// The position of the connection in the index's list. It is read and written only under the
    /// index's lock.
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

/// The queue of evictions for one worker: the connections that the worker is to close.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    evictions: Mutex<Vec<Eviction>>,
    notify: Notify,
    /// The worker's coarse clock: quarters of a second since the worker began.
    quarters: AtomicU32,
}

/// A connection chosen for eviction. It is evicted only if its state word is still the same as when
/// it was chosen.
#[derive(Debug)]
pub(crate) struct Eviction {
    held: Arc<OpenConnection>,
    word: u64,
}

impl Inbox {
    fn now(&self) -> u32 {
        self.quarters.load(Ordering::Relaxed)
    }

    /// Sets the worker's coarse clock to this number of quarters of a second since the worker
    /// began.
    pub(crate) fn set_clock(&self, quarters: u32) {
        self.quarters.store(quarters, Ordering::Relaxed);
    }

    fn send(eviction: Eviction) {
        let inbox = Arc::clone(&eviction.held.inbox);
        inbox.lock().push(eviction);
        inbox.notify.notify_one();
    }

    /// Waits for connections that are to be evicted, and takes them out of the queue. The result is
    /// never empty.
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
    /// Returns why the connection is evicted; `None` if its state has changed since it was chosen,
    /// so that it must not be evicted.
    pub(crate) fn cause(&self) -> Option<Evicted> {
        let state = State::of(self.word)?;
        (self.held.word() == self.word).then(|| state.cause())
    }

    pub(crate) fn token(&self) -> u64 {
        self.held.token.load(Ordering::Relaxed)
    }
}

/// The bounds that apply when one new connection is admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The maximum number of open connections of all addresses.
    most: usize,
    /// The maximum number of open connections of one address.
    per_address: usize,
    /// The number of proven connections that are not evicted for a new connection.
    reserve: usize,
    /// Whether each new connection must evict another, whatever the number of open ones, because
    /// memory is short.
    makes_room: bool,
    /// Whether the first connection of an address is let in if it must evict another and can evict
    /// none.
    spares_first: bool,
}

impl Bounds {
    /// Returns the time for which a connection without a whole head is protected from eviction, in
    /// quarters of a second.
    const fn grace(&self) -> u32 {
        if self.makes_room { LITTLE_GRACE } else { GRACE }
    }

    /// Returns the number of connections of an address with which a new one may evict one of any
    /// address: [`FEW`] in normal operation, and 1 while memory is short.
    const fn few(&self) -> usize {
        if self.makes_room { 1 } else { FEW }
    }

    /// Returns the bounds that the settings give. `memory` is the budget that the new connection
    /// has to fit into; `None` if the connection was counted against it already.
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

/// The client connections of all workers of a gateway.
#[derive(Debug)]
pub(crate) struct Connections {
    index: Mutex<Index>,
    /// The number of open connections: a copy of the index's number, readable without the lock.
    open: AtomicUsize,
    /// The number of open connections that are proven.
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

    /// Returns the number of open client connections of all workers.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Updates the number of proven connections when one connection becomes proven (`true`), or
    /// stops being proven (`false`).
    pub(crate) fn proof_changed(&self, proven: bool) {
        if proven {
            self.proven.fetch_add(1, Ordering::Relaxed);
        } else {
            self.proven.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Cancels the eviction of a connection that is not idle any more. It has no effect if the
    /// connection has ended.
    pub(crate) fn cancel_eviction(&self, eviction: &Eviction) {
        self.lock().cancel_eviction(&eviction.held);
    }

    /// Admits a new connection of `owner`, and sends the connections that it replaces to their
    /// workers for eviction. Returns an error if the bounds do not allow the connection; it is then
    /// not counted.
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

    /// Counts a connection for another owner, once a PROXY header has given its address.
    /// Connections that it replaces are sent to their workers for eviction. On an error the caller
    /// must close the connection; it is counted for the new owner until [`Connections::leave`].
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

    /// Removes a connection that has ended. Must be called once for each admitted connection.
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
